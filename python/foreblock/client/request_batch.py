"""Requests that are sent in one body, as one snapshot. No I/O."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from foreblock.client import typed_requests
from foreblock.client.exchange import SnapshotData
from foreblock.client.typed_requests import RpcRequest
from foreblock.errors import InvalidArgument

P = ParamSpec("P")
T = TypeVar("T")


class Deferred(Generic[T]):
    """The result of one request of a batch, once the batch was sent."""

    def __init__(self, request: RpcRequest[T]) -> None:
        self.request: Final = request
        self.outcome: Callable[[], T] | None = None

    @property
    def value(self) -> T:
        """The result. Raises the exception of this request alone."""
        if self.outcome is None:
            raise InvalidArgument("the batch has no responses yet")
        return self.outcome()


def deferring(
    make: Callable[P, RpcRequest[T]],
) -> Callable[Concatenate["RequestBatch", P], "Deferred[T]"]:
    """A method of a batch that adds a request."""

    @wraps(make)
    def defer(batch: "RequestBatch", /, *arguments: P.args, **named: P.kwargs) -> "Deferred[T]":
        return batch.add(make(*arguments, **named))

    return defer


class RequestBatch:
    """Requests of one body; a foreblock answers them from one snapshot, which it names."""

    def __init__(self) -> None:
        self.deferred: Final[list[Deferred[Any]]] = []
        self.snapshot: SnapshotData | None = None

    def add(self, request: RpcRequest[T]) -> Deferred[T]:
        """Add a request; the methods of clients do it for theirs."""
        found = Deferred(request)
        self.deferred.append(found)
        return found

    rpc = deferring(typed_requests.rpc)
    chain_id = deferring(typed_requests.chain_id)
    block_number = deferring(typed_requests.block_number)
    block = deferring(typed_requests.block)
    transaction = deferring(typed_requests.transaction)
    receipt = deferring(typed_requests.receipt)
    receipts = deferring(typed_requests.receipts)
    balance = deferring(typed_requests.balance)
    nonce = deferring(typed_requests.nonce)
    code = deferring(typed_requests.code)
    storage = deferring(typed_requests.storage)
    call = deferring(typed_requests.call)
    estimate_gas = deferring(typed_requests.estimate_gas)
    simulate = deferring(typed_requests.simulate)
    logs = deferring(typed_requests.logs)
    send_raw = deferring(typed_requests.send_raw)
