"""The first block whose rules this version does not know. No I/O.

Three things end the rules: a fork that the chain's file lists as unsupported, a transaction of
a type that cannot be decoded, and a canonical block that gives another result here. From that
block on nothing is executed: calls, estimates, simulations, traces and `pending` are refused,
while blocks, receipts and proven state go on. Who writes the chain asks here for every block
that it takes, and stores the answer (`storage.follow_rows`); readers only look at what is stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from foreblock.ledger.rules.transaction_types import (
    ACCESS_LIST,
    BLOB,
    DEPOSIT,
    DYNAMIC_FEE,
    SET_CODE,
)

KNOWN_TYPES: Final = frozenset({ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE, DEPOSIT})
_FIRST_LIST: Final = 0xC0  # a legacy transaction is a list


@dataclass(frozen=True, slots=True)
class RulesEnd:
    """Where the rules end that this version knows, and why."""

    block: int  # the first that cannot be executed
    why: str


def rules_end(
    number: int,
    timestamp: int,
    transactions: Iterable[bytes],
    unsupported: Mapping[str, int],
) -> RulesEnd | None:
    """Whether this block ends the rules, before it is executed; none where it does not.

    `transactions` are as in their trie, `unsupported` the times of forks by their names, as in
    the chain's file.
    """
    begun = [(time, name) for name, time in unsupported.items() if timestamp >= time]
    if begun:
        return RulesEnd(number, f"fork {min(begun)[1]}")
    for place, raw in enumerate(transactions):
        kind = unknown_type(raw)
        if kind is not None:
            return RulesEnd(number, f"transaction {place} has the type {kind:#04x}")
    return None


def unknown_type(raw: bytes) -> int | None:
    """The type of a transaction that this version cannot decode; none for others."""
    if not raw or raw[0] >= _FIRST_LIST or raw[0] in KNOWN_TYPES:
        return None
    return raw[0]


def diverged(number: int, why: str) -> RulesEnd:
    """The end of the rules at a canonical block that gives another result here."""
    return RulesEnd(number, f"its execution differs: {why}")
