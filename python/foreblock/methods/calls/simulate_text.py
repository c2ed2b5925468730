"""Simulated blocks as JSON text, in either dialect.

a failed call     preconf: `error` is a text, revert data is what it returned
                  ethereum: `error` is an object with the data, nothing is returned
fillers           preconf: left out; ethereum: shown

The engine writes the parts that are equal in both dialects: headers, results, logs.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from foreblock.ledger.calls.call import Outcome
from foreblock.ledger.simulation.run import BodyText, SealedBody, SimulatedBlock
from foreblock.methods import shapes
from foreblock.methods.calls.revert import revert_reason
from foreblock.methods.options import Dialect
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS

REVERTED: Final = 3  # the code of a call that reverted, in `ethereum`
VM_ERROR: Final = -32015  # the code of one that failed otherwise
LOWERED: Final = " (gas limit was capped by the RPC server's global gas cap)"


class BlockShape(Struct, frozen=True):
    """The options for the text of a block."""

    dialect: Dialect
    full_transactions: bool


def render(blocks: Sequence[SimulatedBlock], shape: BlockShape, pace: Pace) -> Steps[Text]:
    """All blocks that are shown; in pieces where that is long."""
    texts: list[Text] = []
    size = 0
    for block in blocks:
        if texts and pace.is_over():
            yield None
        if block.is_filler and shape.dialect == "preconf":
            continue
        transactions = None
        if shape.full_transactions:
            transactions = yield from _full_transactions(block, pace)
        if is_long_block(block.block):
            texts.append((yield from _long_block(block.block, shape, transactions, pace)))
            size += THRESHOLDS.pieces_bytes
        else:
            text = _block(block.block, shape.dialect, transactions)
            texts.append(text)
            size += len(text)
    if size < THRESHOLDS.pieces_bytes:
        return shapes.array(texts)  # type: ignore[arg-type]  # nothing long is among them
    yield None
    return _join(texts)


def is_long_block(block: SealedBody) -> bool:
    """Whether the text of a block has to be written in pieces."""
    return block.results_size > THRESHOLDS.pieces_bytes


def _long_block(
    block: SealedBody, shape: BlockShape, transactions: bytes | None, pace: Pace
) -> Steps[list[bytes]]:
    failures: list[tuple[bytes, bytes]] = []
    for outcome, lowered in block.failures:
        failures.append(_failure(outcome, shape.dialect, lowered=lowered))
        if pace.is_over():
            yield None
    return (yield from _pieces(block.long_json(failures, transactions), pace))


def _pieces(text: BodyText, pace: Pace) -> Steps[list[bytes]]:
    pieces: list[bytes] = []
    while piece := text.take(THRESHOLDS.piece_bytes):
        pieces.append(piece)
        if pace.is_over():
            yield None
    return pieces


def _join(texts: Sequence[Text]) -> list[bytes]:
    """The pieces of an array of texts, none of which is copied."""
    pieces = [b"["]
    for text in texts:
        if isinstance(text, bytes):
            pieces.append(text)
        else:
            pieces += text
        pieces.append(b",")
    pieces[-1] = b"]"
    return pieces


def render_block(block: SealedBody, dialect: Dialect) -> bytes:
    """One block alone, with the hashes of its transactions."""
    return shapes.array((_block(block, dialect),))


def _block(block: SealedBody, dialect: Dialect, transactions: bytes | None = None) -> bytes:
    failures = [_failure(outcome, dialect, lowered=lowered) for outcome, lowered in block.failures]
    return block.json(failures, transactions)


def _full_transactions(simulated: SimulatedBlock, pace: Pace) -> Steps[bytes]:
    header = simulated.block.header
    fragments = []
    some = THRESHOLDS.rendered_simulated
    for index, transaction in enumerate(simulated.block.transactions()):
        fragments.append(transaction.fragment(header, index))
        if index % some == some - 1 and pace.is_over():
            yield None
    return shapes.join_fragments(header.hash, fragments)


def _failure(outcome: Outcome, dialect: Dialect, *, lowered: bool) -> tuple[bytes, bytes]:
    """The `returnData` and `error` members of a failed call.

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
