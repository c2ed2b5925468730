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

from foreblock.ledger.calls.call import Outcome
from foreblock.ledger.simulation.run import Sealed, SealedText, SimulatedBlock
from foreblock.methods import shapes
from foreblock.methods.options import Dialect
from foreblock.methods.revert import revert_reason
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import Pace, Steps

PORTION: Final = 64  # transactions rendered at once
REVERTED: Final = 3  # the code of a call that reverted, in `ethereum`
LONG: Final = 256 * 1024  # bytes of an answer that is not put together at once
PIECE: Final = 128 * 1024
VM_ERROR: Final = -32015  # the code of one that failed otherwise
LOWERED: Final = " (gas limit was capped by the RPC server's global gas cap)"


class BlockShape(Struct, frozen=True):
    """What is shown of a block."""

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
            size += LONG
        else:
            text = _block(block.block, shape.dialect, transactions)
            texts.append(text)
            size += len(text)
    if size < LONG:
        return shapes.array(texts)  # type: ignore[arg-type]  # nothing long is among them
    yield None
    return _join(texts)


def is_long_block(block: Sealed) -> bool:
    """Whether the text of a block has to be written in pieces."""
    return block.results_size > LONG


def _long_block(
    block: Sealed, shape: BlockShape, transactions: bytes | None, pace: Pace
) -> Steps[list[bytes]]:
    failures: list[tuple[bytes, bytes]] = []
    for outcome, lowered in block.failures:
        failures.append(_failure(outcome, shape.dialect, lowered=lowered))
        if pace.is_over():
            yield None
    return (yield from _pieces(block.long_json(failures, transactions), pace))


def _pieces(text: SealedText, pace: Pace) -> Steps[list[bytes]]:
    pieces: list[bytes] = []
    while piece := text.take(PIECE):
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
