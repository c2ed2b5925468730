"""Simulated blocks as JSON text, in either dialect.

a failed call     preconf: `error` is a text, revert data is what it returned
                  ethereum: `error` is an object with the data, nothing is returned
fillers           preconf: left out; ethereum: shown
"""

from binascii import hexlify
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from foreblock.ledger.simulation.block import SimulatedBlock
from foreblock.ledger.simulation.calls import CallResult
from foreblock.ledger.simulation.steps import Steps
from foreblock.ledger.stored_block import Header
from foreblock.methods import shapes
from foreblock.methods.options import Dialect
from foreblock.methods.revert import revert_reason

PORTION = 64  # calls rendered at once
REVERTED = 3  # the code of a call that reverted, in `ethereum`
VM_ERROR = -32015  # the code of one that failed otherwise
LOWERED = " (gas limit was capped by the RPC server's global gas cap)"


class BlockShape(Struct, frozen=True):
    """What is shown of a block."""

    dialect: Dialect
    full_transactions: bool


def render(blocks: Sequence[SimulatedBlock], shape: BlockShape) -> Steps[bytes]:
    """All blocks that are shown, in portions."""
    texts = []
    for block in blocks:
        if block.is_filler and shape.dialect == "preconf":
            continue
        texts.append((yield from _block(block, shape)))
    return shapes.array(texts)


def _block(simulated: SimulatedBlock, shape: BlockShape) -> Steps[bytes]:
    block = simulated.block
    header = block.header
    around = _LogEnds(header)
    calls, transactions = [], []
    for index, result in enumerate(simulated.calls):
        calls.append(_call(result, index, around, shape.dialect))
        if shape.full_transactions:
            transactions.append(shapes.fragment(result.transaction, index, header))
        else:
            transactions.append(shapes.data(result.transaction.hash))
        if index % PORTION == PORTION - 1:
            yield None
    parts = [b"{", shapes.header_members(header, block.size), b',"uncles":[]']
    if block.withdrawals is not None:
        withdrawals = list(map(shapes.withdrawal, block.withdrawals))
        parts += [b',"withdrawals":', shapes.array(withdrawals)]
    parts.append(b',"transactions":')
    if shape.full_transactions:
        parts.append(shapes.join_fragments(header.hash, transactions))
    else:
        parts.append(shapes.array(transactions))
    parts += [b',"calls":', shapes.array(calls), b"}"]
    return b"".join(parts)


class _LogEnds:
    """What every log of a block says of the block, rendered once."""

    def __init__(self, header: Header) -> None:
        self.text = b'"blockNumber":"0x%x","blockHash":"0x%b","blockTimestamp":"0x%x"' % (
            header.number,
            hexlify(header.hash),
            header.timestamp,
        )


def _call(result: CallResult, index: int, around: _LogEnds, dialect: Dialect) -> bytes:
    outcome = result.outcome
    succeeded = outcome.status == "success"
    returned, error = outcome.output, b""
    if not succeeded:
        returned, error = _failure(result, dialect)
    return (
        b'{"status":"0x%d","returnData":"0x%b","gasUsed":"0x%x","maxUsedGas":"0x%x","logs":%b%b}'
        % (
            succeeded,
            hexlify(returned),
            outcome.gas_used,
            outcome.max_gas_used,
            _logs(result, index, around) if result.logs else b"[]",
            error,
        )
    )


def _failure(result: CallResult, dialect: Dialect) -> tuple[bytes, bytes]:
    """What a failed call returns, and its `error` member."""
    outcome = result.outcome
    if outcome.status == "revert":
        output = outcome.output
        reason = revert_reason(output)
        message = f"execution reverted: {reason}" if reason else "execution reverted"
        error = {"code": REVERTED, "message": message, "data": "0x" + output.hex()}
    else:
        output = b""
        message = (outcome.halt or "execution failed") + (LOWERED if result.gas_lowered else "")
        error = {"code": VM_ERROR, "message": message}
    if dialect == "preconf":
        return output, b',"error":' + msgspec.json.encode(message)
    return b"", b',"error":' + msgspec.json.encode(error)


def _logs(result: CallResult, index: int, around: _LogEnds) -> bytes:
    place = b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b,"removed":false' % (
        hexlify(result.transaction.hash),
        index,
        around.text,
    )
    return shapes.array(
        [
            b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",%b}'
            % (
                hexlify(log.address),
                shapes.array(list(map(shapes.data, log.topics))),
                hexlify(log.data),
                position,
                place,
            )
            for position, log in result.logs
        ]
    )
