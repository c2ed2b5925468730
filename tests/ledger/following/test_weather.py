"""A follower under all faults at once, with a model that knows the truth.

Jobs of random length are sealed up to a random index, restarted, and contradict themselves; their
messages come twice, late, out of order and in either form, or not at all. After every message the
store is compared with the truth. No block may be sealed wrongly. Without lost messages the tip is
reached; with losses it is reached only with a canonical source, and otherwise the reached blocks
remain.
"""

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from foreblock._engine import View
from foreblock.errors import NotHere
from foreblock.ledger.building.closed_index import base_of
from foreblock.ledger.following.classification import DEFAULT_DEPTH
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.partials import check_reachable
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Flashblock
from support.chains.following import Built, Following, Truth, Wish
from support.each_case import sampled

BLOCKS = 12
SEEDS = range(6)


@dataclass(frozen=True)
class Weather:
    """Probabilities of faults."""

    duplicate: float = 0.0
    reorder: int = 0  # maximum number of positions
    restart: float = 0.0
    dropped_tail: float = 0.0
    equivocate: float = 0.0
    lost: float = 0.0
    killed: float = 0.0
    linked: bool = True  # whether messages name their predecessors
    subblocks: float = 0.0  # share of messages in that form, each copy by itself


ROUGH = Weather(duplicate=0.2, reorder=4, restart=0.2, dropped_tail=0.2, equivocate=0.1)


def random_plan(chance: random.Random) -> list[list[Wish]]:
    """Three to six indices, the first with only the deposit."""

    def wishes() -> list[Wish]:
        count = chance.choice([0, 1, 1, 2])
        return [(chance.randrange(3), chance.randrange(1, 1 << 30)) for _ in range(count)]

    return [[], *(wishes() for _ in range(chance.randint(2, 5)))]


def sequence(truth: Truth, weather: Weather, chance: random.Random) -> list[Flashblock]:
    """The messages of a whole chain, in the order of sending."""
    messages: list[Flashblock] = []
    for height in range(1, BLOCKS + 1):
        plan, salt = random_plan(chance), chance.randbytes(4)
        job = truth.job(f"{height}p", plan, salt=salt)
        sent = list(job.messages)
        if chance.random() < weather.equivocate:
            at = chance.randrange(len(plan))
            other = [*plan[:at], [*plan[at], (0, 99)], *plan[at + 1 :]]
            wrong = truth.job(f"{height}p", other, salt=salt).messages[at]
            sent.insert(at + chance.randrange(2), wrong)
        if chance.random() < weather.restart:
            stray = truth.job(f"{height}q", random_plan(chance), salt=chance.randbytes(4)).messages
            at = chance.choice([0, chance.randrange(len(sent)), len(sent)])
            sent[at:at] = stray[: chance.randint(1, len(stray))]
        messages += sent
        is_cut = chance.random() < weather.dropped_tail
        truth.seal(job, chance.randrange(len(plan)) if is_cut else -1)
    return messages


def deliver(
    messages: list[Flashblock], weather: Weather, chance: random.Random
) -> list[Flashblock]:
    """The messages in the order of arrival."""
    arrivals = []
    forms = random.Random(chance.random()) if weather.subblocks else None
    for at, message in enumerate(messages):
        if chance.random() < weather.lost:
            continue
        arrivals.append((at + chance.randint(0, weather.reorder), at, message))
        if chance.random() < weather.duplicate:
            arrivals.append((at + chance.randint(0, 12), at, message))
    return [
        message.as_subblock() if forms and forms.random() < weather.subblocks else message
        for _, _, message in sorted(arrivals, key=lambda each: each[:2])
    ]


class StoreChecker:
    """Checks a store after every message, and remembers everything it has seen."""

    def __init__(self, following: Following, truth: Truth) -> None:
        self._following = following
        self._truth = truth
        self._commit = 0
        self._rows: dict[bytes, bytes] = {}

    def check(self) -> None:
        with self._following.store.view() as view:
            assert view.heads.commit >= self._commit, "commits never go back"
            self._commit = view.heads.commit
            assert view.heads.latest is not None
            latest, _ = view.heads.latest
            for number in range(1, latest + 1):
                sealed = view.sealed(number)
                assert sealed is not None
                assert sealed[0] == self._truth.headers[number].hash, "a wrong seal"
            path = self._path(view, latest)
            for block in range(1, latest + DEFAULT_DEPTH + 2):
                for partial in self._partials(view, block):
                    if _is_reachable(view, partial):
                        self._check_reachable(view, block, partial, path)

    def _path(self, view: View, latest: int) -> set[int]:
        """The partial blocks that lead to the pending one, along an unbroken chain."""
        path: set[int] = set()
        number = view.heads.pending
        while number is not None:
            partial = view.partial(number)
            assert partial is not None
            assert partial.status == "live" or partial.block == latest
            assert partial.block <= latest + DEFAULT_DEPTH
            if partial.block <= latest:
                break
            row = view.row(partial_rows.partial_key(partial.block, number))
            assert row is not None
            path |= {number, *partial_rows.decode_partial_row(row).before}
            if partial.stacked_on is None:
                below = view.sealed(partial.block - 1)
                assert below is not None
                assert below[0] == partial.parent_hash
            number = partial.stacked_on
        return path

    def _partials(self, view: View, block: int) -> list[int]:
        """The partial blocks of a height, whose rows must not have changed."""
        numbers = []
        for key, value in view.rows(partial_rows.block_prefix(block), 10_000):
            assert self._rows.setdefault(key, value) == value, "rows of a partial never change"
            number, kind = partial_rows.partial_of_key(key)
            if kind == b"h":
                numbers.append(number)
        return numbers

    def _check_reachable(self, view: View, block: int, partial: int, path: set[int]) -> None:
        """Check that a reachable partial block leads to the pending block, or begins a
        sealed one.
        """
        if block in self._truth.blocks and view.sealed(block) is not None:
            row = view.row(partial_rows.partial_key(block, partial))
            assert row is not None
            head, real = partial_rows.decode_partial_row(row), self._truth.blocks[block]
            raws: list[bytes] = []
            for each in (*head.before, partial):
                raws += decode_items(view.row(partial_rows.transactions_key(block, each)) or b"")
            assert base_of(head.header) == base_of(real.header)
            assert raws == list(real.transactions[: len(raws)])
        else:
            assert partial in path


