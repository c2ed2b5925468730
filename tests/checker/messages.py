"""Flashblocks as written by a feed: JSON text to values, without judgement."""

import json
from dataclasses import dataclass
from typing import Any

from checker.header import NO_REQUESTS, NO_UNCLES, Header


@dataclass(frozen=True, slots=True)
class Message:
    """One flashblock."""

    payload_id: str
    index: int
    number: int
    base: dict[str, str] | None  # with index 0
    diff: dict[str, Any]
    previous: tuple[int, int] | None  # the block and index of its claimed predecessor

    @property
    def raws(self) -> list[bytes]:
        """The transactions of the message."""
        return [unhex(each) for each in self.diff["transactions"]]

    @property
    def hash(self) -> bytes:
        """The announced hash."""
        return unhex(self.diff["block_hash"])


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def read_message(text: str) -> Message:
    """Parse the message in a line; `KeyError` or `ValueError` if it is malformed."""
    found = json.loads(text)
    metadata = found["metadata"]
    link = metadata.get("prev_flashblock_id", "0-0")
    block, _, index = link.partition("-")
    return Message(
        payload_id=found["payload_id"],
        index=found["index"],
        number=metadata["block_number"],
        base=found.get("base"),
        diff=found["diff"],
        previous=None if link == "0-0" else (int(block), int(index)),
    )


def announced_header(base: dict[str, str], diff: dict[str, Any], root: bytes) -> Header:
    """The header of the partial block that base and diff describe (Isthmus and later).

    `root` is that of all its transactions, which is not in a message.
    """
    return {
        "parentHash": unhex(base["parent_hash"]),
        "sha3Uncles": NO_UNCLES,
        "miner": unhex(base["fee_recipient"]),
        "transactionsRoot": root,
        "difficulty": 0,
        "number": int(base["block_number"], 16),
        "gasLimit": int(base["gas_limit"], 16),
        "timestamp": int(base["timestamp"], 16),
        "extraData": unhex(base["extra_data"]),
        "mixHash": unhex(base["prev_randao"]),
        "nonce": bytes(8),
        "baseFeePerGas": int(base["base_fee_per_gas"], 16),
        "excessBlobGas": 0,
        "parentBeaconBlockRoot": unhex(base["parent_beacon_block_root"]),
        "requestsHash": NO_REQUESTS,
        **announced_fields(diff),
    }


def announced_fields(diff: dict[str, Any]) -> Header:
    """The fields of that header that come from the diff."""
    return {
        "stateRoot": unhex(diff["state_root"]),
        "receiptsRoot": unhex(diff["receipts_root"]),
        "logsBloom": unhex(diff["logs_bloom"]),
        "gasUsed": int(diff["gas_used"], 16),
        "withdrawalsRoot": unhex(diff["withdrawals_root"]),
        "blobGasUsed": int(diff.get("blob_gas_used", "0x0"), 16),
    }
