"""L1Block: the storage after the attributes deposit, and the values of the getters."""

import pytest

from foreblock._engine import keccak256
from foreblock.ledger.rules.l1 import L1_BLOCK
from support.payloads.dev_state import ALICE, DEPOSITOR, Attributes, DevState
from support.payloads.solidity import decode

ATTRIBUTES = Attributes()


@pytest.fixture
def state() -> DevState:
    return DevState()


def test_deposit_fills_the_slots_that_execution_reads(state: DevState) -> None:
    """The byte ranges of the specification, counted here from the high end of each word."""
    executed = state.deposit(ATTRIBUTES)
    assert executed.receipt.status
    a = ATTRIBUTES
    words = [state.overlay.storage(L1_BLOCK, slot).to_bytes(32) for slot in range(10)]
    assert words == [
        bytes(16) + a.timestamp.to_bytes(8) + a.number.to_bytes(8),
        a.base_fee.to_bytes(32),
        a.hash,
        bytes(16)
        + a.base_fee_scalar.to_bytes(4)
        + a.blob_base_fee_scalar.to_bytes(4)
        + a.sequence_number.to_bytes(8),
        a.batcher.rjust(32, b"\0"),
        bytes(32),
        bytes(32),
        a.blob_base_fee.to_bytes(32),
        bytes(18)
        + a.da_footprint_gas_scalar.to_bytes(2)
        + a.operator_fee_scalar.to_bytes(4)
        + a.operator_fee_constant.to_bytes(8),
        bytes(32),
    ]


def test_later_deposit_replaces_every_value(state: DevState) -> None:
    state.deposit(ATTRIBUTES)
    zeros = Attributes(0, 0, 0, 0, 0, 0, 0, bytes(32), bytes(20), 0, 0, 0)
    assert state.deposit(zeros).receipt.status
    assert [state.overlay.storage(L1_BLOCK, slot) for slot in range(9)] == [0] * 9


def test_largest_values_do_not_reach_into_their_neighbours(state: DevState) -> None:
    largest = Attributes(
        2**32 - 1, 0, 2**64 - 1, 0, 2**64 - 1, 2**256 - 1, 0, b"\xff" * 32, b"\xff" * 20,
        0, 2**64 - 1, 2**16 - 1,
    )  # fmt: skip
    assert state.deposit(largest).receipt.status
    for name, value in (("timestamp", 0), ("number", 2**64 - 1), ("baseFeeScalar", 2**32 - 1),
                        ("blobBaseFeeScalar", 0), ("sequenceNumber", 2**64 - 1),
                        ("operatorFeeScalar", 0), ("daFootprintGasScalar", 2**16 - 1)):  # fmt: skip
        assert state.ask(L1_BLOCK, f"{name}()") == value, name


def test_getters_tell_what_was_deposited(state: DevState) -> None:
    state.deposit(ATTRIBUTES)
    a = ATTRIBUTES
    values = {
        "number": a.number,
        "timestamp": a.timestamp,
        "basefee": a.base_fee,
        "hash": int.from_bytes(a.hash),
        "sequenceNumber": a.sequence_number,
        "blobBaseFeeScalar": a.blob_base_fee_scalar,
        "baseFeeScalar": a.base_fee_scalar,
        "batcherHash": int.from_bytes(a.batcher),
        "l1FeeOverhead": 0,
        "l1FeeScalar": 0,
        "blobBaseFee": a.blob_base_fee,
        "operatorFeeConstant": a.operator_fee_constant,
        "operatorFeeScalar": a.operator_fee_scalar,
        "daFootprintGasScalar": a.da_footprint_gas_scalar,
        "DEPOSITOR_ACCOUNT": int.from_bytes(DEPOSITOR),
    }
    assert {name: state.ask(L1_BLOCK, f"{name}()") for name in values} == values
    assert state.ask(L1_BLOCK, "version()", shape=bytes) == b"1.0.0+foreblock"


def test_nobody_else_may_state_attributes(state: DevState) -> None:
    outcome = state.send(L1_BLOCK, ATTRIBUTES.call_data(), sender=ALICE)
    assert outcome.status == "revert"
    assert outcome.output == keccak256(b"NotDepositor()")[:4]
    assert state.overlay.storage(L1_BLOCK, 0) == 0


@pytest.mark.parametrize("cut", [4, 176, 177, 179])
def test_attributes_of_another_length_are_refused(state: DevState, cut: int) -> None:
    data = (ATTRIBUTES.call_data() + b"\0")[:cut]
    outcome = state.send(L1_BLOCK, data, sender=DEPOSITOR)
    assert outcome.status == "revert"
    assert outcome.output == keccak256(b"NotJovianAttributes()")[:4]


def test_earlier_forms_of_the_call_are_unknown(state: DevState) -> None:
    ecotone = bytes.fromhex("440a5e20") + ATTRIBUTES.call_data()[4:164]
    assert state.send(L1_BLOCK, ecotone, sender=DEPOSITOR).status == "revert"


def test_deposit_needs_about_the_gas_of_public_chains(state: DevState) -> None:
    """There it takes 46,218, through a proxy and with all slots already in use."""
    state.deposit(ATTRIBUTES)
    again = Attributes(sequence_number=4, number=25_825_144, base_fee=1, hash=b"\x55" * 32)
    assert 35_000 < state.deposit(again).gas_used < 55_000


def test_selector_is_the_published_one(state: DevState) -> None:
    assert keccak256(b"setL1BlockValuesJovian()")[:4].hex() == "3db6be2b"
    assert decode(int, state.call(L1_BLOCK, "number()").output) == 0