def _is_reachable(view: View, partial: int) -> bool:
    try:
        check_reachable(view, partial)
    except NotHere:
        return False
    return True


def follow(
    folder: Path, weather: Weather, seed: int, *, canonical: bool
) -> tuple[Following, Truth]:
    """Follow a whole chain."""
    chance = random.Random(seed)
    truth = Truth(folder / "truth", linked=weather.linked)
    delivery = deliver(sequence(truth, weather, chance), weather, chance)
    following = Following(folder / "followed")
    looker = StoreChecker(following, truth)
    for message in delivery:
        following.receive(message)
        looker.check()
        for _ in range(chance.choice([0, 0, 1, 100])):
            if following.follower.next_due_ns == 0:
                following.follower.tick()
        if canonical:
            answer(following, truth, message.block_number)
        looker.check()
        if chance.random() < weather.killed:
            following.reopen()
            looker.check()
    following.run_until_idle()
    looker.check()
    return following, truth


def answer(following: Following, truth: Truth, height: int) -> None:
    """Respond to requests; a block is not available before its successor has begun."""
    blocks = {block.hash: block for block in truth.blocks.values()}
    while following.wanted:
        block = blocks.get(following.wanted.pop())
        if block is not None and block.header.number < height:
            following.follower.canonical(block)


@pytest.mark.parametrize(("linked", "subblocks"), [(True, 0), (False, 0), (True, 0.5), (False, 1)])
@pytest.mark.parametrize("seed", sampled(SEEDS, 1))
def test_tip_is_reached_where_nothing_is_lost(
    tmp_path: Path, seed: int, linked: bool, subblocks: float
) -> None:
    weather = replace(ROUGH, linked=linked, subblocks=subblocks)
    following, truth = follow(tmp_path, weather, seed, canonical=False)
    assert following.latest == BLOCKS - 1
    assert following.pending is not None
    assert following.pending[0] == BLOCKS
    assert following.wanted == [] or following.follower.missing is None
    truth.close()


@pytest.mark.parametrize("seed", sampled(SEEDS, 2))
def test_lost_messages_are_made_up_for_by_canonical(tmp_path: Path, seed: int) -> None:
    weather = Weather(lost=0.05, linked=bool(seed % 2), subblocks=seed % 3 / 2)
    following, truth = follow(tmp_path, weather, seed, canonical=True)
    assert following.latest >= BLOCKS - 3, "at most two blocks behind"
    truth.close()


@pytest.mark.parametrize("seed", sampled(SEEDS, 2))
def test_everything_at_once_and_killed_now_and_then_is_survived_with_canonical(
    tmp_path: Path, seed: int
) -> None:
    weather = replace(ROUGH, lost=0.05, killed=0.05, linked=bool(seed % 2), subblocks=seed % 3 / 2)
    following, truth = follow(tmp_path, weather, seed, canonical=True)
    assert following.latest >= BLOCKS - 3, "at most two blocks behind"
    truth.close()


@pytest.mark.parametrize("seed", sampled(SEEDS, 2))
def test_sequencer_that_gives_up_sealed_blocks_is_followed(tmp_path: Path, seed: int) -> None:
    """Once the new branch is higher; this needs no canonical source."""
    chance = random.Random(seed)
    truth = Truth(tmp_path / "truth", linked=bool(seed % 2))
    following = Following(tmp_path / "followed")
    for step in range(20):
        if step < 14 and truth.latest.number > 3 and chance.random() < 0.3:
            truth.rewind(truth.latest.number - chance.randint(1, 2))
        job = truth.job(f"job {step}", random_plan(chance), salt=chance.randbytes(4))
        for message in job.messages:
            following.receive(message)
            for _ in range(chance.choice([0, 1, 50])):
                if following.follower.next_due_ns == 0:
                    following.follower.tick()
        truth.seal(job)
    following.run_until_idle()
    assert following.latest == truth.latest.number - 1
    for number in range(1, following.latest + 1):
        assert following.sealed(number) == truth.headers[number].hash
    truth.close()


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_lost_message_without_canonical_freezes_honestly(tmp_path: Path, lost: int) -> None:
    """Every later block has an unknown ancestor: this is reported, and pending expires."""
    truth = Truth(tmp_path / "truth")
    following = Following(tmp_path / "followed")
    looker = StoreChecker(following, truth)
    jobs: list[Built] = []
    for height in range(1, 9):
        jobs.append(truth.job(f"{height}p", [[], [(0, height)], [(1, 2)], [(2, 3)]]))
        truth.seal(jobs[-1])
    for job in jobs:
        for message in job.messages:
            if (message.block_number, message.index) != (3, lost):
                following.hear(message)
                looker.check()
    assert following.latest == (2 if lost else 1), "the last proven block"
    assert following.follower.missing == jobs[2].blocks[-1].hash
    following.expire()
    assert following.pending is None
    following.canonical(jobs[2].blocks[-1])
    assert following.latest >= 3, "one block is enough to continue"
    truth.close()
