"""Receipts rendered by the engine, compared with Python on decoded ones."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import (
    Header,
    Receipt,
    Transaction,
    decode_receipt,
    decode_transactions,
    deposit_transaction,
)
from foreblock.ledger.reading.blocks import SealedBlock
from foreblock.ledger.reading.stored_block import PlacedReceipt
from foreblock.ledger.rules.l1 import ATTRIBUTES_DEPOSITOR, L1_BLOCK, attributes_in
from foreblock.ledger.storage.partial_rows import Position
from foreblock.methods.blocks.receipts import stored_receipts
from support.chains.profiles import JOVIAN, MERGED, OSAKA, profile
from support.payloads.receipt_oracle import ReceiptOracle
from support.payloads.signing import BLOB, SET_CODE
from support.strategies.block_items import logs, transactions

BEDROCK: dict[str, Any] = MERGED | {"bedrockBlock": 0, "optimism": JOVIAN["optimism"]}
FORKS = ("regolith", "canyon", "ecotone", "fjord", "granite", "holocene", "isthmus", "jovian")
CONFIGS = [
    MERGED,
    OSAKA,
    *(BEDROCK | {f"{name}Time": 0 for name in FORKS[:count]} for count in range(len(FORKS) + 1)),
]
# A selector of L1 attributes, and the length of its call data.
LAYOUTS = [("015d8eb9", 260), ("440a5e20", 164), ("098999be", 176), ("3db6be2b", 178)]


def is_optimism(config: dict[str, Any]) -> bool:
    return "optimism" in config


def block_of(config: dict[str, Any], base_fee: int | None, excess_blob_gas: int) -> SealedBlock:
    cancun = config is OSAKA
    header = Header(
        parent_hash=bytes(32),
        beneficiary=bytes(20),
        state_root=bytes(32),
        number=7,
        gas_limit=30_000_000,
        timestamp=1_700_000_000,
        base_fee_per_gas=0 if cancun and base_fee is None else base_fee,
        withdrawals_root=bytes(32) if cancun else None,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=excess_blob_gas if cancun else None,
    )
    return SealedBlock(header, 0, profile(config))


@st.composite
def first_deposits(draw: st.DrawFn) -> Transaction:
    """A deposit with L1 attributes, or other data."""
    selector, length = draw(st.sampled_from(LAYOUTS))
    words = draw(st.binary(min_size=length - 4, max_size=length - 4))
    if draw(st.booleans()):  # realistic amounts: the highest bytes of each word are zero
        words = bytes(byte if place % 32 >= 24 else 0 for place, byte in enumerate(words))
    return deposit_transaction(
        source_hash=bytes(32),
        sender=ATTRIBUTES_DEPOSITOR,
        to=L1_BLOCK,
        mint=0,
        value=0,
        gas_limit=1_000_000,
        input=bytes.fromhex(selector) + words,
    )


@st.composite
def receipts_of(draw: st.DrawFn, raws: list[bytes]) -> list[bytes]:
    """A receipt for each transaction."""
    gas, encoded = 0, []
    for raw in raws:
        gas += draw(st.integers(0, 2**40))
        kind = raw[0] if raw[0] < 0x80 else 0
        outcome: dict[str, Any] = {"status": draw(st.booleans())}
        if not kind and draw(st.booleans()):
            outcome = {"post_state": draw(st.binary(min_size=32, max_size=32))}
        if kind == 0x7E and draw(st.booleans()):
            outcome |= {"deposit_nonce": draw(st.integers(0, 2**64 - 1))}
            outcome |= {"deposit_receipt_version": 1}
        receipt = Receipt(
            type=kind, cumulative_gas_used=gas, logs=draw(st.lists(logs, max_size=3)), **outcome
        )
        encoded.append(receipt.encode())
    return encoded


@given(
    st.sampled_from(CONFIGS),
    st.none() | st.integers(0, 2**40),
    st.integers(0, 2**26),
    first_deposits(),
    st.lists(transactions(), max_size=4),
    st.data(),
)
def test_receipts_are_those_that_python_writes(
    config: dict[str, Any],
    base_fee: int | None,
    excess_blob_gas: int,
    first: Transaction,
    others: list[Transaction],
    data: st.DataObject,
) -> None:
    block = block_of(config, base_fee, excess_blob_gas)
    raws = [each.raw for each in others]
    if is_optimism(config):
        raws.insert(0, first.raw)
    else:
        raws += [BLOB, SET_CODE]
    encoded = data.draw(receipts_of(raws))
    begin = raws[0] if raws else None
    attributes = attributes_in(raws[0]) if is_optimism(config) else None
    oracle, before = ReceiptOracle(block, attributes), Position()
    expected: list[bytes] = []
    decoded = decode_transactions(raws)
    for transaction, receipt in zip(decoded, encoded, strict=True):
        placed = PlacedReceipt(transaction, decode_receipt(receipt), before)
        expected.append(oracle.receipt(placed))
        before = placed.end
    found = stored_receipts(block, begin).texts(raws, encoded)
    if all(amount < 2**128 for amount in _amounts(attributes)):
        assert found == expected
    else:
        assert len(found) == len(expected), "larger amounts saturate"


def _amounts(attributes: object) -> list[int]:
    """The amounts of L1 attributes."""
    names = getattr(attributes, "__struct_fields__", ())
    return [getattr(attributes, name) or 0 for name in names]
