"""Requests of the client as values: method, parameters, and the reader of the result. No I/O.

Numbers and bytes of parameters become hex; texts are sent as they are. `HERE` is the block that the
client is set to.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from msgspec import Struct

from foreblock.client.values import (
    BlockData,
    Hex,
    LogData,
    ReceiptData,
    SimulationBlock,
    TransactionData,
    outputs,
    read,
)
from foreblock.errors import InvalidArgument
from foreblock.primitives import HASH_BYTES, format_data, format_quantity, parse_data, parse_number
from foreblock.types import encode_call

T = TypeVar("T")

Data: TypeAlias = bytes | str  # as bytes, or as hex text
# A number, a tag, a hash, or the position of a flashblock: block number and index.
BlockName: TypeAlias = int | str | bytes | tuple[int, int]
# A call: `from`, `to`, `value`, `data` and the other fields of eth_call.
CallFields: TypeAlias = Mapping[str, object]


class _Here(Enum):
    HERE = "the block of the client"


HERE: Final = _Here.HERE
_HASH_TEXT: Final = 2 + 2 * HASH_BYTES
_BARE: Final = re.compile(r"[\w.+-]+", re.ASCII)


class RpcRequest(Struct, Generic[T], frozen=True):
    """A request whose parameters are JSON.

    `read` raises `ValueError` for a result of another shape, and `LookupError` for null where the
    requested block does not exist.
    """

    method: str
    params: Sequence[object]
    read: Callable[[object], T]
    block: object = None  # its block parameter, `HERE`, or None if it has none
    is_idempotent: bool = True

    def at(self, here: BlockName) -> tuple[str, Sequence[object]]:
        """Method and parameters for a client at a block."""
        match self.method, self.block_at(here):
            case method, None:
                return method, self.params
            case "eth_getBlockByNumber", {"blockHash": name}:
                return "eth_getBlockByHash", [name, *self.params]
            case "eth_getBlockByNumber" as method, name:
                return method, [name, *self.params]
            case "eth_getLogs" as method, {"blockHash": name}:
                filter_object = cast("Mapping[str, object]", self.params[0])
                return method, [{**filter_object, "blockHash": name}]
            case method, name:
                return method, [*self.params, name]

    def block_at(self, here: BlockName) -> object:
        """The block parameter for a client at a block."""
        return to_json(block_name(here) if self.block is HERE else self.block)


def block_name(name: BlockName) -> object:
    """The block parameter; a hash has the form of EIP-1898."""
    if isinstance(name, bytes) or (isinstance(name, str) and len(name) == _HASH_TEXT):
        return {"blockHash": name}
    if isinstance(name, tuple):
        return {"blockNumber": name[0], "flashblockIndex": name[1]}
    return name


def _named(name: BlockName | None) -> object:
    return HERE if name is None else block_name(name)


def to_json(value: object) -> Any:  # noqa: ANN401, JSON
    """The value with hex for numbers and bytes. Raises `InvalidArgument` for a negative number."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise InvalidArgument(f"{value} is negative")
        return format_quantity(value)
    if isinstance(value, str):
        return str(value)  # also of a subclass, such as the addresses of titanoboa
    if isinstance(value, Mapping):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(to_json, value))
    return format_data(value) if isinstance(value, bytes) else value


def _request(
    method: str, params: Sequence[object], read: Callable[[object], T], block: object = None
) -> RpcRequest[T]:
    return RpcRequest(method, list(map(to_json, params)), read, block)


def call_data(signature: str, *arguments: object) -> bytes:
    """Encode a call such as `transfer(address,uint256)`. Raises `InvalidArgument`."""
    return encode_call(signature, [_argument(each, is_inner=False) for each in arguments])


