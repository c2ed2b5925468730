"""The last block of two chains, found by halving."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.canonical.fork_search import ForkSearch


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_fork_is_found_in_as_many_questions_as_the_distance_has_bits(
    earliest: int, above: int, further: int
) -> None:
    fork = earliest + above
    search, asked = ForkSearch(earliest, fork + further + 1), 0
    while (number := search.next) is not None:
        assert earliest < number <= fork + further
        search = search.learn(number, is_shared=number <= fork)
        asked += 1
    assert search.shared == fork
    assert asked <= (above + further + 1).bit_length()
