"""Headers, receipts, transactions and fees, compared with blocks of public chains."""

import json

import pytest

from checker.fees import gas_used, next_base_fee, read_terms
from checker.header import as_json, from_json, header_hash
from checker.keccak import keccak256
from checker.messages import announced_header, read_message
from checker.ordered_trie import ordered_root
from checker.receipts import receipt
from checker.transactions import DEPOSIT, decode_deposit
from support.payloads.public_payloads import base_mainnet_50393250

# Index 0 of Base mainnet's block 50393250.
MESSAGE = json.dumps(base_mainnet_50393250())


def test_the_hash_of_a_flashblock_of_base() -> None:
    message = read_message(MESSAGE)
    assert message.base is not None
    header = announced_header(message.base, message.diff, ordered_root(message.raws))
    assert header_hash(header) == message.hash
    assert message.previous == (50393249, 10)
    assert header_hash(from_json(as_json(header))) == message.hash


def test_its_receipt_and_its_fees() -> None:
    message = read_message(MESSAGE)
    (raw,) = message.raws
    deposit = decode_deposit(raw, keccak256(raw))
    assert deposit.hash.hex().startswith("4df48be5")
    assert deposit.hash.hex().endswith("689b")
    # The depositor's nonce was the block's number plus three.
    root = ordered_root([receipt(DEPOSIT, 46_218, (), 50_393_253)])
    assert root.hex() == message.diff["receipts_root"][2:]
    terms = read_terms(deposit.data)
    assert (terms.base_fee_scalar, terms.blob_base_fee_scalar) == (2_269, 1_055_762)
    assert terms.fee(100_000_000) == 1_918_900_020
    assert terms.footprint(100_000_000) == 100 * 148
    assert terms.operator_fee(21_000) == 0


@pytest.mark.parametrize(
    ("base_fee", "used", "expected"),
    [(10**9, 2 * 10**8, 1_015_000_000), (10**9, 0, 990_000_000), (5 * 10**6, 0, 5_000_000)],
)
def test_base_fees(base_fee: int, used: int, expected: int) -> None:
    extra_data = bytes.fromhex("01000000640000000500000000004c4b40")
    assert next_base_fee(base_fee, 4 * 10**8, used, 0, extra_data) == expected
    assert next_base_fee(base_fee, 4 * 10**8, 0, used, extra_data) == expected


@pytest.mark.parametrize(
    ("call_data", "execution", "expected"),
    [
        (b"", 0, 21_000),
        (b"\0\1", 100, 21_000 + 4 + 16 + 100),
        # EIP-7623: ten gas per token; a non-zero byte has four tokens.
        (b"\1" * 100, 100, 21_000 + 4_000),
        (b"\0" * 100, 10_000, 21_000 + 400 + 10_000),
    ],
)
def test_gas_of_call_data(call_data: bytes, execution: int, expected: int) -> None:
    assert gas_used(call_data, execution) == expected
