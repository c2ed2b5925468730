"""debug_executionWitness, debug_executionWitnessByBlockHash: the data to execute a block with.

The form is op-reth's, lists of bytes: `state` has trie nodes, `codes` and `keys` codes and keys,
`headers` encoded headers of ancestors up to the parent. geth names the second method
`debug_executionWitnessByHash`.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import TraceTooLong
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.witness_recording import ExecutionWitness, record_witness
from foreblock.methods.params import BlockName, Params, hash32, reader
from foreblock.methods.shapes import write_data
from foreblock.methods.tracing.debug_traces import find_traced
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.settings import Settings

RENDERED: Final = 256  # items that are written before others have their turn


class WitnessParams(Params):
    """The arguments of debug_executionWitness."""

    block: BlockName


class WitnessByHashParams(Params):
    """The arguments of debug_executionWitnessByBlockHash."""

    block_hash: str


_read: Final = reader(WitnessParams)
_read_by_hash: Final = reader(WitnessByHashParams)


class WitnessMethods:
    """Methods that return the witness of a block."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._output: Final = settings.trace.output
        self._scheduler: Final = scheduler

    def by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The trie nodes, codes, keys and headers that executing a sealed block needs."""
        return self._show(view, find_traced(view, _read(raw).block))

    def by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The witness of a block that is named by its hash."""
        named = _read_by_hash(raw).block_hash
        hash32(named, 0)
        return self._show(view, find_traced(view, named))

    def _show(self, view: LedgerView, block: ReadableBlock) -> bytes | Awaitable[Text]:
        return self._scheduler.run_text(partial(self._write, view, block), view.client)

    def _write(self, view: LedgerView, block: ReadableBlock, pace: Pace) -> Steps[Text]:
        witness = yield from record_witness(view, block)
        if 2 * witness.size > self._output:
            raise TraceTooLong(self._output)
        return (yield from _render(witness, pace))


def _render(witness: ExecutionWitness, pace: Pace) -> Steps[Text]:
    parts: dict[bytes, Sequence[bytes]] = {
        b"state": witness.nodes,
        b"codes": witness.codes,
        b"keys": witness.keys,
        b"headers": witness.headers,
    }
    pieces: list[bytes] = []
    for name, texts in parts.items():
        pieces.append((b"," if pieces else b"{") + b'"%b":[' % name)
        for start in range(0, len(texts), RENDERED):
            some = b",".join(map(write_data, texts[start : start + RENDERED]))
            pieces.append((b"," if start else b"") + some)
            if pace.is_over():
                yield None
        pieces.append(b"]")
    return in_pieces([*pieces, b"}"])
