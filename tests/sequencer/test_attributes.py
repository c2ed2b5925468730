import json
import struct

from foreblock._engine import Header, keccak256
from foreblock.ledger.rules.l1 import L1Fees
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.sequencer.attributes import (
    L1Origin,
    attributes_data,
    attributes_deposit,
    base_time_deposit,
    l1_origin,
    next_base,
    payload_id,
    terms_of,
)
from support.each_case import each_case
from support.payloads.dev_state import GENESIS, Attributes

STATE = DevState(bytes(32))
PROFILE = GENESIS.profile


def parent(**fields: object) -> Header:
    header = Header(
        parent_hash=b"\1" * 32,
        beneficiary=b"\2" * 20,
        state_root=b"\3" * 32,
        number=41,
        gas_limit=GENESIS.gas_limit,
        timestamp=GENESIS.timestamp + 82,
        extra_data=GENESIS.extra_data,
        base_fee_per_gas=10**9,
        withdrawals_root=b"\4" * 32,
        blob_gas_used=0,
        excess_blob_gas=0,
        parent_beacon_block_root=b"\5" * 32,
        requests_hash=b"\6" * 32,
    )
    return header.replace(**fields)  # type: ignore[arg-type]


def test_the_data_is_in_the_form_that_the_contract_reads() -> None:
    data = attributes_data(
        L1Origin(25_825_143, b"\x44" * 32, 1_767_225_700, 3),
        L1Fees(184_831_724, 11_819_775, 2_269, 1_055_762, 71, 1_000_003, 148),
        b"\xba" * 20,
    )
    assert len(data) == 178
    assert data == Attributes().call_data()


def test_the_attributes_deposit_is_as_the_specification_has_it() -> None:
    base = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 0, STATE)
    deposit = attributes_deposit(base, 0, 2)
    assert deposit.type == 0x7E
    assert deposit.sender.hex() == "deaddeaddeaddeaddeaddeaddeaddeaddead0001"
    assert deposit.to is not None
    assert deposit.to.hex() == "4200000000000000000000000000000000000015"
    assert (deposit.value, deposit.gas_limit) == (0, 1_000_000)
    shown = json.loads(b"{%b}" % deposit.fragment(parent(), 0))
    assert (shown["mint"], shown.get("isSystemTx")) == ("0x0", None)
    origin = l1_origin(0, 42, base.timestamp, 2)
    place = keccak256(origin.hash + origin.sequence_number.to_bytes(32))
    assert shown["sourceHash"] == "0x" + keccak256((1).to_bytes(32) + place).hex()


def test_the_deposit_of_milliseconds_is_that_of_base() -> None:
    """Block 2 of a public network, whose time is a whole second."""
    recorded = (
        "7ef877a0002c6109309955fa0a804192573fbb620035638bfc135b9190bc5f3dd964498a94deaddeaddeaddead"
        "deaddeaddeaddeaddead00019442000000000000000000000000000000000000308080830f424080a486bdf394"
    )
    assert base_time_deposit(2, 0).raw.hex() == recorded + 64 * "0"
    assert base_time_deposit(2, 800).raw.hex() == recorded + 60 * "0" + "0320"


def test_an_origin_of_short_blocks_lasts_twelve_seconds() -> None:
    origins = [l1_origin(7, block, 1_000 + block // 5, 0.2) for block in range(61)]
    assert [each.number for each in origins] == [1] * 60 + [2]
    assert [each.timestamp for each in origins] == [1_000] * 60 + [1_012]


def test_an_origin_lasts_six_blocks() -> None:
    origins = [l1_origin(7, block, 1_000 + 2 * block, 2) for block in range(13)]
    assert [each.number for each in origins] == [1] * 6 + [2] * 6 + [3]
    assert [each.sequence_number for each in origins] == [0, 1, 2, 3, 4, 5] * 2 + [0]
    assert [each.timestamp for each in origins] == [1_000] * 6 + [1_012] * 6 + [1_024]
    assert len({each.hash for each in origins}) == 3
    assert l1_origin(8, 0, 1_000, 2).hash != origins[0].hash


def test_nothing_differs_between_equal_blocks_and_everything_between_others() -> None:
    base = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 0, STATE)
    again = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 0, STATE)
    assert (base, payload_id(base, 0)) == (again, payload_id(again, 0))
    seeded = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 1, STATE)
    other = next_base(parent(gas_used=5), GENESIS.timestamp + 84, PROFILE, 0, STATE)
    for each, seed in ((seeded, 1), (other, 0)):
        assert each.prev_randao != base.prev_randao
        assert each.parent_beacon_block_root != base.parent_beacon_block_root
        assert payload_id(each, seed) != payload_id(base, 0)
    assert payload_id(base, 0)[0] == 3
    assert len(payload_id(base, 0)) == 8


@each_case(
    ("used", "data", "base_fee", "expected"),
    [
        (0, 0, 10**9, 10**9),  # idle: the floor
        (80_000_000, 0, 10**9, 10**9),  # the target
        (160_000_000, 0, 10**9, 1_010_000_000),
        (0, 160_000_000, 10**9, 1_010_000_000),  # congested by data
        (0, 0, 2 * 10**9, 1_980_000_000),
    ],
)
def test_the_base_fee_follows_the_parent(
    used: int, data: int, base_fee: int, expected: int
) -> None:
    header = parent(gas_used=used, blob_gas_used=data, base_fee_per_gas=base_fee)
    base = next_base(header, GENESIS.timestamp + 84, PROFILE, 0, STATE)
    assert base.base_fee_per_gas == expected
    assert base.extra_data == GENESIS.extra_data
    assert base.gas_limit == GENESIS.gas_limit


def test_a_new_floor_and_a_new_gas_limit_stand_in_the_block_itself() -> None:
    state = DevState(bytes(32), minimum_base_fee=7, gas_limit=5_000_000)
    base = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 0, state)
    assert base.extra_data == struct.pack(">BIIQ", 1, 100, 5, 7)
    assert base.gas_limit == 5_000_000
    assert base.base_fee_per_gas == 10**9, "the parent's floor holds for it"
    assert terms_of(base, PROFILE, None).minimum_base_fee == 7


def test_a_genesis_that_leaves_the_fee_constants_unsaid_is_followed_by_blocks_that_say_them() -> (
    None
):
    header = parent(extra_data=struct.pack(">BIIQ", 1, 0, 0, 9))
    base = next_base(header, GENESIS.timestamp + 84, PROFILE, 0, STATE)
    assert base.extra_data == struct.pack(">BIIQ", 1, 100, 5, 9)


def test_transactions_may_have_what_the_deposit_leaves() -> None:
    base = next_base(parent(), GENESIS.timestamp + 84, PROFILE, 0, STATE)
    terms = terms_of(base, PROFILE, None)
    assert terms.gas_limit == GENESIS.gas_limit - 70_000
    assert (terms.base_fee, terms.minimum_base_fee) == (10**9, 10**9)
    assert terms.chain_id == PROFILE.chain_id
