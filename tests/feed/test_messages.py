"""All dialects of `docs/feed.md` are read, the newest is written, and the rest raise one
exception.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreblock.errors import MalformedFlashblock
from foreblock.feed.messages import EndMarker, decode, encode
from foreblock.feed.wire import MessageLimits, compress
from foreblock.types import Flashblock, FlashblockId
from support.each_case import each_case
from support.payloads.flashblocks import first, flashblocks, hash_of, later, with_transactions

FIRST = first(7, "job", hash_of("six"), hash_of("7.0"), FlashblockId(6, 10))
SECOND = later(7, "job", 1, hash_of("7.1"), FlashblockId(7, 0))

# Keys on the wire, as written by public sequencers of each period.
RECEIPT = {"status": "0x1", "cumulativeGasUsed": "0x5208", "logs": []}
OLD_METADATA = [
    {"receipts": {"0x" + 64 * "1": {"Eip1559": RECEIPT}}, "new_account_balances": {"0x01": "0x1"}},
    {"receipts": {"0x" + 64 * "1": {"type": "0x2", **RECEIPT}}, "new_account_balances": {}},
    {"receipts": {"0x" + 64 * "1": {"Deposit": {**RECEIPT, "status": True}}}},
    {"access_list": None},
    {"flashblock_access_list": {"min_tx_index": 0}, "version": 1},
    {},
]

JsonObject = dict[str, Any]


def wire(flashblock: Flashblock) -> JsonObject:
    """The flashblock as a JSON object, to be changed."""
    message: JsonObject = json.loads(encode(flashblock))
    return message


def read(message: object) -> Flashblock | EndMarker:
    return decode(json.dumps(message).encode())


@given(flashblocks())
def test_what_was_encoded_comes_back(flashblock: Flashblock) -> None:
    text = encode(flashblock)
    assert decode(text) == flashblock
    assert decode(compress(text, 1)) == flashblock


@given(flashblocks())
def test_a_subblock_is_written_without_hashes_roots_and_predecessor(flashblock: Flashblock) -> None:
    message = json.loads(encode(flashblock.as_subblock()))
    zero = "0x" + "00" * 32
    fields = ("state_root", "block_hash", "withdrawals_root")
    assert [message["diff"][field] for field in fields] == [zero] * 3
    assert set(message["metadata"]) == {"block_number"}
    assert read(message) == flashblock.as_subblock()
    assert flashblock.as_subblock().content == flashblock.content


@given(flashblocks())
def test_without_its_predecessor_all_else_comes_back(flashblock: Flashblock) -> None:
    text = encode(flashblock, predecessor=False)
    assert "prev_flashblock_id" not in json.loads(text)["metadata"]
    assert decode(text) == replace(flashblock, previous=None)


def test_the_newest_dialect_to_the_letter() -> None:
    message = wire(FIRST)
    assert list(message) == ["payload_id", "index", "base", "diff", "metadata"]
    assert message["payload_id"] == "0x" + b".....job".hex()
    assert message["index"] == 0
    assert message["base"]["block_number"] == "0x7"
    assert message["base"]["base_fee_per_gas"] == "0x7"
    assert message["base"]["extra_data"] == "0x"
    assert message["diff"]["gas_used"] == "0x5208"
    assert message["diff"]["blob_gas_used"] == "0x0"
    assert message["diff"]["withdrawals"] == []
    assert message["diff"]["logs_bloom"] == "0x" + 512 * "0"
    assert message["metadata"] == {"block_number": 7, "prev_flashblock_id": "6-10"}
    assert "base" not in wire(SECOND)


def test_a_flashblock_without_a_known_predecessor_says_so() -> None:
    message = wire(replace(FIRST, previous=None))
    assert message["metadata"]["prev_flashblock_id"] == "0-0"


def test_base_may_be_null_where_it_is_not_needed() -> None:
    assert read(wire(SECOND) | {"base": None}) == SECOND


@pytest.mark.parametrize("value", [None, "absent"])
def test_blob_gas_used_may_be_missing(value: str | None) -> None:
    message = wire(FIRST)
    message["diff"]["blob_gas_used"] = value
    if value == "absent":
        del message["diff"]["blob_gas_used"]
    assert read(message) == FIRST


@each_case("old", OLD_METADATA)
def test_metadata_of_every_era_is_read(old: JsonObject) -> None:
    message = wire(FIRST)
    message["metadata"] = {"block_number": 7} | old
    assert read(message) == replace(FIRST, previous=None)


def test_unknown_keys_are_passed_over_at_every_level() -> None:
    message = wire(FIRST)
    deep: JsonObject = {"target_index": 9, "more": {"even": [1, {"x": None}]}}
    message |= deep
    for part in ("base", "diff", "metadata"):
        message[part] |= deep
    message["diff"]["post_exec_tx"] = ["anything"]
    message["diff"]["withdrawals"] = [{"index": "0x0"}]
    assert read(message) == FIRST


def test_a_post_execution_transaction_is_kept() -> None:
    message = wire(FIRST)
    message["diff"]["post_exec_tx"] = "0x7dc0"
    found = read(message)
    assert found == replace(FIRST, diff=replace(FIRST.diff, post_exec_tx=b"\x7d\xc0"))
    message["diff"]["post_exec_tx"] = None
    assert read(message) == FIRST


def test_keys_may_come_in_any_order_and_hex_in_any_case() -> None:
    message = dict(reversed(wire(FIRST).items()))
    message["diff"]["block_hash"] = "0x" + FIRST.diff.block_hash.hex().upper()
    assert read(message) == FIRST


def test_space_may_stand_before_the_object() -> None:
    assert decode(b" \r\n\t" + encode(FIRST) + b"\n") == FIRST


@pytest.mark.parametrize(
    ("message", "payload_id"),
    [
        ({"payload_id": "0x0102030405060708"}, bytes(range(1, 9))),
        ({"payload_id": "0x0102030405060708", "diff": None, "index": 3}, bytes(range(1, 9))),
        ({}, None),
    ],
)
def test_a_message_without_diff_is_no_error(message: JsonObject, payload_id: bytes | None) -> None:
    assert read(message) == EndMarker(payload_id)


def test_the_number_of_the_base_serves_where_metadata_has_none() -> None:
    message = wire(FIRST)
    del message["metadata"]
    assert read(message) == replace(FIRST, previous=None)


ABSENT = object()


@each_case(
    ("path", "value", "field"),
    [
        (["payload_id"], "0x00", "payload_id"),
        (["payload_id"], ABSENT, "payload_id"),
        (["index"], ABSENT, "index"),
        (["index"], "0x0", "index"),
        (["index"], -1, "index"),
        (["index"], 1.5, "index"),
        (["index"], True, "index"),
        (["index"], 2**64, "index"),
        (["index"], 1, "base"),
        (["base"], ABSENT, "base"),
        (["base"], 5, "base"),
        (["base", "parent_hash"], ABSENT, "base.parent_hash"),
        (["base", "parent_hash"], "0x" + 62 * "0", "base.parent_hash"),
        (["base", "parent_beacon_block_root"], None, "base.parent_beacon_block_root"),
        (["base", "prev_randao"], 64 * "0", "base.prev_randao"),
        (["base", "fee_recipient"], "0x" + 42 * "0", "base.fee_recipient"),
        (["base", "block_number"], "0x8", "metadata.block_number"),
        (["base", "block_number"], 7, "base.block_number"),
        (["base", "gas_limit"], "0x01", "base.gas_limit"),
        (["base", "gas_limit"], "0x10000000000000000", "base.gas_limit"),
        (["base", "timestamp"], "0x", "base.timestamp"),
        (["base", "extra_data"], "0x0", "base.extra_data"),
        (["base", "base_fee_per_gas"], "0x1" + 64 * "0", "base.base_fee_per_gas"),
        (["diff"], [], "diff"),
        (["diff", "state_root"], "0x0", "diff.state_root"),
        (["diff", "receipts_root"], ABSENT, "diff.receipts_root"),
        (["diff", "logs_bloom"], "0x00", "diff.logs_bloom"),
        (["diff", "gas_used"], "21000", "diff.gas_used"),
        (["diff", "block_hash"], "0x" + 64 * "g", "diff.block_hash"),
        (["diff", "transactions"], ABSENT, "diff.transactions"),
        (["diff", "transactions"], "0x02", "diff.transactions"),
        (["diff", "transactions"], ["0x02", "0x0"], "diff.transactions[1]"),
        (["diff", "transactions"], ["0x02", 3], "diff.transactions[1]"),
        (["diff", "transactions"], ["0x"], "diff.transactions[0]"),
        (["diff", "transactions"], ["0x 02"], "diff.transactions[0]"),
        (["diff", "withdrawals_root"], ABSENT, "diff.withdrawals_root"),
        (["diff", "blob_gas_used"], "", "diff.blob_gas_used"),
        (["metadata"], [], "metadata"),
        (["metadata", "block_number"], "0x7", "metadata.block_number"),
        (["metadata", "block_number"], 8, "metadata.block_number"),
        (["metadata", "prev_flashblock_id"], "6", "metadata.prev_flashblock_id"),
        (["metadata", "prev_flashblock_id"], "06-1", "metadata.prev_flashblock_id"),
        (["metadata", "prev_flashblock_id"], f"{2**64}-1", "metadata.prev_flashblock_id"),
        (["metadata", "prev_flashblock_id"], "6-\u0661", "metadata.prev_flashblock_id"),
    ],
)
def test_a_bad_field_is_named(path: list[str], value: object, field: str) -> None:
    message = wire(FIRST)
    *parents, last = path
    inside = message
    for key in parents:
        inside = inside[key]
    if value is ABSENT:
        del inside[last]
    else:
        inside[last] = value
    with pytest.raises(MalformedFlashblock) as caught:
        read(message)
    assert caught.value.field == field
    assert caught.value.why


def test_a_later_index_needs_the_number_in_its_metadata() -> None:
    message = wire(SECOND)
    del message["metadata"]
    with pytest.raises(MalformedFlashblock) as caught:
        read(message)
    assert caught.value.field == "metadata.block_number"


def test_an_end_marker_with_a_bad_payload_id_is_malformed() -> None:
    with pytest.raises(MalformedFlashblock, match="payload_id"):
        read({"payload_id": "0x"})


@each_case(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}{}",
        b'{"diff":' + 5_000_000 * b"[",
        b'{"unknown":' + 100_000 * b'{"a":' + b"1" + 100_001 * b"}",
        b'{"index":' + 100_000 * b"9" + b',"diff":{}}',
        b'{"payload_id":"\xff"}',
        b"\xff\xfe",
        compress(b"not json", 1),
        compress(b"{}", 1)[:-1],
    ],
    ids=lambda data: repr(data[:16]),
)
def test_what_is_no_message_is_refused_as_a_whole(data: bytes) -> None:
    with pytest.raises(MalformedFlashblock) as caught:
        decode(data)
    assert caught.value.field in {"message", "diff", "index"}


def test_a_message_that_holds_too_many_texts_is_not_read() -> None:
    """Two million transactions of one byte fit into the allowed bytes."""
    text = encode(with_transactions(FIRST, *[b"\0"] * 2_000_000))
    assert len(text) < MessageLimits().message
    with pytest.raises(MalformedFlashblock, match="has more than 500000 texts"):
        decode(text)
    quotes = encode(FIRST).count(b'"')
    assert decode(encode(FIRST), MessageLimits(quotes=quotes)) == FIRST
    with pytest.raises(MalformedFlashblock, match="texts"):
        decode(encode(FIRST), MessageLimits(quotes=quotes - 1))


def test_the_limits_hold_to_the_byte() -> None:
    text = encode(FIRST)
    small = compress(text, 5)
    assert decode(text, MessageLimits(message=len(text))) == FIRST
    assert decode(small, MessageLimits(compressed=len(small), message=len(text))) == FIRST
    for data, limits in [
        (text, MessageLimits(message=len(text) - 1)),
        (small, MessageLimits(message=len(text) - 1)),
        (small, MessageLimits(compressed=len(small) - 1)),
    ]:
        with pytest.raises(MalformedFlashblock, match="more than") as caught:
            decode(data, limits)
        assert caught.value.field == "message"


def is_read_or_malformed(data: bytes) -> None:
    """Decode; any other exception fails the test."""
    try:
        found = decode(data, MessageLimits(64 * 1024, 256 * 1024))
    except MalformedFlashblock:
        return
    if isinstance(found, Flashblock):
        assert decode(encode(found)) == found


@given(st.binary(max_size=2_000))
@example(b"{" + 400 * b"\xc3\xa4")
def test_random_bytes_are_read_or_malformed(data: bytes) -> None:
    is_read_or_malformed(data)


Change = Callable[[bytearray, int, int], None]


def flip(data: bytearray, at: int, byte: int) -> None:
    data[at] = byte


def cut(data: bytearray, at: int, byte: int) -> None:
    del data[at : at + byte]


def double(data: bytearray, at: int, byte: int) -> None:
    data[at:at] = data[at : at + byte]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([flip, cut, double]), st.floats(0, 1, exclude_max=True), st.integers(0, 255)
    ),
    min_size=1,
    max_size=6,
)


@given(flashblocks(), CHANGES, st.booleans())
def test_changed_bytes_are_read_or_malformed(
    flashblock: Flashblock, changes: list[tuple[Change, float, int]], compressed: bool
) -> None:
    text = encode(flashblock)
    data = bytearray(compress(text, 1) if compressed else text)
    for change, where, byte in changes:
        if data:
            change(data, int(where * len(data)), byte)
    is_read_or_malformed(bytes(data))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(flashblocks(), st.data())
def test_a_field_of_any_value_is_read_or_malformed(
    flashblock: Flashblock, data: st.DataObject
) -> None:
    message = copy.deepcopy(wire(flashblock))
    inside = message
    while True:
        key = data.draw(st.sampled_from(sorted(inside)))
        if isinstance(inside[key], dict) and data.draw(st.booleans()):
            inside = inside[key]
            continue
        inside[key] = data.draw(VALUES)
        break
    is_read_or_malformed(json.dumps(message).encode())
