"""State that a message or a block waits for: the keys that its run did not find. No I/O.

On a store that knows a part of its base only, a run may miss keys. They are collected over all
transactions, together with what their envelopes name: senders and recipients, access lists, what
the start of a block touches. Whoever follows has them fetched and learned, and the message, which
is buffered meanwhile, or the block is tried again. How often that is done is bounded here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from foreblock._engine import Header, MissingKeys, Overlay, Transaction
from foreblock.errors import StateMissing
from foreblock.ledger.rules.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    HISTORY_STORAGE,
    HISTORY_WINDOW,
    WITHDRAWAL_REQUESTS,
    start_calls,
)
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.state_keys import StateKeys

MOST_ROUNDS: Final = 16  # in which state is learned for one message
MOST_WAITING: Final = 1024  # messages whose rounds are counted; on overflow all restart
RING: Final = HISTORY_WINDOW  # slots of the contracts of EIP-4788 and EIP-2935
# OP: what every transaction pays to (sequencer, base fee, L1 fee and operator fee vaults).
FEE_VAULTS: Final = tuple(
    bytes.fromhex(f"42000000000000000000000000000000000000{last}")
    for last in ("11", "19", "1a", "1b")
)
# OP: where L1Block has what fees are computed from, Bedrock to Jovian.
L1_SLOTS: Final = tuple(range(9))
_EMPTY_TO: Final = (None, b"")


class MissingNodes(Struct, frozen=True):
    """Trie nodes that a state root needs: those of proofs of these keys at one block."""

    number: int
    hash: bytes
    root: bytes  # of the state, which the proofs must lead from
    keys: Mapping[bytes, Collection[int]]  # slots by account

    @classmethod
    def at(cls, header: Header, keys: Mapping[bytes, Collection[int]]) -> "MissingNodes":
        """The nodes of proofs at the block of a header."""
        return cls(header.number, header.hash, header.state_root, keys)


class MissingState(Struct):
    """Keys of one state; `contracts` are accounts whose code is likely to be needed with them."""

    accounts: set[bytes] = field(default_factory=set)
    slots: dict[bytes, set[int]] = field(default_factory=dict)
    codes: dict[bytes, bytes] = field(default_factory=dict)  # by hash: an account, or empty
    blocks: set[int] = field(default_factory=set)
    contracts: set[bytes] = field(default_factory=set)
    nodes: list[MissingNodes] = field(default_factory=list)  # of blocks whose root is computed
    # Without these accounts and slots a run cannot go on; the others are likely to be read.
    needed_accounts: set[bytes] = field(default_factory=set)
    needed_slots: dict[bytes, set[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.accounts or self.slots or self.codes or self.blocks or self.nodes)

    @property
    def is_needed(self) -> bool:
        """Return True if a run cannot continue without some of it."""
        return bool(
            self.needed_accounts or self.needed_slots or self.codes or self.blocks or self.nodes
        )

    @property
    def keys(self) -> StateKeys:
        """All keys; new contracts come with their codes."""
        return StateKeys(
            frozenset(self.accounts),
            _frozen(self.slots),
            dict(self.codes),
            frozenset(self.accounts & self.contracts),
            frozenset(self.blocks),
        )

    @property
    def needed(self) -> StateKeys:
        """The keys without which a run cannot go on."""
        slots = _frozen(self.needed_slots)
        return StateKeys(frozenset(self.needed_accounts), slots, dict(self.codes))

    def __len__(self) -> int:
        slots = sum(map(len, self.slots.values()))
        nodes = sum(len(each.keys) for each in self.nodes)
        return len(self.accounts) + slots + len(self.codes) + len(self.blocks) + nodes

    def add(self, missed: "MissingKeys | MissingState") -> None:
        """Add what a run has missed; an account that it called has code, as far as one can say."""
        self.accounts.update(missed.accounts)
        for address, slots in missed.slots.items():
            self.slots.setdefault(address, set()).update(slots)
        for code, home in missed.codes.items():
            self.codes[code] = self.codes.get(code) or home
        self.blocks.update(missed.blocks)

    def need(self, missed: MissingKeys) -> None:
        """Add what a run has missed, and cannot go on without."""
        self.add(missed)
        self.needed_accounts.update(missed.accounts)
        for address, slots in missed.slots.items():
            self.needed_slots.setdefault(address, set()).update(slots)

    def keep_only(self, missed: MissingKeys) -> None:
        """Drop the accounts and slots that are not missed any more."""
        accounts, slots = missed.accounts, missed.slots
        self.accounts.intersection_update(accounts)
        self.needed_accounts.intersection_update(accounts)
        for mine in (self.slots, self.needed_slots):
            for address in list(mine):
                mine[address].intersection_update(slots.get(address, ()))
                if not mine[address]:
                    del mine[address]

    def merge(self, other: "MissingState") -> None:
        """Add the keys of another."""
        self.add(other)
        self.needed_accounts |= other.needed_accounts
        for address, slots in other.needed_slots.items():
            self.needed_slots.setdefault(address, set()).update(slots)
        self.contracts |= other.contracts
        self.nodes += other.nodes


def _frozen(slots: Mapping[bytes, set[int]]) -> dict[bytes, frozenset[int]]:
    return {address: frozenset(keys) for address, keys in slots.items() if keys}


def missed_by(missing: StateMissing) -> MissingState:
    """The state that the run which raised this error has missed."""
    wanted = MissingState()
    wanted.need(missing.misses)
    wanted.contracts |= wanted.accounts
    return wanted


def unknown_in_envelopes(
    overlay: Overlay, transactions: Sequence[Transaction], rules: Rules
) -> MissingState:
    """The unknown state that the envelopes of transactions name."""
    wanted = MissingState()
    for each in transactions:
        if each.type != DEPOSIT:
            _add_unknown(overlay, wanted, each.sender)
        if each.to not in _EMPTY_TO:
            assert each.to is not None
            _add_unknown(overlay, wanted, each.to, has_code=bool(each.input))
        for address, slots in each.access_list or ():
            _add_unknown(overlay, wanted, address, (int.from_bytes(slot) for slot in slots))
    if rules.optimism is not None and transactions:
        for vault in FEE_VAULTS:
            _add_unknown(overlay, wanted, vault)
        _add_unknown(overlay, wanted, L1_BLOCK, L1_SLOTS, has_code=True)
    return wanted


def unknown_at_start(overlay: Overlay, header: Header, rules: Rules) -> MissingState:
    """The unknown state that the start and the end of a block touch."""
    wanted = MissingState()
    for contract, _ in start_calls(header, rules):
        _add_unknown(overlay, wanted, contract, _ring_slots(contract, header), has_code=True)
    if rules.optimism is None:
        _add_unknown(overlay, wanted, header.beneficiary)
        if rules.ethereum >= EthereumFork.PRAGUE:
            for contract in (WITHDRAWAL_REQUESTS, CONSOLIDATION_REQUESTS):
                _add_unknown(overlay, wanted, contract, range(4), has_code=True)
    return wanted


def _ring_slots(contract: bytes, header: Header) -> tuple[int, ...]:
    if contract == BEACON_ROOTS:
        at = header.timestamp % RING
        return at, at + RING
    assert contract == HISTORY_STORAGE
    return ((header.number - 1) % RING,)


def _add_unknown(
    overlay: Overlay,
    wanted: MissingState,
    address: bytes,
    slots: Iterable[int] = (),
    *,
    has_code: bool = False,
) -> None:
    """Read an account and some of its slots; what is not known is wanted."""
    try:
        account = overlay.account(address)
    except StateMissing as missing:
        wanted.add(missing.misses)
        if has_code:
            wanted.contracts.add(address)
        more = set(slots)
        if more:
            wanted.slots.setdefault(address, set()).update(more)
        return
    if account is None:
        return
    for slot in slots:
        try:
            overlay.storage(address, slot)
        except StateMissing as missing:
            wanted.add(missing.misses)


class RetryBudget:
    """How often each message was retried for missing state since the last fetch."""

    def __init__(self) -> None:
        self._rounds: dict[int, tuple[int, int]] = {}  # by identity: rounds, and the last learning
        self._learnings = 0

    def learned(self) -> None:
        """Something was learned, so that trying again makes sense."""
        self._learnings += 1

    def __contains__(self, identity: int) -> bool:
        return identity in self._rounds

    def is_over(self, identity: int) -> bool:
        """Count a try of a message that wants state; whether it was tried often enough."""
        rounds, seen = self._rounds.get(identity, (0, -1))
        if seen != self._learnings:
            if len(self._rounds) >= MOST_WAITING:
                self._rounds.clear()
            rounds += 1
            self._rounds[identity] = rounds, self._learnings
        return rounds > MOST_ROUNDS

    def done(self, identity: int) -> None:
        """A message waits no longer."""
        self._rounds.pop(identity, None)
