"""Results as typed values: blocks, transactions, receipts, logs, simulations, flashblocks. No I/O.

Every value keeps the object of the response in `json`, since nodes add fields of their own.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from foreblock.primitives import parse_data, parse_number
from foreblock.types import decode_output, revert_reason

T = TypeVar("T")

_NAMES = {"sender": "from", "index": "flashblockIndex"}


def camel_case(name: str) -> str:
    """The name of a field as JSON-RPC writes it: `gasUsed` for `gas_used`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _wire_name(name: str) -> str:
    return _NAMES.get(name) or camel_case(name)


class Hex(bytes):
    """Bytes that are shown as `0x` and hex digits."""

    def __repr__(self) -> str:
        return f"0x{self.hex()}"

    __str__ = __repr__


class LogData(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """A log; the block is None in a simulation of some nodes."""

    address: Hex
    topics: tuple[Hex, ...]
    data: Hex
    log_index: int | None = None
    transaction_hash: Hex | None = None
    transaction_index: int | None = None
    block_number: int | None = None
    block_hash: Hex | None = None
    removed: bool = False
    json: Mapping[str, Any]


class TransactionData(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """A transaction; its block is None while it waits in a pool."""

    hash: Hex
    sender: Hex
    to: Hex | None
    value: int
    nonce: int
    input: Hex
    gas: int
    type: int = 0
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    block_number: int | None = None
    block_hash: Hex | None = None
    transaction_index: int | None = None
    json: Mapping[str, Any]


class BlockData(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """A block; `transactions` are hashes unless the full ones were requested.

    Number and hash are None in the pending block of some nodes.
    """

    number: int | None
    hash: Hex | None
    parent_hash: Hex
    timestamp: int
    gas_limit: int
    gas_used: int
    state_root: Hex
    transactions: tuple[TransactionData | Hex, ...]
    base_fee_per_gas: int | None = None
    miner: Hex | None = None
    json: Mapping[str, Any]


class ReceiptData(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """A receipt; of a foreblock also that of a flashblock."""

    transaction_hash: Hex
    transaction_index: int
    block_number: int
    block_hash: Hex
    sender: Hex
    to: Hex | None
    status: int | None = None  # None before Byzantium
    gas_used: int
    cumulative_gas_used: int
    effective_gas_price: int | None = None
    contract_address: Hex | None = None
    logs: tuple[LogData, ...]
    json: Mapping[str, Any]

    @property
    def succeeded(self) -> bool:
        return self.status == 1


class CallOutcome(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """The outcome of a call of a simulation."""

    status: int
    return_data: Hex
    gas_used: int
    logs: tuple[LogData, ...] = ()
    json: Mapping[str, Any]

    @property
    def succeeded(self) -> bool:
        return self.status == 1

    @property
    def output(self) -> bytes:
        """The returned data, or the data of the revert, which nodes have in one of two fields."""
        error = self.json.get("error")
        data = error.get("data") if isinstance(error, Mapping) else None
        return parse_data(data) if isinstance(data, str) and data else self.return_data

    @property
    def reason(self) -> str:
        """The reason of a failed call; empty for a successful one."""
        error = self.json.get("error")
        message = error.get("message") if isinstance(error, Mapping) else error
        return "" if self.succeeded else revert_reason(self.output) or str(message or "")

    def decode(self, signature: str) -> Any:  # noqa: ANN401, as the signature says
        """The output by a signature. Raises `Undecodable`."""
        return outputs(signature, self.return_data)


class SimulationBlock(BlockData, frozen=True, rename=_wire_name, kw_only=True):
    """A simulated block."""

    calls: tuple[CallOutcome, ...]


class FlashblockData(Struct, frozen=True, rename=_wire_name, kw_only=True):
    """A flashblock: the header of its block so far, and the transactions that it adds.

    `gap` is true if flashblocks before it may be missing. `dropped` are the positions of earlier
    ones that have left the chain.
    """

    number: int
    index: int
    hash: Hex  # of the block so far: a pin
    parent_hash: Hex
    timestamp: int
    gas_used: int
    base_fee_per_gas: int | None = None
    transactions_root: Hex
    transaction_count: int  # of the block so far
    transactions: tuple[TransactionData, ...]
    gap: bool = False
    dropped: tuple[tuple[int, int], ...] = ()
    json: Mapping[str, Any]

    @property
    def position(self) -> tuple[int, int]:
        """Block number and index, also a pin."""
        return self.number, self.index


def outputs(signature: str, output: bytes) -> Any:  # noqa: ANN401, as the signature says
    """One output by itself, several as a tuple; the bytes if the signature names none."""
    found = decode_output(signature, output)
    if not found:
        return Hex(output)
    return found[0] if len(found) == 1 else tuple(found)


def read(kind: type[T], value: object) -> T:
    """Read a JSON value. Raises `ValueError`, which names the field."""
    return cast("T", _reader(cast("Hashable", kind))(value))


Reader = Callable[[object], object]


@cache
def _reader(kind: Any) -> Reader:  # noqa: ANN401, any annotation
    arguments = get_args(kind)
    if get_origin(kind) in (UnionType, Union):
        return _choice(arguments)
    if get_origin(kind) is tuple:
        return _items(_reader(arguments[0]))
    if kind is Hex:
        return lambda value: Hex(parse_data(value))
    if kind is int:
        return parse_number
    if kind is bool:
        return bool
    return _members(kind)


def _choice(kinds: tuple[Any, ...]) -> Reader:
    """None, and an object or another value."""
    readers = {isinstance(each, type(Struct)): _reader(each) for each in kinds if each != NoneType}

    def choose(value: object) -> object:
        if value is None and NoneType in kinds:
            return None
        reader = readers.get(isinstance(value, Mapping)) or next(iter(readers.values()))
        return reader(value)

    return choose


def _items(reader: Reader) -> Reader:
    def items(value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("expected a list")  # noqa: TRY004, as in `primitives`
        return tuple(map(reader, value))

    return items


def _members(kind: type[Struct]) -> Reader:
    """An object; `json` becomes the object itself."""
    readers = [
        (field.name, field.encode_name, field.required, _reader(field.type))
        for field in fields(kind)
        if field.name != "json"
    ]

    def members(value: object) -> object:
        if not isinstance(value, Mapping):
            raise ValueError("expected an object")  # noqa: TRY004, as in `primitives`
        found: dict[str, object] = {"json": value}
        for name, wire_name, is_required, reader in readers:
            if is_required or value.get(wire_name) is not None:
                try:
                    found[name] = reader(value.get(wire_name))
                except ValueError as why:
                    raise ValueError(f"{wire_name}: {why}") from why
        return kind(**found)

    return members
