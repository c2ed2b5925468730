"""A plain model of a dev chain with all features: state edits, transactions, branches.

The model has no jobs, rows or clock. A chain is a list of blocks, a block is a list of changes, and
a state is the result of replaying all changes up to a position. Sealing is not modelled: `seal`
takes the block that the chain has sealed, and rejects an impossible one.

In a block that is restarted, or that loses its tail, state edits are applied first and then the
transactions run again. The chain promises this order, and the model verifies it, because
transactions pay the edited accounts.
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
    """Account fields, edited by hand."""

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
    """Read the state of the same people from the chain."""
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
    """The history of a chain."""

    people: World  # the genesis state
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
        """Changes in the block in progress."""
        return [each for index in self.open for each in index]

    # --- States ------------------------------------------------------------------------

    def world(self, height: int | None = None) -> World:
        """The state after a block, or after all changes."""
        found = deepcopy(self.people)
        for change in self._until(height):
            if isinstance(change, Set):
                found[change.who].set(change)
            elif change.to in found:
                found[change.to].balance += change.value
        return found

    def latest(self) -> World:
        """The state at `latest`; without a clock this includes later state edits."""
        if self.mining == "clock":
            return self.world(self.height)
        seen = deepcopy(self)
        seen.open = [seen.leading]
        return seen.world()

    @property
    def leading(self) -> list[Change]:
        """State edits in the block in progress before its first transaction."""
        found: list[Change] = []
        for change in self.in_progress:
            if isinstance(change, Sent):
                break
            found.append(change)
        return found

    def nonces(self, height: int | None = None) -> Counter[bytes]:
        """The number of transactions of each sender up to a block, or in total."""
        return Counter(each.sender for each in self._until(height) if isinstance(each, Sent))

    def hashes(self) -> set[bytes]:
        """All transactions known to the chain, including waiting ones."""
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
        """Edit an account, in a separate index."""
        self.open.append([change])

    def run(self) -> None:
        """Include every executable transaction in the block in progress."""
        nonces, ran = self.nonces(), list[Change]()
        for key in sorted(self.waiting):
            sender, nonce = key
            if nonce == nonces[sender]:
                ran.append(self.waiting.pop(key))
                nonces[sender] += 1
        if ran:
            self.open.append(ran)

    def requeue(self, some: Iterable[Change]) -> None:
        self.waiting |= {each.key: each for each in some if isinstance(each, Sent)}

    def restart_block(self) -> None:
        """Restart the block in progress: apply state edits, then run transactions."""
        changes = self.in_progress
        self.open = []
        self.reapply(changes)

    def reapply(self, changes: Sequence[Change]) -> None:
        """Apply dropped changes again: edit accounts, and queue transactions."""
        again = [each for each in changes if isinstance(each, Set)]
        if again:
            self.open.append(list(again))
        self.requeue(changes)

    def go_back(self, height: int, *, puts_back: bool = False, empty: int = 0) -> None:
        """Drop the blocks above this one and replace them by this many empty ones.

        With `puts_back` all dropped changes are applied again; otherwise only the transactions of
        the block in progress.
        """
        given_up = [each for block in self.blocks[height:] for each in block]
        del self.blocks[height:]
        unsealed, self.open = self.in_progress, []
        self.blocks += [[] for _ in range(empty)]
        if puts_back:
            self.reapply([*given_up, *unsealed])
        else:
            self.requeue(unsealed)

    def seal(self, hashes: Sequence[bytes]) -> None:
        """Record a sealed block with these transactions and all preceding state edits."""
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
