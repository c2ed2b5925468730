"""eth_getStorageValues: slots of many accounts at one block, in one answer."""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.errors import InvalidParams, LimitExceeded, StateMissing
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.options import Options
from foreblock.methods.params import Params, address, explain, hash32, reader
from foreblock.methods.shapes import write_data
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

MOST_SLOTS: Final = 1024  # as in geth


class StorageValuesParams(Params):
    """The arguments of eth_getStorageValues."""

    slots: dict[str, list[str]]
    block: BlockParam = None


_read_values = reader(StorageValuesParams)


class StorageValuesMethods:
    """The method that reads many slots."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._block_required = options.block_required
        self._scheduler = scheduler

    def get_storage_values(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The words in these slots, by account."""
        return self._scheduler.read(self._read_and_show(view, raw))

    def _read_and_show(self, view: LedgerView, raw: Raw) -> Steps[bytes]:
        asked, block = self._read(raw)
        yield None
        return (yield from _values(view, find_block(view, block, 1), asked))

    def _read(self, raw: Raw) -> tuple[dict[bytes, list[int]], BlockParam]:
        if len(raw) > THRESHOLDS.thread_params_bytes:
            raise _too_many()
        params = _read_values(raw)
        if params.block is None and self._block_required:
            params = explain(raw, StorageValuesParams, 2)
        count = sum(map(len, params.slots.values()))
        if count > MOST_SLOTS:
            raise _too_many()
        if count == 0:
            raise InvalidParams("empty request")
        asked = {
            address(who, 0): [
                int.from_bytes(hash32(key, 0, f"$.{who}[{place}]"))
                for place, key in enumerate(keys)
            ]
            for who, keys in params.slots.items()
        }
        return asked, params.block


def _too_many() -> LimitExceeded:
    return LimitExceeded(f"too many slots (max {MOST_SLOTS})")


def _values(view: LedgerView, block: ReadableBlock, asked: dict[bytes, list[int]]) -> Steps[bytes]:
    """The result in steps of a few slots each."""
    state = view.state(block)
    accounts = []
    for who, keys in asked.items():
        words: list[bytes] = []
        for start in range(0, len(keys), THRESHOLDS.read_slots):
            some = keys[start : start + THRESHOLDS.read_slots]
            try:
                words += [b'"0x%064x"' % state.storage(who, key) for key in some]
            except StateMissing as missing:
                # All that is not known is fetched in one round.
                raise StateMissing(state.missing([], asked) or missing.misses) from None
            yield None
        accounts.append(b"%b:[%b]" % (write_data(who), b",".join(words)))
    return b"{%b}" % b",".join(accounts)
