"""The profile of one chain: its rule set, its fork schedule, its constants, and where they end.

A profile is a value and knows no block: it gives the rules for a number and a time. Before the
merge forks begin at a block number, after it at a time; the caller knows the parent's total
difficulty, which decides whether a block is after the merge. `genesis.config` reads a profile from
a genesis file.

Three things end the rules that this version knows: a fork that the chain's file lists as
unsupported, a transaction of a type that cannot be decoded, and a canonical block with another
result here. From that block on nothing is executed: calls, estimates, simulations, traces and
`pending` are refused, while blocks, receipts and proven state continue. The writer of the chain
checks every block and stores the end (`storage.follow_rows`); readers use the stored value.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from foreblock.ledger.rules.forks import (
    BEDROCK,
    ETHEREUM_RULES_OF,
    LAGOON,
    PARIS,
    EthereumFork,
    OptimismFork,
    Rules,
)
from foreblock.ledger.rules.transaction_rules import (
    ACCESS_LIST,
    BLOB,
    DEPOSIT,
    DYNAMIC_FEE,
    MAX_INIT_CODE,
    POST_EXEC,
    SET_CODE,
)

T = TypeVar("T")

# Activations in the order of their forks: (first block number or time, what begins).
Schedule = tuple[tuple[int, T], ...]


class BlobParameters(Struct, frozen=True):
    """Target and maximum of blobs in a block, and how fast their price moves."""

    target: int
    maximum: int
    update_fraction: int


class OptimismParameters(Struct, frozen=True):
    """Forks and base-fee constants of an OP chain."""

    forks: Schedule[OptimismFork]
    elasticity: int
    denominator: int
    denominator_canyon: int
    block_time: float = 2  # seconds; Base and OP Mainnet


class ChainProfile(Struct, frozen=True):
    """The constants and the fork schedule of one chain."""

    chain_id: int
    forks_by_block: Schedule[EthereumFork]
    forks_by_time: Schedule[EthereumFork]
    blob_schedule: Schedule[BlobParameters]
    terminal_total_difficulty: int | None
    deposit_contract: bytes
    optimism: OptimismParameters | None
    slot_time: float = 12  # seconds; of a chain that is no OP chain
    code_size: int | None = None  # bytes that code may have, where it is not what forks say
    transaction_gas: int | None = None  # that a transaction may have, in the same way
    unsigned: bool = False  # transactions may name their senders; chains of developers only

    @property
    def init_code_size(self) -> int:
        """Bytes that code which creates may have (EIP-3860), from Shanghai on."""
        return MAX_INIT_CODE if self.code_size is None else 2 * self.code_size

    def transaction_gas_cap(self, rules: Rules) -> int | None:
        """The gas that a transaction may have under these rules; None if a block decides."""
        return rules.transaction_gas_cap if self.transaction_gas is None else self.transaction_gas

    @property
    def block_time(self) -> float:
        """The usual number of seconds between blocks."""
        return self.slot_time if self.optimism is None else self.optimism.block_time

    @property
    def time_step(self) -> int:
        """The whole seconds from a block to a simulated one."""
        return math.ceil(self.block_time)

    @property
    def shares_seconds(self) -> bool:
        """Return True if several blocks may have the same timestamp."""
        return self.block_time < 1

    def merged(self, parent_total_difficulty: int) -> bool:
        """True if the child of a block with this total difficulty is after the merge.

        EIP-3675: the first block to reach the terminal total difficulty is the last one mined.
        """
        if self.optimism is not None:
            return True
        terminal = self.terminal_total_difficulty
        return terminal is not None and parent_total_difficulty >= terminal

    def rules(self, number: int, time: int, *, merged: bool) -> Rules:
        """The rules for the block of this number and time."""
        if self.optimism is not None:
            fork = _last(self.optimism.forks, time) or BEDROCK
            return Rules(ETHEREUM_RULES_OF[fork], fork)
        if merged:
            return Rules(_last(self.forks_by_time, time) or PARIS)
        return Rules(_last(self.forks_by_block, number) or EthereumFork.FRONTIER)

    def rules_of_genesis(self, time: int) -> Rules:
        """The rules for block 0, which has no parent and so no side of the merge.

        As in geth, its fork by time counts if London is active at block 0.
        """
        by_block = self.rules(0, time, merged=False)
        by_time = _last(self.forks_by_time, time)
        if by_time is None or by_block.ethereum < EthereumFork.LONDON:
            return by_block
        return self.rules(0, time, merged=True)

    def blob_parameters(self, time: int) -> BlobParameters | None:
        """The parameters for a block of this time; None if blocks hold no blobs."""
        return _last(self.blob_schedule, time)

    def elasticity(self, rules: Rules) -> tuple[int, int]:
        """The constants (elasticity, denominator) by which a base fee moves."""
        if self.optimism is None:
            return 2, 8  # EIP-1559
        if rules.includes(OptimismFork.CANYON):
            return self.optimism.elasticity, self.optimism.denominator_canyon
        return self.optimism.elasticity, self.optimism.denominator


def _last(schedule: Schedule[T], position: int) -> T | None:
    """The last entry that begins at or before `position`."""
    begun = None
    for start, what in schedule:
        if start > position:
            break
        begun = what
    return begun


KNOWN_TYPES: Final = frozenset({ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE, POST_EXEC, DEPOSIT})
_FIRST_LIST: Final = 0xC0  # a legacy transaction is a list


class RulesEnd(Struct, frozen=True):
    """Where the rules end that this version knows, and why."""

    block: int  # the first that cannot be executed
    why: str


def rules_end(
    number: int,
    timestamp: int,
    transactions: Iterable[bytes],
    unsupported: Mapping[str, int],
    profile: ChainProfile,
) -> RulesEnd | None:
    """The end of the rules, if this block is beyond them; checked before it is executed.

    `transactions` are as in their trie, `unsupported` the times of forks by their names, as in
    the chain's file. A post-execution transaction shows that Lagoon has begun.
    """
    begun = [(time, name) for name, time in unsupported.items() if timestamp >= time]
    if begun:
        return RulesEnd(number, f"fork {min(begun)[1]}")
    is_lagoon = profile.rules(number, timestamp, merged=True).includes(LAGOON)
    for place, raw in enumerate(transactions):
        kind = unknown_type(raw)
        if kind is None and raw[:1] == bytes([POST_EXEC]) and not is_lagoon:
            kind = POST_EXEC
        if kind is not None:
            return RulesEnd(number, f"transaction {place} has the type {kind:#04x}")
    return None


def unknown_type(raw: bytes) -> int | None:
    """The type of a transaction that this version cannot decode; none for others."""
    if not raw or raw[0] >= _FIRST_LIST or raw[0] in KNOWN_TYPES:
        return None
    return raw[0]


def diverged(number: int, why: str) -> RulesEnd:
    """The end of the rules at a canonical block that has another result here."""
    return RulesEnd(number, f"its execution differs: {why}")