def _argument(value: object, *, is_inner: bool = True) -> str:
    """The text of an argument as the engine reads it."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case bytes():
            return format_data(value)
        case str():
            return value if not is_inner or _BARE.fullmatch(value) else _quoted(value)
        case list():
            return f"[{','.join(map(_argument, value))}]"
        case tuple():
            return f"({','.join(map(_argument, value))})"
        case _:
            raise InvalidArgument(f"{value!r} is not a value of the ABI")


def _quoted(text: str) -> str:
    """A text within an array or a tuple; the engine knows no escapes."""
    for quote in "\"'":
        if quote not in text:
            return f"{quote}{text}{quote}"
    raise InvalidArgument(f"{text!r}: a text in an array or a tuple cannot have both quotes")


def _optional(kind: type[T], value: object) -> T | None:
    return None if value is None else read(kind, value)


def _existing(kind: type[T], value: object) -> T:
    if value is None:
        raise LookupError
    return read(kind, value)


def _anything(value: object) -> Any:  # noqa: ANN401, JSON
    return value


def _data(value: object) -> Hex:
    return Hex(parse_data(value))


def rpc(method: str, *params: object, is_idempotent: bool = False) -> RpcRequest[Any]:
    """Any method; parameters and result are JSON, and bytes hex.

    It is retried only if `is_idempotent`.
    """
    params = tuple(format_data(each) if isinstance(each, bytes) else each for each in params)
    return RpcRequest(method, params, _anything, is_idempotent=is_idempotent)


def chain_id() -> RpcRequest[int]:
    """The id of the chain, which transactions are signed for."""
    return _request("eth_chainId", (), parse_number)


def block_number() -> RpcRequest[int]:
    """The number of the latest block."""
    return _request("eth_blockNumber", (), parse_number)


def block(name: BlockName | None = None, *, full: bool = False) -> RpcRequest[BlockData]:
    """A block, `full` with its transactions. Raises `NoSuchBlock`."""
    reader = partial(_existing, BlockData)
    return _request("eth_getBlockByNumber", (full,), reader, _named(name))


def transaction(hash: Data) -> RpcRequest[TransactionData | None]:
    """A transaction; None if the node does not know it."""
    return _request("eth_getTransactionByHash", (hash,), partial(_optional, TransactionData))


def receipt(hash: Data) -> RpcRequest[ReceiptData | None]:
    """A receipt; None until a block, or a flashblock of a foreblock, has the transaction."""
    return _request("eth_getTransactionReceipt", (hash,), partial(_optional, ReceiptData))


def receipts(block: BlockName | None = None) -> RpcRequest[tuple[ReceiptData, ...]]:
    """The receipts of a block. Raises `NoSuchBlock`."""
    reader = partial(_existing, tuple[ReceiptData, ...])
    return _request("eth_getBlockReceipts", (), reader, _named(block))


def balance(address: Data, block: BlockName | None = None) -> RpcRequest[int]:
    """A balance in wei."""
    return _request("eth_getBalance", (address,), parse_number, _named(block))


def nonce(address: Data, block: BlockName | None = None) -> RpcRequest[int]:
    """The number of transactions that the account has sent."""
    return _request("eth_getTransactionCount", (address,), parse_number, _named(block))


def code(address: Data, block: BlockName | None = None) -> RpcRequest[Hex]:
    """The code of an account; empty for one without."""
    return _request("eth_getCode", (address,), _data, _named(block))


def storage(address: Data, slot: int, block: BlockName | None = None) -> RpcRequest[int]:
    """The value of a slot."""
    return _request("eth_getStorageAt", (address, slot), parse_number, _named(block))


def call(
    to: Data,
    signature: str,
    *arguments: object,
    block: BlockName | None = None,
    fields: CallFields | None = None,
) -> RpcRequest[Any]:
    """Call a function such as `balanceOf(address)(uint256)`.

    One output is returned by itself, several as a tuple, the bytes if the signature has none.
    `fields` are further fields of the call, such as `from`. Raises `Reverted`.
    """
    message = {"to": to, "data": call_data(signature, *arguments), **(fields or {})}

    def reader(value: object) -> Any:  # noqa: ANN401, as the signature says
        return outputs(signature, parse_data(value))

    return _request("eth_call", (message,), reader, _named(block))


def estimate_gas(call: CallFields, block: BlockName | None = None) -> RpcRequest[int]:
    """The gas of a transaction. Raises `Reverted`."""
    return _request("eth_estimateGas", (call,), parse_number, _named(block))


def simulate(
    *blocks: Sequence[CallFields] | Mapping[str, object],
    block: BlockName | None = None,
    options: Mapping[str, bool] | None = None,
) -> RpcRequest[tuple[SimulationBlock, ...]]:
    """Simulate blocks on a block: each a list of calls, or an entry of `blockStateCalls`.

    `options` are those of eth_simulateV1, such as `validation`.
    """
    entries = [each if isinstance(each, Mapping) else {"calls": each} for each in blocks]
    payload = {"blockStateCalls": entries, **(options or {})}
    reader = partial(read, tuple[SimulationBlock, ...])
    return _request("eth_simulateV1", (payload,), reader, _named(block))


def logs(
    first: int | str = "latest",
    last: int | str = "latest",
    *,
    address: Data | Sequence[Data] | None = None,
    topics: Sequence[Data | Sequence[Data] | None] = (),
    block: bytes | str | None = None,
) -> RpcRequest[tuple[LogData, ...]]:
    """The logs of blocks `first` to `last`, or of the one with the hash `block`."""
    where = {"fromBlock": first, "toBlock": last} if block is None else {}
    chosen = {"address": address} if address is not None else {}
    filter_object = {**where, **chosen, "topics": topics}
    name = None if block is None else {"blockHash": block}
    return _request("eth_getLogs", (filter_object,), partial(read, tuple[LogData, ...]), name)


def send_raw(transaction: Data) -> RpcRequest[Hex]:
    """Send a signed transaction, and return its hash."""
    return RpcRequest("eth_sendRawTransaction", [to_json(transaction)], _data, is_idempotent=False)


def send_raw_sync(transaction: Data, timeout_ms: int | None = None) -> RpcRequest[ReceiptData]:
    """Send a signed transaction, and wait for its receipt (EIP-7966)."""
    params = [to_json(transaction), *([] if timeout_ms is None else [timeout_ms])]
    reader = partial(read, ReceiptData)
    return RpcRequest("eth_sendRawTransactionSync", params, reader, is_idempotent=False)
