"""Reads at one block of a chain: balances, calls, blocks."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from foreblock.client import typed_requests
from foreblock.client.typed_requests import (
    BlockName,
    Data,
    RpcRequest,
    block_name,
    call_data,
    to_json,
)
from foreblock.client.values import BlockData, Hex, LogData, outputs
from foreblock.dev_chain.failures import CustomErrors, failed
from foreblock.dev_chain.local_service import LocalService
from foreblock.errors import (
    ForeblockError,
    Halted,
    NoSuchHead,
    NotHere,
    Reverted,
    UnknownBlock,
    UnknownBlockHash,
)
from foreblock.ledger.tracing.call_tree import TracedCall, read_call
from foreblock.primitives import parse_data

T = TypeVar("T")

TRACER: Final = {"tracer": "callTracer"}


class ChainState:
    """The state after a block; `latest` and `pending` mean the block of the moment."""

    def __init__(self, network: LocalService, block: BlockName, errors: CustomErrors) -> None:
        self._network = network
        self._block: Final = block
        self._errors: Final = errors

    def at(self, block: BlockName) -> "ChainState":
        """The state after another block.

        A number, a hash, a tag such as `pending`, or the number and index of a flashblock.
        """
        return ChainState(self._network, block, self._errors)

    def balance(self, address: Data) -> int:
        """The balance in wei."""
        return self._read(typed_requests.balance(address))

    def nonce(self, address: Data) -> int:
        """The number of transactions that the account has sent."""
        return self._read(typed_requests.nonce(address))

    def code(self, address: Data) -> Hex:
        """The code of the account; empty for one without."""
        return self._read(typed_requests.code(address))

    def storage(self, address: Data, slot: int) -> int:
        """The value of a slot."""
        return self._read(typed_requests.storage(address, slot))

    def block(self, *, full: bool = False) -> BlockData:
        """The block, `full` with its transactions. Raises `NotHere`."""
        return self._read(typed_requests.block(full=full))

    def call(
        self,
        to: Data,
        signature: str,
        *arguments: object,
        sender: Data | None = None,
        value: int = 0,
    ) -> Any:  # noqa: ANN401, as the signature says
        """Call a function such as `balanceOf(address)(uint256)`.

        One output is returned by itself, several as a tuple, the bytes if the signature has none.
        Raises `Reverted` and `Halted`, with the calls as notes.
        """
        data = call_data(signature, *arguments)
        return outputs(signature, self.call_raw(to, data, sender=sender, value=value))

    def call_raw(
        self, to: Data | None, data: Data = b"", *, sender: Data | None = None, value: int = 0
    ) -> Hex:
        """Call a contract, or without `to` run the code of one; returns the output."""
        fields = self._call_fields(to, data, sender, value)
        try:
            return Hex(parse_data(self.rpc("eth_call", fields, self._name)))
        except (Reverted, Halted) as error:
            raise self._traced(error, "debug_traceCall", fields, self._name) from None

    def estimate_gas(
        self, to: Data | None, data: Data = b"", *, sender: Data | None = None, value: int = 0
    ) -> int:
        """The gas of a transaction. Raises as `call`."""
        return self._read(typed_requests.estimate_gas(self._call_fields(to, data, sender, value)))

    def logs(
        self,
        first: int = 0,
        *,
        address: Data | Sequence[Data] | None = None,
        topics: Sequence[Data | Sequence[Data] | None] = (),
    ) -> tuple[LogData, ...]:
        """The logs of blocks `first` to this one."""
        last = self.block().number
        assert last is not None, "a block has its number here"
        return self._read(typed_requests.logs(first, last, address=address, topics=topics))

    def rpc(self, method: str, *params: Any) -> Any:  # noqa: ANN401, JSON
        """The result of a JSON-RPC method. Raises `ForeblockError`."""
        return msgspec.json.decode(self._network.request(method, msgspec.json.encode(params)))

    @property
    def _name(self) -> object:
        """The block as a parameter."""
        return to_json(block_name(self._block))

    def _read(self, request: RpcRequest[T]) -> T:
        method, params = request.at(self._block)
        try:
            return request.read(self.rpc(method, *params))
        except LookupError:
            raise _unknown(self._block) from None

    def _call_fields(
        self, to: Data | None, data: Data, sender: Data | None, value: int
    ) -> dict[str, object]:
        fields = {"to": to, "data": data, "from": sender, "value": value or None}
        return {name: to_json(each) for name, each in fields.items() if each is not None}

    def _traced(self, error: ForeblockError, method: str, *params: object) -> ForeblockError:
        """The failure of a call or a transaction, explained by its trace, if there is one."""
        try:
            found = self._network.request(method, msgspec.json.encode([*params, TRACER]))
        except ForeblockError:
            return error
        call: TracedCall | None = read_call(found)
        return error if call is None or not call.error else failed(call, self._errors)


def _unknown(block: BlockName) -> NotHere:
    match block:
        case int(number) | (int(number), _):
            return UnknownBlock(number)
        case bytes():
            return UnknownBlockHash(block)
        case _:
            return NoSuchHead(str(block))
