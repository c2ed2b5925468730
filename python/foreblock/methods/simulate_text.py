"""Simulated blocks as JSON text, in either dialect.

a failed call     preconf: `error` is a text, revert data is what it returned
                  ethereum: `error` is an object with the data, nothing is returned
fillers           preconf: left out; ethereum: shown

What no dialect decides, the engine writes: headers, results, logs.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from foreblock.ledger.call import Outcome
from foreblock.ledger.simulation.block import Sealed, SimulatedBlock
from foreblock.ledger.simulation.steps import Pace, Steps
from foreblock.methods import shapes
from foreblock.methods.options import Dialect
from foreblock.methods.revert import revert_reason

PORTION: Final = 64  # transactions rendered at once
REVERTED: Final = 3  # the code of a call that reverted, in `ethereum`
VM_ERROR: Final = -32015  # the code of one that failed otherwise
LOWERED: Final = " (gas limit was capped by the RPC server's global gas cap)"


class BlockShape(Struct, frozen=True):
    """What is shown of a block."""

    dialect: Dialect
    full_transactions: bool


def render(blocks: Sequence[SimulatedBlock], shape: BlockShape, pace: Pace) -> Steps[bytes]:
    """All blocks that are shown."""
    texts: list[bytes] = []
    for block in blocks:
        if texts and pace.is_over():
            yield None
        if block.is_filler and shape.dialect == "preconf":
            continue
        transactions = None
        if shape.full_transactions:
            transactions = yield from _full_transactions(block, pace)
        texts.append(_block(block.block, shape.dialect, transactions))
    return shapes.array(texts)


def render_block(block: Sealed, dialect: Dialect) -> bytes:
    """One block alone, with the hashes of its transactions."""
    return shapes.array((_block(block, dialect),))


def _block(block: Sealed, dialect: Dialect, transactions: bytes | None = None) -> bytes:
    failures = [_failure(outcome, dialect, lowered=lowered) for outcome, lowered in block.failures]
    return block.json(failures, transactions)


def _full_transactions(simulated: SimulatedBlock, pace: Pace) -> Steps[bytes]:
    header = simulated.block.header
    fragments = []
    for index, transaction in enumerate(simulated.block.transactions()):
        fragments.append(shapes.fragment(transaction, index, header))
        if index % PORTION == PORTION - 1 and pace.is_over():
            yield None
    return shapes.join_fragments(header.hash, fragments)


def _failure(outcome: Outcome, dialect: Dialect, *, lowered: bool) -> tuple[bytes, bytes]:
    """What a failed call is said to have returned, and its `error` member.

    `lowered` tells whether it could have had more gas in its block.
    """
    if outcome.status == "revert":
        output = outcome.output
        reason = revert_reason(output)
        message = f"execution reverted: {reason}" if reason else "execution reverted"
        error = {"code": REVERTED, "message": message, "data": "0x" + output.hex()}
    else:
        output = b""
        message = (outcome.halt or "execution failed") + (LOWERED if lowered else "")
        error = {"code": VM_ERROR, "message": message}
    if dialect == "preconf":
        return output, b',"error":' + msgspec.json.encode(message)
    return b"", b',"error":' + msgspec.json.encode(error)
