"""One flashblock, executed on its block in progress and judged.

Nothing is stored. After a refusal the block has seen parts of the message and is to be
thrown away.
"""

from foreblock._engine import Allowance, Transaction, decode_transactions
from foreblock.errors import (
    BadBlock,
    CallerError,
    ExecutionError,
    InvalidTransaction,
    OverBudget,
)
from foreblock.errors import Undecodable as UndecodableBytes
from foreblock.ledger.building.block_in_progress import BlockInProgress, Foundation
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.following.bounds import GAS, MOST_GROWTH
from foreblock.ledger.following.verdict import (
    Diverged,
    Overrun,
    Refusal,
    Undecodable,
    Unsupported,
    check_growth,
    judge,
    judge_state_root,
)
from foreblock.ledger.rules.transaction_types import BLOB
from foreblock.primitives import ZERO_HASH
from foreblock.types import Base, Diff, Flashblock


def begin(foundation: Foundation, base: Base, payload_id: bytes) -> BlockInProgress | Refusal:
    """The block that begins there, unless its base cannot follow."""
    most = MOST_GROWTH * foundation.parent.gas_limit
    if base.gas_limit > most:
        return Diverged("gas_limit", f"{most} at most", str(base.gas_limit))
    try:
        return BlockInProgress.begin(foundation, base, payload_id)
    except BadBlock as bad:
        return Diverged(bad.what, bad.expected, bad.found)
    except CallerError as wrong:
        return Diverged("base", "values that a header can have", str(wrong))


def apply(
    block: BlockInProgress,
    message: Flashblock,
    before: Diff | None,
    number: int,
    allowance: Allowance,
) -> ClosedIndex | Refusal:
    """The index that the message makes of the block; `number` is what it will be stored as.

    `before` is what the flashblock before it said.
    """
    diff = message.diff
    shrunk = check_growth(diff, before, block.base.gas_limit)
    refusal = shrunk or _run(block, diff.transactions, allowance)
    if refusal is not None:
        return refusal
    closed = block.close_index(number, diff.state_root)
    verdict = judge(message, closed.header, block.rules)
    if isinstance(verdict, Diverged):
        return verdict
    if diff.state_root != ZERO_HASH:
        verdict = judge_state_root(diff, block.roots.root())
        if isinstance(verdict, Diverged):
            return verdict
    return closed


def _run(block: BlockInProgress, raws: tuple[bytes, ...], allowance: Allowance) -> Refusal | None:
    try:
        transactions = decode_transactions(raws)
    except UndecodableBytes as undecodable:
        return Undecodable(str(undecodable))
    for place, transaction in enumerate(transactions):
        refusal = _run_one(block, place, transaction, allowance)
        if refusal is not None:
            return refusal
    return None


def _run_one(
    block: BlockInProgress, place: int, transaction: Transaction, allowance: Allowance
) -> Refusal | None:
    if transaction.type == BLOB:
        return Unsupported(f"transactions[{place}]: a blob transaction")
    try:
        block.run(transaction, allowance)
    except InvalidTransaction as invalid:
        return Diverged(f"transactions[{place}]", "one that is valid here", invalid.why)
    except OverBudget as over:
        if over.what == GAS:
            # As any other that says too little: it may follow another prefix than ours.
            return Diverged(f"transactions[{place}]", "all gas that the message says", "more")
        return Overrun(f"transactions[{place}] takes more {over.what} than it may")
    except ExecutionError as failed:
        return Unsupported(f"transactions[{place}]: {failed}")
    return None
