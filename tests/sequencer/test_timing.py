from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from foreblock.clock import SECOND_NS
from foreblock.sequencer.timing import LEEWAY_NS, Schedule, next_time_ns, schedule, time_within_ns
from support.each_case import each_case

MS = 10**6
START = 1_767_225_600
MONOTONIC = 77 * SECOND_NS


class Pace(NamedTuple):
    """The settings of a schedule, and its leeway."""

    block_time: int = 2
    interval_ms: int = 200
    leeway_ms: int = 75

    def plan(self, timestamp: int, wall_ns: int, monotonic_ns: int = MONOTONIC) -> Schedule:
        leeway_ns = self.leeway_ms * MS
        times = (timestamp * SECOND_NS, wall_ns, monotonic_ns)
        block_ns = self.block_time * SECOND_NS
        return schedule(block_ns, self.interval_ms, *times, leeway_ns=leeway_ns)


PACE = Pace()


def messages(of: Pace, late_ms: int) -> int:
    """The number of flashblocks of a block that begins this late: index 0 and one per slot."""
    return 1 + of.plan(START + of.block_time, START * SECOND_NS + late_ms * MS).slots


@each_case(
    ("of", "late_ms", "expected"),
    [
        (Pace(), 0, 11),
        (Pace(leeway_ms=0), 0, 11),
        (Pace(block_time=1), 0, 6),
        (Pace(block_time=1, leeway_ms=0), 0, 6),
        (Pace(interval_ms=250), 0, 9),
        (Pace(), 124, 11),
        (Pace(), 125, 10),
        (Pace(), 1_000, 6),
        (Pace(), 1_924, 2),
        (Pace(), 1_925, 1),
        (Pace(), 2_000, 1),
        (Pace(), 60_000, 1),
        (Pace(interval_ms=2_000), 0, 2),
    ],
)
def test_so_many_flashblocks_has_a_block(of: Pace, late_ms: int, expected: int) -> None:
    """flashblocks.md §5.1: 2 s and 200 ms make 11, 1 s makes 6, a block late makes 1."""
    assert messages(of, late_ms) == expected


def ends_ms(plan: Schedule) -> list[int]:
    return [
        (plan.next_end_ns(slot) - MONOTONIC) // MS for slot in range(plan.slots_before, plan.slots)
    ]


def test_slots_are_counted_back_from_the_end() -> None:
    plan = PACE.plan(START + 2, START * SECOND_NS)
    assert ends_ms(plan) == [125, 325, 525, 725, 925, 1_125, 1_325, 1_525, 1_725, 1_925]
    assert plan.end_ns == MONOTONIC + 2 * SECOND_NS
    assert plan.next_end_ns(plan.slots) == plan.end_ns


def test_flashblocks_keep_their_distance_over_the_end_of_a_block() -> None:
    plan = PACE.plan(START + 2, START * SECOND_NS)
    following = PACE.plan(START + 4, (START + 2) * SECOND_NS, plan.end_ns)
    assert following.next_end_ns(0) - plan.next_end_ns(9) == 200 * MS


def test_a_date_set_back_leaves_one_block_time() -> None:
    plan = PACE.plan(START + 2, (START - 3_600) * SECOND_NS)
    assert plan.end_ns == MONOTONIC + 2 * SECOND_NS
    assert plan.slots == 10


def test_a_resumed_block_goes_on_after_the_slots_it_has_had() -> None:
    wall_ns = START * SECOND_NS + 1_000 * MS
    times = (START + 2) * SECOND_NS, wall_ns, MONOTONIC
    plan = schedule(2 * SECOND_NS, 200, *times, slots_before=4)
    assert (plan.slots_before, plan.slots) == (4, 9)
    assert ends_ms(plan) == [125, 325, 525, 725, 925]
    assert plan.ended(MONOTONIC) == 4
    assert plan.ended(MONOTONIC + 130 * MS) == 5


@given(st.integers(0, 2_500), st.integers(0, 3_000))
def test_a_slot_has_ended_when_its_end_has_come(late_ms: int, passed_ms: int) -> None:
    plan = PACE.plan(START + 2, START * SECOND_NS + late_ms * MS)
    now = MONOTONIC + passed_ms * MS
    assert plan.ended(now) == sum(plan.next_end_ns(slot) <= now for slot in range(plan.slots))
    assert all(plan.next_end_ns(slot) <= plan.end_ns - 75 * MS for slot in range(plan.slots))


@each_case(
    ("wall_ms", "block_time", "expected"),
    [
        (0, 2, 2),  # on time
        (3, 2, 2),  # a little late
        (1_999, 2, 2),
        (-3, 2, 2),  # a little early
        (2_000, 2, 4),  # a whole block late: it is skipped
        (3_999, 2, 4),
        (3_600_500, 2, 3_602),  # after an hour of suspension: one jump
        (-3_600_000, 2, 2),  # the clock was set back
        (1_000, 1, 2),
        (25_000, 12, 36),
    ],
)
def test_timestamps_are_on_the_grid_and_follow_the_date(
    wall_ms: int, block_time: int, expected: int
) -> None:
    wall_ns = START * SECOND_NS + wall_ms * MS
    found = next_time_ns(START * SECOND_NS, wall_ns, block_time * SECOND_NS)
    assert found == (START + expected) * SECOND_NS


@given(st.integers(-(10**6), 10**9), st.integers(1, 60))
def test_a_block_ends_after_its_parent_and_at_most_a_block_time_from_now(
    wall_ms: int, block_time: int
) -> None:
    wall_ns = START * SECOND_NS + wall_ms * MS
    block_ns = block_time * SECOND_NS
    time_ns = next_time_ns(START * SECOND_NS, wall_ns, block_ns)
    assert (time_ns - START * SECOND_NS) % block_ns == 0
    assert time_ns > START * SECOND_NS
    assert time_ns > wall_ns
    if wall_ms >= 0:
        assert time_ns - wall_ns <= block_ns


@each_case(
    ("parent_ms", "wall_ms", "expected_ms"),
    [
        (0, 0, 200),
        (0, 199, 200),
        (600, 650, 800),
        (800, 800, 1_000),
        (0, 200, 400),  # late: skipped
        (400, 5_100, 5_200),
    ],
)
def test_times_of_short_blocks_are_on_the_same_grid(
    parent_ms: int, wall_ms: int, expected_ms: int
) -> None:
    begun = START * SECOND_NS
    found = next_time_ns(begun + parent_ms * MS, begun + wall_ms * MS, 200 * MS)
    assert found == begun + expected_ms * MS


@given(st.integers(-5_000, 5_000), st.sampled_from([100, 200, 250, 500, 1_000, 2_000]))
def test_a_time_near_another_has_the_timestamp_of_its_block(near_ms: int, block_ms: int) -> None:
    near_ns = START * SECOND_NS + near_ms * MS
    found = time_within_ns(START, near_ns, block_ms * MS)
    assert found // SECOND_NS == START
    assert found % (min(block_ms, 1_000) * MS) == 0
    if 0 <= near_ms < 1_000 and block_ms <= 1_000:
        assert near_ns - found < block_ms * MS


def test_docs_show_the_leeway(checkout: Path) -> None:
    text = (checkout / "docs" / "dev-chain.md").read_text("utf-8")
    assert PACE.leeway_ms * MS == LEEWAY_NS
    assert f"{PACE.leeway_ms} ms before the seal" in text
