from hypothesis import given
from hypothesis import strategies as st

from foreblock.upstream.block_fetcher import CanonicalHead
from foreblock.upstream.canonical_source import (
    FIRST_STEP,
    Follow,
    ForkSearch,
    LocalHead,
    Plan,
    Rest,
    Walk,
    plan,
)
from support.each_case import each_case

WANTED = b"w" * 32


def head(number: int) -> CanonicalHead:
    return CanonicalHead(number, bytes([number]) * 32)


@each_case(
    ("story", "latest", "tip", "knows", "wanted", "behind_for", "expected"),
    [
        ("at the tip", 7, 7, True, None, 99, Rest()),
        ("above it, which the endpoint will reach", 8, 7, True, None, 99, Rest()),
        ("a wanted block comes first", 7, 7, True, WANTED, 0, Walk(WANTED)),
        ("also when a little behind", 7, 9, False, WANTED, 0, Walk(WANTED)),
        ("a little behind: the feed has time", 7, 8, False, None, 0.9, Rest()),
        ("but not for ever", 7, 8, False, None, 1.0, Follow(8, 8)),
        ("far behind: at once", 7, 10, False, None, 0, Follow(8, 10)),
        ("far behind: the requested blocks are beyond", 7, 10, False, WANTED, 0, Follow(8, 10)),
        ("the tip is another block", 7, 7, False, None, 0, Walk(head(7).hash)),
        ("the endpoint went back to another block", 8, 7, False, None, 0, Walk(head(7).hash)),
    ],
)
def test_what_is_fetched(
    story: str, latest: int, tip: int, knows: bool, wanted: bytes | None, behind_for: float,
    expected: Plan,
) -> None:  # fmt: skip
    local_head = LocalHead(head(latest), knows)
    assert plan(local_head, head(tip), wanted, behind_for, 1.0) == expected, story


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_fork_is_found_in_a_few_questions(earliest: int, above: int, further: int) -> None:
    fork = earliest + above
    search, asked = ForkSearch(earliest, fork + further + 1), []
    while (number := search.next) is not None:
        assert earliest <= number <= fork + further
        search = search.narrow(number, is_shared=number <= fork)
        asked.append(number)
    assert search.shared == fork
    assert len(asked) <= 2 * (further + FIRST_STEP).bit_length() + 1
    assert min(asked) >= fork - 2 * (further + FIRST_STEP), "old blocks are not requested"


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_chains_that_share_nothing_that_is_kept_are_found_out(earliest: int, above: int) -> None:
    search, asked = ForkSearch(earliest, earliest + above), 0
    while (number := search.next) is not None:
        search = search.narrow(number, is_shared=False)
        asked += 1
    assert search.shared is None
    assert search.apart == earliest
    assert asked <= above.bit_length()
