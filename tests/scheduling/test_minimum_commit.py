"""Minimum requirements on instances, compared with a model that lists everything an
instance has.
"""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.scheduling.reply import Minimum, Reached, is_met, missing
from support.each_case import each_case

MOST = 6  # blocks, indexes, commits: small, so that equal ones occur often

numbers = st.integers(0, MOST)
places = st.tuples(numbers, numbers)
reached = st.builds(Reached, numbers, numbers, st.none() | places)
minimums = st.builds(Minimum, numbers, st.none() | places)


def commits_of(instance: Reached) -> set[int]:
    """All commits of an instance."""
    return set(range(instance.commit + 1))


def flashblocks_of(instance: Reached) -> set[tuple[int, int]]:
    """All flashblock positions of an instance: whole blocks, and a part of the last."""
    indexes = range(MOST + 1)
    found = {(block, index) for block in range(instance.latest + 1) for index in indexes}
    if instance.pending is not None:
        number, last = instance.pending
        found |= {(block, index) for block in range(number) for index in indexes}
        found |= {(number, index) for index in range(last + 1)}
    return found


@given(minimums, reached)
def test_a_minimum_is_met_by_who_has_what_it_names(minimum: Minimum, instance: Reached) -> None:
    has_place = minimum.place is None or minimum.place in flashblocks_of(instance)
    assert is_met(minimum, instance) is (minimum.commit in commits_of(instance) and has_place)


@given(reached)
def test_what_was_seen_is_met_where_it_was_seen(instance: Reached) -> None:
    seen = Minimum(instance.commit, instance.pending or (instance.latest, 0))
    assert is_met(seen, instance)


@given(minimums, reached, numbers, numbers)
def test_what_is_met_stays_met_as_the_chain_grows(
    minimum: Minimum, instance: Reached, commits: int, blocks: int
) -> None:
    """Also when the pending block is sealed, or expires because no flashblock came in time."""
    if not is_met(minimum, instance):
        return
    sealed = instance.pending[0] if instance.pending else instance.latest
    later = Reached(instance.commit + commits, max(instance.latest, sealed) + blocks, None)
    assert is_met(minimum, later)


@each_case(
    ("minimum", "instance", "text"),
    [
        (Minimum(57), Reached(56, 54, None), "commit 57 is not here yet, this instance is at 56"),
        (Minimum(57, (56, 0)), Reached(56, 54, (55, 4)),
            "commit 57 is not here yet, this instance is at 56"),
        (Minimum(0, (55, 5)), Reached(56, 54, (55, 4)),
            "flashblock 0x37.5 is not here yet, this instance is at 0x37.4"),
        (Minimum(56, (55, 5)), Reached(56, 54, None),
            "flashblock 0x37.5 is not here yet, this instance is at 0x36"),
        (Minimum(57), None, "commit 57 is not here yet, this instance cannot read its store"),
        (Minimum(0, (55, 5)), None,
            "flashblock 0x37.5 is not here yet, this instance cannot read its store"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(minimum: Minimum, instance: Reached | None, text: str) -> None:
    assert missing(minimum, instance).text == text
