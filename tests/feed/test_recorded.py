"""Messages recorded from public chains decode to what those chains sealed.

The recordings stand beside the checkout in `../shared/flashblocks`, or where
`FOREBLOCK_FLASHBLOCKS` says, one message of JSON a line. Their sources:

    unichain-sepolia-35535698.jsonl   base/base 98a8db8d, envelope.rs of rpc-types-engine
    base-sepolia-33439826.jsonl       the same file; its later indices repeat transactions, so
                                      that only index 0 can be hashed
    base-mainnet-50393250.jsonl       nick-kuhle/JerseyMikes b319a498, index0_base.json
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from foreblock._engine import Header, transactions_root
from foreblock.feed.compression import compress
from foreblock.feed.messages import EndMarker, decode, encode
from foreblock.model import Flashblock, FlashblockId

FILES = ["unichain-sepolia-35535698", "base-sepolia-33439826", "base-mainnet-50393250"]


def recorded(checkout: Path, name: str) -> list[bytes]:
    """The messages of a recording; the test is skipped where there is none."""
    named = os.environ.get("FOREBLOCK_FLASHBLOCKS")
    folder = Path(named) if named else checkout.parent / "shared" / "flashblocks"
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"no recording at {path}; FOREBLOCK_FLASHBLOCKS names another folder")
    return path.read_bytes().splitlines()


def flashblocks_of(messages: Sequence[bytes]) -> list[Flashblock]:
    found = [decode(message) for message in messages]
    assert not any(isinstance(message, EndMarker) for message in found)
    return [message for message in found if isinstance(message, Flashblock)]


def partial_header(so_far: Sequence[Flashblock]) -> Header:
    """The header that the flashblocks of one job describe: Isthmus or later."""
    base, diff = so_far[0].base, so_far[-1].diff
    assert base is not None
    return Header(
        parent_hash=base.parent_hash,
        beneficiary=base.fee_recipient,
        state_root=diff.state_root,
        transactions_root=transactions_root(
            [raw for flashblock in so_far for raw in flashblock.diff.transactions]
        ),
        receipts_root=diff.receipts_root,
        logs_bloom=diff.logs_bloom,
        number=base.block_number,
        gas_limit=base.gas_limit,
        gas_used=diff.gas_used,
        timestamp=base.timestamp,
        extra_data=base.extra_data,
        mix_hash=base.prev_randao,
        base_fee_per_gas=base.base_fee_per_gas,
        withdrawals_root=diff.withdrawals_root,
        blob_gas_used=diff.blob_gas_used,
        excess_blob_gas=0,
        parent_beacon_block_root=base.parent_beacon_block_root,
        requests_hash=sha256().digest(),
    )


@pytest.mark.parametrize("name", FILES)
def test_recorded_messages_survive_both_directions(checkout: Path, name: str) -> None:
    messages = recorded(checkout, name)
    for message, flashblock in zip(messages, flashblocks_of(messages), strict=True):
        assert decode(compress(message, 5)) == flashblock
        assert decode(encode(flashblock)) == flashblock


@pytest.mark.parametrize("name", FILES)
def test_a_recording_is_one_job_from_index_0_on(checkout: Path, name: str) -> None:
    found = flashblocks_of(recorded(checkout, name))
    assert [flashblock.index for flashblock in found] == list(range(len(found)))
    assert len({(flashblock.payload_id, flashblock.block_number) for flashblock in found}) == 1
    assert found[0].block_number == int(name.rpartition("-")[2])


def test_every_hash_of_a_job_with_real_roots_can_be_recomputed(checkout: Path) -> None:
    found = flashblocks_of(recorded(checkout, "unichain-sepolia-35535698"))
    assert len(found) == 5
    for count, flashblock in enumerate(found, 1):
        assert partial_header(found[:count]).hash == flashblock.diff.block_hash
    # The last one is the sealed block.
    assert found[-1].diff.block_hash.hex().startswith("c463a312")
    assert found[-1].diff.block_hash.hex().endswith("1196")


@pytest.mark.parametrize("name", ["base-sepolia-33439826", "base-mainnet-50393250"])
def test_the_hash_of_index_0_with_a_zero_root_can_be_recomputed(checkout: Path, name: str) -> None:
    found = flashblocks_of(recorded(checkout, name))[:1]
    assert found[0].diff.state_root == bytes(32)
    assert partial_header(found).hash == found[0].diff.block_hash


def test_a_message_of_today_names_its_predecessor(checkout: Path) -> None:
    (found,) = flashblocks_of(recorded(checkout, "base-mainnet-50393250"))
    assert found.previous == FlashblockId(50393249, 10)
    assert found.base is not None
    assert found.base.extra_data.hex() == "01000000640000000500000000004c4b40"
