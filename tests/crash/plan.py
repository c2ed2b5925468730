"""A random history of commits and the plain model of a store's content after each.

Every commit is a function of the seed and of the model before it, so that the next ones can be
replayed from the model at any commit. A commit also includes its number, the stamp, in everything
it writes: rows, the note, and in each block or partial block a balance, a slot and an index row. A
reader that saw half of one commit and half of another would find two stamps.

Pruning is not part of the plan: it follows the commits and may lag. The model keeps the data that
must still exist and drops the rest.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

KEEP_STATES = 12
KEEP_PARTIALS = 4

# The account whose balance and slot 0 are the stamp of the block or partial block.
STAMP = b"\xaa" * 20
OTHERS = [bytes([number]) * 20 for number in range(1, 9)]


@dataclass(frozen=True)
class AccountState:
    """An existing account. States share these objects, so they are never modified."""

    balance: int = 0
    nonce: int = 0
    code: bytes = b""
    slots: dict[int, int] = field(default_factory=dict)


State = dict[bytes, AccountState]
Status = Literal["live", "sealed", "dropped"]


@dataclass(frozen=True)
class Sealed:
    hash: bytes
    stamp: int
    state: State
    partial: int | None  # the sealed partial block


@dataclass(frozen=True)
class Partial:
    block: int
    index: int
    stamp: int
    state: State
    parent_hash: bytes
    stacked_on: int | None
    status: Status = "live"
    reason: str | None = None


@dataclass(frozen=True)
class Edit:
    """Changes of one account, in this order: destruction, then new values."""

    address: bytes
    destroy: bool
    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    wipe: bool = False
    slots: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Append:
    edits: tuple[Edit, ...]
    folds: bool


@dataclass(frozen=True)
class Extend:
    edits: tuple[Edit, ...]
    parent: int | None  # a partial block; the latest block if None
    stacked: bool


@dataclass(frozen=True)
class Seal:
    partial: int


@dataclass(frozen=True)
class Drop:
    partials: tuple[int, ...]


@dataclass(frozen=True)
class Revive:
    partials: tuple[int, ...]


@dataclass(frozen=True)
class Rewind:
    block: int


@dataclass(frozen=True)
class Put:
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Delete:
    key: bytes


Step = Append | Extend | Seal | Drop | Revive | Rewind | Put | Delete


def block_hash(stamp: int) -> bytes:
    return b"block".ljust(24, b"-") + stamp.to_bytes(8)


def partial_hash(stamp: int) -> bytes:
    return b"partial".ljust(24, b"-") + stamp.to_bytes(8)


@dataclass
class Model:
    """The content of a store at one commit, as far as it must be kept."""

    commit: int = 0
    latest: int = -1
    highest: int = -1  # the highest block ever, from which retention is counted
    blocks: dict[int, Sealed] = field(default_factory=dict)
    partials: dict[int, Partial] = field(default_factory=dict)
    pending: int | None = None
    rows: dict[bytes, bytes] = field(default_factory=dict)

    def dump(self) -> bytes:
        return pickle.dumps(self)

    @staticmethod
    def load(dumped: bytes) -> Model:
        model = pickle.loads(dumped)  # noqa: S301 - written by this very test
        assert isinstance(model, Model)
        return model

    def after(self, step: Step) -> Model:
        """The model after this step's commit."""
        model = replace(
            self, blocks=dict(self.blocks), partials=dict(self.partials), rows=dict(self.rows)
        )
        model.apply(step)
        return model

    def stamp_of(self, step: Step) -> int:
        """The number of the step's commit: with changes, one for them and one for the delta."""
        return self.commit + (2 if isinstance(step, Append | Extend) else 1)

    def apply(self, step: Step) -> None:  # noqa: C901 - one short case for each step
        stamp = self.commit = self.stamp_of(step)
        match step:
            case Append(edits):
                below = self.blocks[self.latest].state if self.blocks else {}
                self._seal(Sealed(block_hash(stamp), stamp, edited(below, edits, stamp), None))
            case Extend():
                self._extend(step, stamp)
            case Seal(number):
                self._mark(number, "sealed")
                # Under the hash by which a stacked block names it.
                partial = self.partials[number]
                self._seal(Sealed(partial_hash(partial.stamp), stamp, partial.state, number))
            case Drop(numbers):
                for number in numbers:
                    self._mark(number, "dropped", f"dropped by {stamp}")
            case Revive(numbers):
                for number in numbers:
                    self._mark(number, "live")
            case Rewind(block):
                self._rewind(block)
            case Put(key, value):
                self.rows[key] = value
            case Delete(key):
                self.rows.pop(key, None)
        self._forget()

    def _mark(self, number: int, status: Status, reason: str | None = None) -> None:
        self.partials[number] = replace(self.partials[number], status=status, reason=reason)

    def _seal(self, sealed: Sealed) -> None:
        self.latest += 1
        self.highest = max(self.highest, self.latest)
        self.blocks[self.latest] = sealed

    def _extend(self, step: Extend, stamp: int) -> None:
        if step.parent is None:
            below = self.blocks[self.latest]
            state = edited(below.state, step.edits, stamp)
            partial = Partial(self.latest + 1, 0, stamp, state, below.hash, None)
        else:
            before = self.partials[step.parent]
            state = edited(before.state, step.edits, stamp)
            if step.stacked:
                announced = partial_hash(before.stamp)
                partial = Partial(before.block + 1, 0, stamp, state, announced, step.parent)
            else:
                partial = Partial(
                    before.block,
                    before.index + 1,
                    stamp,
                    state,
                    before.parent_hash,
                    before.stacked_on,
                )
        self.partials[stamp] = partial
        self.pending = stamp

    def _rewind(self, block: int) -> None:
        for above in range(block + 1, self.latest + 1):
            number = self.blocks.pop(above).partial
            if number in self.partials:
                self._mark(number, "dropped", "rewound")
        self.latest = block
        self.pending = None

    def _forget(self) -> None:
        """Drop data that retention may prune from now on."""
        for block in [block for block in self.blocks if block < self.highest - KEEP_STATES]:
            del self.blocks[block]
        # One block more than guaranteed: guaranteed blocks may be stacked on it.
        oldest = self.latest - KEEP_PARTIALS - 1
        for number in [key for key, each in self.partials.items() if each.block < oldest]:
            del self.partials[number]
        pending = self.partials.get(self.pending) if self.pending else None
        if pending is None or pending.status != "live" or pending.block <= self.latest:
            self.pending = None

    def reachable(self, number: int) -> bool | None:
        """Return whether the state of a partial block can be read: nothing below it was dropped.

        None when it depends on data that may have been pruned.
        """
        asked = partial = self.partials[number]
        while True:
            if partial.status == "dropped":
                return False
            if partial.status == "sealed" and partial is not asked:
                return True
            if partial.stacked_on is None:
                below = self.blocks.get(partial.block - 1)
                return below is not None and below.hash == partial.parent_hash
            if partial.stacked_on not in self.partials:
                return None
            partial = self.partials[partial.stacked_on]

    def can_seal(self, number: int) -> bool:
        partial, latest = self.partials[number], self.blocks[self.latest]
        if partial.status != "live" or partial.block != self.latest + 1:
            return False
        if partial.stacked_on is None:
            return partial.parent_hash == latest.hash
        return latest.partial == partial.stacked_on

    def next(self, seed: str) -> Step:
        """The next step, a function of seed and model."""
        random = Random(f"{seed}:{self.commit}")
        if not self.blocks:
            return Append(edits(random), folds=False)
        choices = self._choices(random)
        return random.choices([step for _, step in choices], [weight for weight, _ in choices])[0]

    def _choices(self, random: Random) -> list[tuple[int, Step]]:
        choices: list[tuple[int, Step]] = [
            (5, Append(edits(random), folds=random.random() < 0.2)),
            (4, Extend(edits(random), None, stacked=False)),
            (2, some_row(random)),
        ]
        if self.pending is not None and self.reachable(self.pending):
            choices.append((6, Extend(edits(random), self.pending, stacked=False)))
            if self.partials[self.pending].block < self.latest + 3:
                choices.append((3, Extend(edits(random), self.pending, stacked=True)))
        if sealable := [number for number in self.partials if self.can_seal(number)]:
            choices.append((6, Seal(random.choice(sealable))))
        live = [number for number, each in self.partials.items() if each.status == "live"]
        if live:
            choices.append((2, Drop(tuple(random.sample(live, random.randint(1, len(live)))))))
        dropped = [
            number
            for number, each in self.partials.items()
            if each.status == "dropped" and each.reason != "rewound"
        ]
        if dropped:
            choices.append((2, Revive((random.choice(dropped),))))
        depth = min(3, self.latest - min(self.blocks))
        if depth:
            choices.append((2, Rewind(self.latest - random.randint(1, depth))))
        return choices


