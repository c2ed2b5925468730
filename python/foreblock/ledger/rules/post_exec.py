"""The transaction that may end a block from Lagoon on, with the refunds of its sequencer.

It has a version, the number of its block, and for each transaction that gets a refund its index and
the gas (specs.optimism.io, Lagoon, post-exec and sdm). The engine settles a refund with the
transaction that gets it: the transaction is charged for less gas, and its sender gets the
difference from those who were paid. Here is what makes such a transaction valid before anything
is executed; that a refund is at most the gas, and that nobody's balance falls below zero, is
checked by the engine.
"""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Transaction, decode_transaction
from foreblock.errors import Undecodable
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.forks import LAGOON, Rules
from foreblock.ledger.rules.transaction_rules import DEPOSIT, POST_EXEC

VERSION: Final = 1  # sequencer-defined metering

Refunds = Sequence[tuple[int, int]]  # the index of a transaction, and gas


def refunds_of(transactions: Sequence[Transaction], rules: Rules, check: Check) -> Refunds:
    """The refunds of a block; none without a post-execution transaction.

    Raises `BadBlock` if it is not the last transaction, or not valid there.
    """
    kinds = [each.type for each in transactions]
    if POST_EXEC not in kinds:
        return ()
    place = kinds.index(POST_EXEC)
    if place != len(kinds) - 1:
        check.fail("post-execution transaction", "at the end of the block", f"at {place}")
    return checked_refunds(transactions[place], kinds[:-1], rules, check)


def checked_refunds(
    transaction: Transaction, kinds: Sequence[int], rules: Rules, check: Check
) -> Refunds:
    """The refunds of a post-execution transaction after transactions of these types.

    Raises `BadBlock`.
    """
    if not rules.includes(LAGOON):
        check.fail("post-execution transaction", "none before Lagoon", "one")
    assert transaction.post_exec is not None, "its type says so"
    version, number, refunds = transaction.post_exec
    check.equal("post-execution version", VERSION, version)
    check.equal("post-execution block number", check.number, number)
    if not refunds:
        check.fail("refunds", "one at least", "none")
    before = -1
    for index, gas in refunds:
        if index <= before:
            check.fail("index of a refund", f"above {before}", index)
        if index >= len(kinds) or kinds[index] in {DEPOSIT, POST_EXEC}:
            check.fail("index of a refund", "that of a transaction with fees", index)
        if gas == 0:
            check.fail(f"refund of transaction {index}", "more than 0", gas)
        before = index
    return refunds


def refunds_in(transaction: Transaction) -> Refunds:
    """The refunds of a post-execution transaction that was valid in its block."""
    return () if transaction.post_exec is None else transaction.post_exec[2]


def stated_refunds(raw: bytes | None) -> Refunds:
    """The refunds that a transaction states before it is checked; none if it is of another type."""
    if raw is None or raw[:1] != bytes([POST_EXEC]):
        return ()
    try:
        return refunds_in(decode_transaction(raw))
    except Undecodable:
        return ()


def refund_each(kinds: Sequence[int], first: int, gas: int) -> Refunds:
    """Refund this gas to each transaction that pays fees; `first` is the first index."""
    return [(at, gas) for at, kind in enumerate(kinds, first) if kind not in {DEPOSIT, POST_EXEC}]
