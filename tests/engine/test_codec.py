"""Bytes of transactions, headers, blocks and receipts, as seen from Python.

The encodings themselves are tested in Rust; this file tests the interface: attributes and
exceptions.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from checker.receipts import Log, bloom
from foreblock import _engine
from foreblock.errors import InvalidArgument, Undecodable
from foreblock.upstream.block_json import rebuild_header
from support.each_case import each_case
from support.payloads import headers
from support.payloads.signing import BLOB, SET_CODE

SENDER = bytes.fromhex("7435ed30a8b4aeb0877cef0c6e8cffe834eb865f")
CHAIN_ID = 0xC72DD9D5E883E
LEGACY = bytes.fromhex(
    "f8664901825208940c2c51a0990aee1d73c1228de15868834155750801808718e5bb3abd109fa031c82ffa1eb4a48e"
    "fbdbc324f5a248c3708b7a83df0ccf954c57bf5c84de7767a0018c2c95d517af9bdf5af3693fba7d54f87d665a7159"
    "12f416646c2318418d98"
)
DEPOSIT = bytes.fromhex(
    "7ef856a0c3ecdc70c81521aae81240518d3547f601bb33ec07b909e83544b2fe093c78bd9400000000000000000000"
    "0000000000000000000094f39fd6e51aad88f6f4ce6ab8827279cfffb922668080830f42408083abcdef"
)


def header() -> _engine.Header:
    return _engine.Header(
        parent_hash=bytes(32),
        beneficiary=SENDER,
        state_root=bytes(32),
        number=7,
        gas_limit=30_000_000,
        timestamp=1_700_000_000,
        base_fee_per_gas=10**9,
    )


def shown(raw: bytes) -> dict[str, Any]:
    """The JSON form of a transaction in this block."""
    text = _engine.decode_transaction(raw).fragment(header(), 3)
    return dict(json.loads(b"{%b}" % text))


def test_legacy_transaction_shows_its_fields() -> None:
    transaction = _engine.decode_transaction(LEGACY)
    assert transaction.sender == SENDER
    assert transaction.raw == LEGACY
    assert transaction.hash == _engine.keccak256(LEGACY)
    assert (transaction.type, transaction.nonce, transaction.gas_limit) == (0, 73, 21_000)
    assert (transaction.gas_price, transaction.value, transaction.input) == (1, 1, b"")
    assert transaction.chain_id == CHAIN_ID
    assert transaction.max_fee_per_gas is None
    assert transaction.access_list is None
    json = shown(LEGACY)
    assert (json["v"], json["r"]) == (
        hex(35 + 2 * CHAIN_ID),
        hex(int.from_bytes(LEGACY[39:71])),
    )
    assert json["s"] == hex(int.from_bytes(LEGACY[72:]))
    assert (json["blockNumber"], json["transactionIndex"], json["gasPrice"]) == (
        "0x7",
        "0x3",
        "0x1",
    )
    assert not json.keys() & {"yParity", "maxFeePerGas", "accessList", "mint"}


def test_blob_transaction_shows_its_fields() -> None:
    transaction = _engine.decode_transaction(BLOB)
    contract = bytes.fromhex("7dcd17433742f4c0ca53122ab541d0ba67fc27df")
    assert (transaction.type, transaction.sender, transaction.to) == (3, SENDER, contract)
    assert transaction.gas_price is None
    assert transaction.max_fee_per_gas == 0x0813F23C
    assert transaction.max_priority_fee_per_gas == 1
    assert shown(BLOB)["maxFeePerBlobGas"] == "0x20000"
    assert transaction.effective_gas_price(100) == 101
    assert transaction.effective_gas_price(None) == 0x0813F23C
    assert transaction.access_list is not None
    ((address, (first, second)),) = transaction.access_list
    assert (address, first, len(second)) == (contract, bytes(32), 32)
    assert transaction.blob_versioned_hashes is not None
    assert [each[0] for each in transaction.blob_versioned_hashes] == [1]


def test_set_code_transaction_shows_what_it_authorizes() -> None:
    transaction = _engine.decode_transaction(SET_CODE)
    assert transaction.authorization_list is not None
    assert len(transaction.authorization_list) == 1
    (authorization,) = shown(SET_CODE)["authorizationList"]
    assert (authorization["chainId"], authorization["nonce"]) == (hex(CHAIN_ID), "0x0")
    assert authorization["address"] == "0x8c2319620d7c348bb4e2b2a0b230c81f310e9561"


def test_deposit_has_no_signature_and_says_where_it_came_from() -> None:
    transaction = _engine.decode_transaction(DEPOSIT)
    assert (transaction.type, transaction.sender) == (0x7E, bytes(20))
    assert (transaction.gas_price, transaction.nonce, transaction.chain_id) == (0, 0, None)
    members = shown(DEPOSIT)
    assert [members[name] for name in ("v", "yParity", "r", "s", "mint")] == ["0x0"] * 5
    assert members["sourceHash"] == "0x" + DEPOSIT[4:36].hex()
    assert "isSystemTx" not in members
    text = transaction.fragment(header(), 3, (9, 1))
    assert text.count(b'"nonce":"0x9"') == text.count(b'"depositReceiptVersion":"0x1"') == 1


def test_batch_names_the_first_bad_transaction() -> None:
    raws = [LEGACY, BLOB, SET_CODE, DEPOSIT] * 30
    decoded = _engine.decode_transactions(raws, threads=2)
    assert [each.raw for each in decoded] == raws
    assert decoded[:4] == [_engine.decode_transaction(raw) for raw in raws[:4]]
    with pytest.raises(Undecodable) as caught:
        _engine.decode_transactions([*raws, b"\x05", b""])
    assert caught.value.what == "transaction"
    assert caught.value.why == "index 120: type 0x05 is not supported"


def test_values_are_frozen_hashable_and_equal_by_value() -> None:
    transaction = _engine.decode_transaction(LEGACY)
    assert {transaction, _engine.decode_transaction(LEGACY)} == {transaction}
    assert {header(), header(), header().replace(number=8)} == {
        header(),
        header().replace(number=8),
    }
    with pytest.raises(AttributeError):
        transaction.nonce = 1  # type: ignore[misc]


def test_header_round_trip_and_replacement() -> None:
    original = header()
    assert original.hash == _engine.keccak256(original.encode())
    distinct: dict[str, Any] = {
        name: bytes([place]) * len(value) if isinstance(value, bytes) else place
        for place, (name, value) in enumerate(headers.PRAGUE.items(), 1)
    }
    for each in (original, _engine.Header(**headers.MINED), _engine.Header(**distinct)):
        assert rebuild_header(json.loads(b"{%b}" % each.members())) == each
    assert b'"size":"0x7"' in original.members(7)
    assert _engine.decode_header(original.encode()) == original
    changed = original.replace(number=8, extra_data=b"extra")
    assert (changed.number, changed.extra_data, changed.timestamp) == (8, b"extra", 1_700_000_000)
    assert changed.hash != original.hash
    assert changed.replace(number=7, extra_data=b"") == original


def test_header_needs_the_fields_of_earlier_forks() -> None:
    with pytest.raises(InvalidArgument, match="requests_hash needs parent_beacon_block_root"):
        header().replace(
            withdrawals_root=bytes(32), blob_gas_used=0, excess_blob_gas=0, requests_hash=bytes(32)
        )


@each_case("number", [0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**200, 2**256 - 1])
def test_numbers_of_256_bits_cross_the_seam(number: int) -> None:
    assert header().replace(difficulty=number).difficulty == number


@each_case(
    "number",
    [-1, -(2**63) - 1, -(2**300), 2**256, pytest.param(10**6000, id="6001 digits")],
)
def test_numbers_out_of_range_are_invalid(number: int) -> None:
    with pytest.raises(InvalidArgument, match=r"between 0 and 2\*\*256 - 1") as caught:
        header().replace(difficulty=number)
    assert caught.value.__notes__ == ["while processing 'difficulty'"]


@each_case(
    ("attempt", "why"),
    [
        (lambda: header().replace(beneficiary=bytes(19)), "an address has 20 bytes, not 19"),
        (lambda: header().replace(parent_hash=bytes(33)), "expected 32 bytes, not 33"),
        (lambda: header().replace(number=2**64), r"between 0 and 2\*\*64 - 1"),
        (lambda: _engine.decode_block(b"", 1), "offset 1 lies beyond the 0 bytes"),
        (lambda: _engine.decode_block(b"", -1), "between 0 and"),
        (lambda: receipt_of((bytes(20), [bytes(32)] * 5, b"")), "at most 4 topics, not 5"),
        (lambda: _engine.Receipt(type=0, cumulative_gas_used=1), "either a status or"),
        (lambda: _engine.requests_hash([(256, b"x")]), r"between 0 and 2\*\*8 - 1"),
        (lambda: _engine.deposit_requests([], b""), "an address has 20 bytes, not 0"),
    ],
)
def test_values_that_cannot_be_meant_are_invalid(attempt: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        attempt()


def test_wrong_types_are_type_errors() -> None:
    untyped: Callable[..., object] = header().replace
    for field, value in [("number", "7"), ("number", 7.0), ("parent_hash", "00"), ("other", 1)]:
        with pytest.raises(TypeError):
            untyped(**{field: value})
    constructor: Callable[..., object] = _engine.Header
    with pytest.raises(TypeError, match="needs 'parent_hash'"):
        constructor(number=1)


def test_blocks_are_taken_from_a_buffer_one_by_one() -> None:
    withdrawal = (1, 2, SENDER, 3)
    first = _engine.Block(header(), [LEGACY, BLOB], [header()])
    second = _engine.Block(header(), [DEPOSIT], [], [withdrawal])
    buffer = first.encode() + second.encode()
    assert _engine.decode_block(buffer, 0) == (first, first.size)
    assert _engine.decode_block(buffer, first.size) == (second, len(buffer))
    assert first.transactions == (LEGACY, BLOB)
    assert (first.uncles, first.withdrawals) == ((header(),), None)
    assert second.withdrawals == (withdrawal,)
    assert second.hash == second.header.hash == header().hash


@each_case("damage", [b"", b"\xf8", b"\xff" * 9, b"garbage", b"\xc0", b"\x80"])
def test_what_is_no_block_is_undecodable(damage: bytes) -> None:
    with pytest.raises(Undecodable):
        _engine.decode_block(damage)


def test_block_refuses_bytes_that_are_no_transaction() -> None:
    with pytest.raises(Undecodable, match="index 1: type 0x05"):
        _engine.Block(header(), [LEGACY, b"\x05"])


def receipt_of(log: tuple[bytes, Sequence[bytes], bytes]) -> _engine.Receipt:
    """The receipt of a deposit with this log."""
    return _engine.Receipt(
        type=0x7E,
        cumulative_gas_used=21_000,
        status=True,
        logs=[log],
        deposit_nonce=4,
        deposit_receipt_version=1,
    )


def test_receipt_round_trip_of_its_attributes() -> None:
    log = (SENDER, (bytes(32), b"\x01" * 32), b"data")
    receipt = receipt_of(log)
    assert (receipt.status, receipt.post_state) == (True, None)
    assert (receipt.cumulative_gas_used, receipt.logs) == (21_000, (log,))
    assert (receipt.deposit_nonce, receipt.deposit_receipt_version) == (4, 1)
    assert receipt.encode()[0] == 0x7E
    assert receipt.encode()[-2:] == b"\x04\x01"
    assert _engine.logs_bloom([receipt]) == bloom([Log(*log)]) != bytes(256)


def test_roots_of_nothing_are_the_known_ones() -> None:
    empty = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    assert _engine.transactions_root([]).hex() == empty
    assert _engine.withdrawals_root([]).hex() == empty
    assert _engine.logs_bloom([]) == bytes(256)
    assert _engine.ommers_hash([]) == _engine.keccak256(b"\xc0") == header().ommers_hash
    assert _engine.deposit_requests([], SENDER) == b""
    assert _engine.requests_hash([]).hex().startswith("e3b0c44298fc1c14")


def test_receipts_before_byzantium_give_the_published_root() -> None:
    receipts = [
        _engine.Receipt(type=0, cumulative_gas_used=gas, post_state=bytes.fromhex(root))
        for gas, root in [
            (0x102D3, "9d6eec3457f11763a235d68c58367a740f429f01fd310692736b54e0019df44b"),
            (0x22ADC, "52c619f59247e66f4abaf6e08c54e8d448d1b0d5e5fb2be0e3d63a019b5ca593"),
            (0x38231, "a851d26965f49357466094e46aae53927fb78359e834150e28f63a679deb10b1"),
            (0x527EB, "c45c61f676847ea82577acf0615c26796772a3c803b3c2cbf205284cc978375c"),
        ]
    ]
    expected = "68e78088e89f476d25495c7802dbed8a5735ef869ea2aae927ed4e62966e1a4f"
    assert _engine.transactions_root([each.encode() for each in receipts]).hex() == expected
