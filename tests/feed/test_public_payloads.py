"""Flashblocks of public chains decode to the sealed hashes and roots of those chains.

`tests/support/payloads/public_payloads.py` has their field values and sources.
"""

import json
from typing import Any

import pytest

from foreblock._engine import (
    Receipt,
    decode_transaction,
    keccak256,
    logs_bloom,
    transactions_root,
)
from foreblock.feed.messages import decode, encode
from foreblock.feed.wire import compress
from foreblock.ledger.building.closed_index import header_of
from foreblock.ledger.following.verdict import hash_holds, is_provided, malformed
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.l1 import EcotoneAttributes, attributes_in
from foreblock.types import Flashblock, FlashblockId
from support.each_case import each_case
from support.payloads.public_payloads import (
    COUNTER,
    INCREMENTED,
    base_mainnet_50393250,
    base_sepolia_33439826,
    unichain_sepolia_35535698,
)

ISTHMUS = Rules(EthereumFork.PRAGUE, OptimismFork.ISTHMUS)
JOVIAN = Rules(EthereumFork.PRAGUE, OptimismFork.JOVIAN)
MESSAGES = [*unichain_sepolia_35535698(), base_sepolia_33439826(), base_mainnet_50393250()]
# The value of Unichain's counter after index 1. It is in no message: it was found by a search for
# the receipts root of index 1, and the later indices confirm it.
COUNTED = 2_731_100


def read(message: dict[str, Any]) -> Flashblock:
    found = decode(json.dumps(message).encode())
    assert isinstance(found, Flashblock)
    return found


@pytest.fixture
def unichain() -> list[Flashblock]:
    return [read(message) for message in unichain_sepolia_35535698()]


def names_its_header(so_far: list[Flashblock], rules: Rules) -> bool:
    """Return whether the last message has the hash of the header that all of them describe."""
    base = so_far[0].base
    assert base is not None
    root = transactions_root([raw for each in so_far for raw in each.diff.transactions])
    header = header_of(base, rules).replace(transactions_root=root)
    diff = so_far[-1].diff
    return is_provided(diff.block_hash) and hash_holds(header, diff, rules)


@each_case("message", MESSAGES, ids=lambda it: f"{it['payload_id']}-{it['index']}")
def test_messages_are_read_and_survive_both_directions(message: dict[str, Any]) -> None:
    found = read(message)
    assert malformed(found) is None
    assert decode(compress(json.dumps(message).encode(), 5)) == found
    assert decode(encode(found)) == found
    base = json.loads(encode(found)).get("base")
    assert base == message["base"]


def test_a_whole_job_of_unichain(unichain: list[Flashblock]) -> None:
    assert [each.index for each in unichain] == [0, 1, 2, 3, 4]
    assert {each.payload_id.hex() for each in unichain} == {"03c446f063e3735a"}
    assert {each.block_number for each in unichain} == {35535698}
    assert {each.diff.blob_gas_used for each in unichain} == {0}, "it leaves them out"
    assert {each.claims for each in unichain} == {None}, "and says nothing of receipts"
    for count in range(1, len(unichain) + 1):
        assert names_its_header(unichain[:count], ISTHMUS)
    # The last one is the sealed block.
    sealed = "c463a3120c35268f610d969f5608b479332ef10953af77c7a6be806195831196"
    assert unichain[-1].diff.block_hash.hex() == sealed


def test_its_transactions_are_the_builder_s(unichain: list[Flashblock]) -> None:
    attributes, *others = [
        decode_transaction(raw) for each in unichain for raw in each.diff.transactions
    ]
    assert attributes.type == 0x7E
    assert len({each.sender for each in others}) == 1, "signatures give one sender"
    assert others[0].sender.hex() == "c0043c50ba044a5f948d32faed806913d781d428"
    assert [each.nonce for each in others] == [*range(29_944_465, 29_944_470)]


def test_its_receipts_roots_and_blooms(unichain: list[Flashblock]) -> None:
    """Rebuilt from gas, the deposit's nonce and the counter's single event."""
    receipts = [
        Receipt(
            type=0x7E, status=True, cumulative_gas_used=67_988 - 21_880,
            deposit_nonce=35_535_698, deposit_receipt_version=1,
        ),
        Receipt(type=2, status=True, cumulative_gas_used=67_988),
    ]  # fmt: skip
    assert transactions_root([each.encode() for each in receipts]) == unichain[0].diff.receipts_root
    for counted, each in enumerate(unichain[1:], COUNTED):
        log = (COUNTER, [keccak256(INCREMENTED)], counted.to_bytes(32))
        receipts.append(
            Receipt(type=2, status=True, cumulative_gas_used=each.diff.gas_used, logs=[log])
        )
        assert transactions_root([each.encode() for each in receipts]) == each.diff.receipts_root
        assert logs_bloom(receipts) == each.diff.logs_bloom


@pytest.mark.parametrize(
    ("message", "rules", "nonce"),
    [(base_sepolia_33439826(), ISTHMUS, None), (base_mainnet_50393250(), JOVIAN, 50_393_253)],
    ids=["sepolia", "mainnet"],
)
def test_index_0_of_base_with_a_zero_state_root(
    message: dict[str, Any], rules: Rules, nonce: int | None
) -> None:
    found = read(message)
    assert found.diff.state_root == bytes(32)
    assert names_its_header([found], rules)
    if nonce is not None:
        deposit = Receipt(
            type=0x7E, status=True, cumulative_gas_used=found.diff.gas_used, deposit_nonce=nonce,
            deposit_receipt_version=1,
        )  # fmt: skip
        assert transactions_root([each.encode() for each in [deposit]]) == found.diff.receipts_root


def test_a_message_of_today_names_its_predecessor_and_has_jovian_s_attributes() -> None:
    found = read(base_mainnet_50393250())
    assert found.previous == FlashblockId(50393249, 10)
    attributes = attributes_in(found.diff.transactions[0])
    assert isinstance(attributes, EcotoneAttributes)
    assert (attributes.base_fee_scalar, attributes.blob_base_fee_scalar) == (2_269, 1_055_762)
    assert attributes.da_footprint_gas_scalar == 148