def some_row(random: Random) -> Put | Delete:
    key = b"some" + bytes([random.randrange(8)])
    if random.random() < 0.3:
        return Delete(key)
    return Put(key, random.randbytes(random.choice([10, 1000, 50_000])))


def edits(random: Random) -> tuple[Edit, ...]:
    return tuple(edit(random, address) for address in random.sample(OTHERS, random.randint(0, 4)))


def edit(random: Random, address: bytes) -> Edit:
    destroy = random.random() < 0.25
    if destroy and random.random() < 0.5:
        return Edit(address, destroy)
    slots = {random.randrange(40): random.randrange(4) for _ in range(random.randrange(20))}
    return Edit(
        address,
        destroy,
        balance=random.randrange(1, 2**80),
        nonce=random.randrange(2**40),
        code=random.choice([None, b"", b"\x00" * 10, random.randbytes(300)]),
        wipe=random.random() < 0.1,
        slots=tuple(sorted(slots.items())),
    )


def edited(state: State, edits: tuple[Edit, ...], stamp: int) -> State:
    """The state after these edits, with its stamp."""
    after = dict(state)
    for each in edits:
        if each.destroy:
            after.pop(each.address, None)
        if each.balance is None or each.nonce is None:
            continue
        before = after.get(each.address, AccountState())
        slots = ({} if each.wipe else before.slots) | dict(each.slots)
        after[each.address] = AccountState(
            balance=each.balance,
            nonce=each.nonce,
            code=before.code if each.code is None else each.code,
            slots={slot: value for slot, value in slots.items() if value},
        )
    after[STAMP] = AccountState(balance=stamp, nonce=1, slots={0: stamp})
    return after
