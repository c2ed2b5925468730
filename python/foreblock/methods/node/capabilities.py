"""eth_capabilities, op_supportedCapabilities: what is kept, and what is spoken."""

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.node.about import take_none
from foreblock.methods.shapes import members, write_data, write_quantity


def capabilities(view: LedgerView, raw: Raw) -> bytes:
    """The oldest block of each kind of data, for clients that choose among nodes."""
    take_none(raw)
    head = {b"number": write_quantity(view.latest.number), b"hash": write_data(view.latest.hash)}
    state = _states(view)
    everything = _from(0)  # bodies, receipts and their index are never deleted
    return b"{%b}" % members(
        {
            b"head": b"{%b}" % members(head),
            b"state": state,
            b"tx": everything,
            b"logs": everything,
            b"receipts": everything,
            b"blocks": everything,
            b"stateproofs": state,
        }
    )


def _states(view: LedgerView) -> bytes:
    """States from the oldest on; where older ones were deleted, how many are kept."""
    earliest = view.behind.earliest
    if earliest == 0:
        return _from(0)
    kept = write_quantity(view.latest.number - earliest + 1)
    return _from(earliest, b',"deleteStrategy":{"type":"window","retentionBlocks":%b}' % kept)


def _from(oldest: int, strategy: bytes = b"") -> bytes:
    return b'{"disabled":false,"oldestBlock":%b%b}' % (write_quantity(oldest), strategy)


def supported_capabilities(view: LedgerView, raw: Raw) -> bytes:
    """The extensions of the OP stack that this chain is served with."""
    take_none(raw)
    return b"[]" if view.profile.optimism is None else b'["flashblocksv1"]'
