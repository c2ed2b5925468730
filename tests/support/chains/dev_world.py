"""A plain model of a dev chain with everything on it: accounts set by hand, transactions, branches.

It knows nothing of jobs, rows or the clock. A chain is a list of blocks, a block is a list of
what happened in it, and a state is what happened up to a place, done again from the start. What
seals a block is not modelled: `seal` takes what the chain has sealed, and refuses what cannot be.

In a block that is begun anew, or that loses its tail, accounts are set again first, and then the
transactions run again; that is the order which the chain promises, and here it can be seen,
because transactions pay the accounts that are set.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from foreblock._engine import State

SLOTS = 4


@dataclass(frozen=True)
class Sent:
    """A transaction that pays its recipient."""

    sender: bytes
    nonce: int
    to: bytes
    value: int
    hash: bytes

    @property
    def key(self) -> tuple[bytes, int]:
        return self.sender, self.nonce


@dataclass(frozen=True)
class Set:
    """Fields of an account, set by hand."""

    who: bytes
    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    slot: tuple[int, int] | None = None


@dataclass
class Person:
    """An account."""

    balance: int = 0
    nonce: int = 0
    code: bytes = b""
    slots: list[int] = field(default_factory=lambda: [0] * SLOTS)

    def set(self, change: Set) -> None:
        self.balance = self.balance if change.balance is None else change.balance
        self.nonce = self.nonce if change.nonce is None else change.nonce
        self.code = self.code if change.code is None else change.code
        if change.slot is not None:
            at, value = change.slot
            self.slots[at] = value


Change = Sent | Set
World = dict[bytes, Person]


def world_of(state: State, people: Iterable[bytes]) -> World:
    """The same people as a chain has them."""
    return {
        each: Person(
            state.balance(each),
            state.nonce(each),
            state.code(each),
            [state.storage(each, slot) for slot in range(SLOTS)],
        )
        for each in people
    }


@dataclass
class DevWorld:
    """What happened on a chain."""

    people: World  # at the genesis
    blocks: list[list[Change]] = field(default_factory=list)  # sealed, block 1 first
    open: list[list[Change]] = field(default_factory=list)  # in the block in progress, by index
    waiting: dict[tuple[bytes, int], Sent] = field(default_factory=dict)
    mining: str = "automine"
    impersonated: set[bytes] = field(default_factory=set)
    impersonates_all: bool = False

    def copy(self) -> "DevWorld":
        return deepcopy(self)

    @property
    def height(self) -> int:
        return len(self.blocks)

    @property
    def in_progress(self) -> list[Change]:
        """What happened in the block in progress."""
        return [each for index in self.open for each in index]

    # --- States ------------------------------------------------------------------------

    def world(self, height: int | None = None) -> World:
        """The people after a block, or after all that happened."""
        found = deepcopy(self.people)
        for change in self._until(height):
            if isinstance(change, Set):
                found[change.who].set(change)
            elif change.to in found:
                found[change.to].balance += change.value
        return found

    def latest(self) -> World:
        """The people as `latest` shows them: beside the clock, with what was set since."""
        if self.mining == "clock":
            return self.world(self.height)
        seen = deepcopy(self)
        seen.open = [seen.leading]
        return seen.world()

    @property
    def leading(self) -> list[Change]:
        """What was set in the block in progress before its first transaction."""
        found: list[Change] = []
        for change in self.in_progress:
            if isinstance(change, Sent):
                break
            found.append(change)
        return found

    def nonces(self, height: int | None = None) -> Counter[bytes]:
        """How many transactions of each sender there are up to a block, or in all."""
        return Counter(each.sender for each in self._until(height) if isinstance(each, Sent))

    def hashes(self) -> set[bytes]:
        """The transactions that the chain knows, those that wait included."""
        ran = {each.hash for each in self._until(None) if isinstance(each, Sent)}
        return ran | {each.hash for each in self.waiting.values()}

    def _until(self, height: int | None) -> Iterator[Change]:
        for block in self.blocks if height is None else self.blocks[:height]:
            yield from block
        if height is None:
            yield from self.in_progress

    # --- Changes -----------------------------------------------------------------------

    def next_nonce(self, sender: bytes) -> int:
        nonce = self.nonces()[sender]
        while (sender, nonce) in self.waiting:
            nonce += 1
        return nonce

    def send(self, sent: Sent) -> None:
        self.waiting[sent.key] = sent

    def set(self, change: Set) -> None:
        """An account is set, in an index of its own."""
        self.open.append([change])

    def run(self) -> None:
        """All that can run is in the block in progress."""
        nonces, ran = self.nonces(), list[Change]()
        for key in sorted(self.waiting):
            sender, nonce = key
            if nonce == nonces[sender]:
                ran.append(self.waiting.pop(key))
                nonces[sender] += 1
        if ran:
            self.open.append(ran)

    def wait_again(self, some: Iterable[Change]) -> None:
        self.waiting |= {each.key: each for each in some if isinstance(each, Sent)}

    def begin_anew(self) -> None:
        """The block in progress begins anew: accounts are set first, then transactions run."""
        changes = self.in_progress
        self.open = []
        self.take_up(changes)

    def take_up(self, changes: Sequence[Change]) -> None:
        """Changes that were given up happen again: accounts are set, and transactions wait."""
        again = [each for each in changes if isinstance(each, Set)]
        if again:
            self.open.append(list(again))
        self.wait_again(changes)

    def go_back(self, height: int, *, puts_back: bool = False, empty: int = 0) -> None:
        """Blocks above this one are given up, and this many empty ones take their place.

        With `puts_back` what was in them happens again; otherwise transactions of the block in
        progress do, and nothing else.
        """
        given_up = [each for block in self.blocks[height:] for each in block]
        del self.blocks[height:]
        unsealed, self.open = self.in_progress, []
        self.blocks += [[] for _ in range(empty)]
        if puts_back:
            self.take_up([*given_up, *unsealed])
        else:
            self.wait_again(unsealed)

    def seal(self, hashes: Sequence[bytes]) -> None:
        """A block was sealed, with these transactions, and all that was set before it."""
        self.run()
        known = {each.hash for each in self.in_progress if isinstance(each, Sent)}
        assert set(hashes) <= known, "a block has what ran, and nothing else"
        taken: list[Change] = []
        left: list[Change] = []
        for change in self.in_progress:
            is_in = isinstance(change, Set) or change.hash in set(hashes)
            (taken if is_in else left).append(change)
        self._check_order(hashes, taken)
        self.blocks.append(taken)
        self.open = [left] if left else []

    def _check_order(self, hashes: Sequence[bytes], taken: list[Change]) -> None:
        found, nonces = {each.hash: each for each in taken if isinstance(each, Sent)}, self.nonces
        counted = nonces(self.height)
        for each in (found[one] for one in hashes):
            assert each.nonce == counted[each.sender], "in the order of the nonces"
            counted[each.sender] += 1
