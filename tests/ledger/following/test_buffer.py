"""The buffer, compared with a plain list that is trimmed one message at a time."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.following.buffer import BufferBounds, Buffered
from foreblock.types import Flashblock
from support.chains.following import add, forget_through, held, take
from support.payloads.flashblocks import hash_of, job, later

SMALL = BufferBounds(
    messages_per_feed=4, bytes_per_feed=40, messages=7, bytes=60, jobs_per_height=2
)


def message(block: int, name: str, index: int, variant: str = "") -> Flashblock:
    return later(block, name, index, hash_of(f"{block}{name}{index}{variant}"))


@dataclass(frozen=True)
class Kept:
    """The model's record of a message."""

    feed: str
    size: int
    block: int
    job: str
    index: int
    variant: str


@dataclass
class Model:
    """The rules one by one: while one is violated, the oldest message it names is removed."""

    bounds: BufferBounds
    kept: list[Kept] = field(default_factory=list)
    evicted: int = 0

    def add(self, new: Kept) -> None:
        place = (new.block, new.job, new.index, new.variant)
        if place in [(at.block, at.job, at.index, at.variant) for at in self.kept]:
            return
        if new.size > self.bounds.bytes_per_feed or new.size > self.bounds.bytes:
            self.evicted += 1
            return
        self.kept.append(new)
        alike = [at for at in self.kept if (at.feed, at.block) == (new.feed, new.block)]
        if len({at.job for at in alike}) > self.bounds.jobs_per_height:
            for at in [at for at in alike if at.job == alike[0].job]:
                self.drive_out(at)
        while self.too_much(
            [at for at in self.kept if at.feed == new.feed],
            self.bounds.messages_per_feed,
            self.bounds.bytes_per_feed,
        ):
            self.drive_out(next(at for at in self.kept if at.feed == new.feed))
        while self.too_much(self.kept, self.bounds.messages, self.bounds.bytes):
            self.drive_out(self.kept[0])

    @staticmethod
    def too_much(kept: list[Kept], messages: int, size: int) -> bool:
        return len(kept) > messages or sum(at.size for at in kept) > size

    def drive_out(self, gone: Kept) -> None:
        self.kept.remove(gone)
        self.evicted += 1


ADDS = st.builds(
    Kept,
    feed=st.sampled_from(["one", "two", "three"]),
    size=st.integers(1, 30) | st.integers(30, 80),
    block=st.integers(1, 3),
    job=st.sampled_from(["p", "q", "r"]),
    index=st.integers(0, 4),
    variant=st.sampled_from(["", "'"]),
)
TAKES = st.tuples(st.integers(1, 3), st.sampled_from(["p", "q", "r"]), st.integers(0, 4))
FORGETS = st.integers(0, 3)


@given(st.lists(ADDS | ADDS | ADDS | TAKES | FORGETS, max_size=60))
def test_the_buffer_is_the_model(steps: list[Kept | tuple[int, str, int] | int]) -> None:
    buffered, model = Buffered(SMALL), Model(SMALL)
    for step in steps:
        match step:
            case Kept():
                flashblock = message(step.block, step.job, step.index, step.variant)
                add(buffered, step.feed, flashblock, step.size)
                model.add(step)
            case int():
                forget_through(buffered, step)
                model.kept = [at for at in model.kept if at.block > step]
            case (block, name, index):
                taken = [at for at in model.kept if (at.block, at.job, at.index) == step]
                assert take(buffered, block, job(name), index) == [
                    message(block, name, index, at.variant) for at in taken
                ]
                model.kept = [at for at in model.kept if at not in taken]
        check(buffered, model)


def check(buffered: Buffered, model: Model) -> None:
    assert len(buffered) == len(model.kept) <= SMALL.messages
    assert buffered.size == sum(at.size for at in model.kept) <= SMALL.bytes
    assert buffered.evicted == model.evicted
    for block in (1, 2, 3):
        jobs = list(dict.fromkeys(at.job for at in model.kept if at.block == block))
        assert buffered.jobs(block) == [job(name) for name in jobs]
        for name in ("p", "q", "r"):
            kept = {(each.index, each.receipts_root) for each in held(buffered, block, job(name))}
            assert kept == {
                (at.index, hash_of(f"{block}{name}{at.index}{at.variant}"))
                for at in model.kept
                if (at.block, at.job) == (block, name)
            }


def test_a_feed_of_garbage_loses_its_own_messages_first() -> None:
    buffered = Buffered()
    add(buffered, "honest", message(7, "p", 3), 60_000)
    for index in range(1_000):
        add(buffered, "garbage", message(8, "x", index + 1), 60_000)
    assert held(buffered, 7, job("p"))
    assert len(buffered) == 1 + 64
    assert buffered.evicted == 1_000 - 64


def test_the_bounds_in_all_hold_whatever_the_number_of_feeds() -> None:
    buffered = Buffered()
    for feed in range(100):
        for index in range(10):
            add(buffered, f"feed {feed}", message(7, "p", 10 * feed + index), 1024 * 1024)
    assert len(buffered) == 64
    assert buffered.size == 64 * 1024 * 1024


@pytest.mark.parametrize("size", [16 * 1024 * 1024 + 1, 2**40])
def test_one_message_above_the_bounds_drives_out_nothing_but_itself(size: int) -> None:
    buffered = Buffered()
    add(buffered, "feed", message(7, "p", 1), 100)
    add(buffered, "feed", message(7, "p", 2), size)
    assert len(buffered) == 1
    assert buffered.evicted == 1


def test_a_third_job_of_a_height_drives_out_the_first() -> None:
    buffered = Buffered()
    for name in ("p", "q", "p", "r"):
        add(buffered, "feed", message(7, name, len(buffered) + 1), 100)
    assert buffered.jobs(7) == [job("q"), job("r")]
    assert buffered.evicted == 2


def test_jobs_of_one_feed_do_not_drive_out_those_of_another() -> None:
    buffered = Buffered()
    add(buffered, "true", message(7, "p", 1), 100)
    for name in ("q", "r", "s"):
        add(buffered, "false", message(7, name, 1), 100)
    assert buffered.jobs(7) == [job("p"), job("r"), job("s")]


def test_alternates_of_one_place_are_kept_side_by_side() -> None:
    buffered = Buffered()
    for variant in ("", "'", ""):
        add(buffered, "feed", message(7, "p", 3, variant), 100)
    assert take(buffered, 7, job("p"), 3) == [message(7, "p", 3), message(7, "p", 3, "'")]
    assert len(buffered) == 0
