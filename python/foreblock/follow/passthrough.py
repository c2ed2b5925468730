"""Pass requests about blocks before the anchor through to an upstream: `beyond = "pass"`.

State, traces and logs of old blocks cannot be verified here: the upstream's response is returned as
it is, and marked by the header `Foreblock-Source: upstream`; a batch with such a response has the
header as a whole. Only requests that name a block before the anchor, or one that is unknown here,
are passed through. `beside` adds such a source to a method, for this module and `pre_anchor`.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import CallerError, NotHere, UnknownBlockHash
from foreblock.ledger.reading.blocks import BlockId, ByHash
from foreblock.ledger.reading.transaction_lookup import find_transaction, find_unsealed
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.receipts import read_hash
from foreblock.methods.params import BlockName, read_block
from foreblock.methods.table import MethodFunction
from foreblock.rpc.envelope import NO_PARAMS
from foreblock.rpc.fetching_dispatcher import mark_batch
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import DetachedWait
from foreblock.upstream.old_blocks import AskUpstream

NULL: Final = b"null"
MARK: Final = b"Foreblock-Source: upstream\r\n"

Find = Callable[[], Awaitable[Text]]


class UpstreamAnswer(DetachedWait[Text]):
    """A result of an upstream; the request starts when it is awaited."""

    def __init__(self, find: Find, headers: bytes) -> None:
        self._find: Final = find
        self._headers: Final = headers

    def __await__(self) -> Generator[Any, None, Text]:
        return self._in_batch().__await__()

    async def _in_batch(self) -> Text:
        text = await self._find()
        if text != NULL:
            mark_batch(MARK)
        return text

    async def apart(self) -> tuple[Text, bytes]:
        """The result, marked with its source."""
        text = await self._find()
        return text, self._headers if text == NULL else self._headers + MARK


def beside(
    here: MethodFunction, elsewhere: Callable[[LedgerView, Raw], Find | None]
) -> MethodFunction:
    """Run the method here, and elsewhere if the block is not known here."""

    def run(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        find = elsewhere(view, raw)
        return here(view, raw) if find is None else UpstreamAnswer(find, view.headers)

    run.__doc__ = here.__doc__
    return run


# The position of the block parameter, by method.
BLOCK_AT: Final = {
    "debug_getRawBlock": 0,
    "debug_getRawHeader": 0,
    "debug_getRawReceipts": 0,
    "debug_traceBlockByHash": 0,
    "debug_traceBlockByNumber": 0,
    "debug_traceCall": 1,
    "eth_call": 1,
    "eth_createAccessList": 1,
    "eth_estimateGas": 1,
    "eth_feeHistory": 1,
    "eth_getAccount": 1,
    "eth_getBalance": 1,
    "eth_getBlockByNumber": 0,
    "eth_getBlockReceipts": 0,
    "eth_getBlockTransactionCountByHash": 0,
    "eth_getBlockTransactionCountByNumber": 0,
    "eth_getCode": 1,
    "eth_getProof": 2,
    "eth_getStorageAt": 2,
    "eth_getStorageValues": 1,
    "eth_getTransactionByBlockHashAndIndex": 0,
    "eth_getTransactionByBlockNumberAndIndex": 0,
    "eth_getTransactionCount": 1,
    "eth_getUncleCountByBlockHash": 0,
    "eth_getUncleCountByBlockNumber": 0,
    "eth_simulateV1": 1,
}
# Methods that name a transaction.
OF_TRANSACTION: Final = (
    "debug_getRawTransaction",
    "debug_traceTransaction",
    "ots_getInternalOperations",
    "ots_getTransactionError",
    "ots_traceTransaction",
    "trace_replayTransaction",
    "trace_transaction",
)
FIRST: Final = "earliest"

_params: Final = msgspec.json.Decoder(list[Raw])
_name: Final[msgspec.json.Decoder[BlockName]] = msgspec.json.Decoder(BlockName)


class _LogRange(Struct, rename="camel"):
    from_block: BlockName | None = None
    block_hash: str | None = None


_ranges: Final = msgspec.json.Decoder(_LogRange)


class Passthrough:
    """The methods of one network that are passed through for blocks before its anchor."""

    def __init__(self, ask: AskUpstream) -> None:
        self._ask: Final = ask

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods of this table pass requests about unknown blocks through."""
        tests: Mapping[str, Callable[[LedgerView, Raw], bool]] = {
            **{name: partial(_names_old, position) for name, position in BLOCK_AT.items()},
            **dict.fromkeys(OF_TRANSACTION, _is_unknown),
            "eth_getLogs": _begins_before,
            "eth_config": _always,  # it has the hash of the first block
        }
        for name, is_before in tests.items():
            if name in methods:
                methods[name] = beside(methods[name], partial(self._find, name, is_before))

    def _find(
        self, name: str, is_before: Callable[[LedgerView, Raw], bool], view: LedgerView, raw: Raw
    ) -> Find | None:
        try:
            if not is_before(view, raw):
                return None
        except (msgspec.MsgspecError, CallerError):
            return None  # the error is raised here

        async def find() -> Text:
            return await self._ask(name, b"[]" if raw == NO_PARAMS else bytes(raw))

        return find


def _always(_view: LedgerView, _raw: Raw) -> bool:
    return True


def _names_old(position: int, view: LedgerView, raw: Raw) -> bool:
    params = _params.decode(raw)
    if len(params) <= position or bytes(params[position]).strip() == b"null":
        return False
    return is_old(view, read_block(_name.decode(params[position]), position))


def is_old(view: LedgerView, block: BlockId) -> bool:
    """Return True for a block before the anchor, and for a hash that is unknown here."""
    if isinstance(block, int):
        return block < view.base.number
    if isinstance(block, ByHash):
        try:
            view.resolve(block)
        except UnknownBlockHash:
            return True
        except NotHere:
            return False
        return False
    return block == FIRST


def _is_unknown(view: LedgerView, raw: Raw) -> bool:
    wanted = read_hash(Raw(msgspec.json.encode(_params.decode(raw)[:1])))
    return find_transaction(view, wanted) is None and find_unsealed(view, wanted) is None


def _begins_before(view: LedgerView, raw: Raw) -> bool:
    params: list[Any] = _params.decode(raw)
    if not params:
        return False
    wanted = _ranges.decode(params[0])
    if wanted.block_hash is not None:
        return is_old(view, read_block(wanted.block_hash, 0))
    if wanted.from_block is None:
        return False
    begins = read_block(wanted.from_block, 0)
    return is_old(view, begins)
