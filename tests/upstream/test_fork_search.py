"""The last block of two chains, found by doubling and halving."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.upstream.fork_search import FIRST_STEP, ForkSearch


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_fork_is_found_in_a_few_questions(earliest: int, above: int, further: int) -> None:
    fork = earliest + above
    search, asked = ForkSearch(earliest, fork + further + 1), []
    while (number := search.next) is not None:
        assert earliest <= number <= fork + further
        search = search.learn(number, is_shared=number <= fork)
        asked.append(number)
    assert search.shared == fork
    assert len(asked) <= 2 * (further + FIRST_STEP).bit_length() + 1
    assert min(asked) >= fork - 2 * (further + FIRST_STEP), "old blocks are not asked for"


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_chains_that_share_nothing_that_is_kept_are_found_out(earliest: int, above: int) -> None:
    search, asked = ForkSearch(earliest, earliest + above), 0
    while (number := search.next) is not None:
        search = search.learn(number, is_shared=False)
        asked += 1
    assert search.shared is None
    assert search.apart == earliest
    assert asked <= above.bit_length()
