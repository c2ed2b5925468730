"""Shapes of logs and filters, of subscriptions, and of the pool."""

from typing import Final

from foreblock.methods.openrpc.schema_parts import (
    ADDRESS_KEY,
    HEX,
    Schema,
    array,
    keyed,
    record,
    ref,
    text,
)

_NULL: Final[Schema] = {"type": "null"}
_ID: Final = text(f"0x{HEX}+", "an id that the service gave")
_NEWEST: Final = record("", newest={"type": "integer", "minimum": 0})


def _by_sender_and_nonce(name: str) -> Schema:
    """What waits in the pool: by sender, then by nonce in decimal; or of one sender."""
    by_nonce = keyed("^[0-9]+$", ref(name))
    waiting: Schema = {"anyOf": [keyed(ADDRESS_KEY, by_nonce), by_nonce]}
    return record("", pending=waiting, queued=waiting)


EVENTS: Final[dict[str, Schema]] = {
    "LogFilter": {
        "type": "object",
        "properties": {
            "fromBlock": {"anyOf": [ref("BlockTag"), _NULL]},
            "toBlock": {"anyOf": [ref("BlockTag"), _NULL]},
            "blockHash": {"anyOf": [ref("Hash"), _NULL]},
            "address": {"anyOf": [ref("Address"), array("Address"), _NULL]},
            "topics": {"anyOf": [array("TopicFilter"), _NULL]},
        },
    },
    "TopicFilter": {"anyOf": [ref("Hash"), array("Hash"), _NULL]},
    "FilterId": _ID,
    "FilterChanges": {"anyOf": [array("Log"), array("Hash"), array("Transaction")]},
    "SubscriptionId": _ID,
    "SubscriptionKind": {
        "enum": [
            "newHeads",
            "logs",
            "pendingLogs",
            "newFlashblocks",
            "newFlashblockTransactions",
            "newPendingTransactions",
            "syncing",
        ]
    },
    "SubscriptionOptions": {"anyOf": [ref("LogFilter"), {"type": "boolean"}, _NEWEST]},
    "SubscriptionCursor": record("cursor:Text"),
    "Milliseconds": ref("Count"),
    "FilledTransaction": record("raw:Data", tx={"type": "object", "title": "a transaction"}),
    "TransactionStatus": record("", status={"enum": ["Known", "Unknown"]}),
    "PoolStatus": record("pending:Quantity queued:Quantity"),
    "PoolContent": _by_sender_and_nonce("Transaction"),
    "PoolTexts": _by_sender_and_nonce("Text"),
    "AccessListResult": record("accessList:AccessListEntry[] gasUsed:Quantity", "error:Text"),
}
