"""Clients of JSON-RPC endpoints: typed reads, batches as one snapshot, pins, flashblocks.

`typed_requests`, `values` and `exchange` are pure; `AsyncClient` sends their bytes with the HTTP
client of `upstream`, and `Client` runs an `AsyncClient`.
"""

from foreblock.client.async_client import AsyncClient
from foreblock.client.client import Client, FlashblockIterator
from foreblock.client.exchange import HeadData, SnapshotData
from foreblock.client.request_batch import Deferred, RequestBatch
from foreblock.client.typed_requests import RpcRequest, call_data
from foreblock.client.values import (
    BlockData,
    CallOutcome,
    FlashblockData,
    Hex,
    LogData,
    ReceiptData,
    SimulationBlock,
    TransactionData,
)

__all__ = [
    "AsyncClient",
    "BlockData",
    "CallOutcome",
    "Client",
    "Deferred",
    "FlashblockData",
    "FlashblockIterator",
    "HeadData",
    "Hex",
    "LogData",
    "ReceiptData",
    "RequestBatch",
    "RpcRequest",
    "SimulationBlock",
    "SnapshotData",
    "TransactionData",
    "call_data",
]
