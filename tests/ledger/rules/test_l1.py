"""The cost of a transaction on L1, compared with the engine's charge to its sender.

The engine reads the prices from the storage of a contract, the rule here from the call data that
fills it, so a test gives every price twice, in both forms.
"""

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from foreblock._engine import Message, Overlay, Transaction, sign_transaction
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.l1 import (
    L1_BLOCK,
    BedrockAttributes,
    EcotoneAttributes,
    L1Costs,
    attributes_in,
    decode_attributes,
)
from support.executing import Charged, charge
from support.payloads.dev_state import ACCOUNTS
from support.payloads.small_store import env

BEDROCK_FORKS = [OptimismFork.BEDROCK, OptimismFork.REGOLITH, OptimismFork.CANYON]
ECOTONE_FORKS = [fork for fork in OptimismFork if fork >= OptimismFork.ECOTONE]

u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
fees = st.integers(0, 10**12)


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    """A signed transaction whose data compresses well, badly or not at all."""
    data = draw(st.binary(max_size=200)) + bytes(draw(st.integers(0, 300)))
    data += draw(st.binary(max_size=200)) * draw(st.integers(1, 3))
    message = Message(sender=ACCOUNTS[0].address, to=b"\x35" * 20, data=data, gas=200_000)
    return sign_transaction(message, 2, 1, 0, ACCOUNTS[0].secret)


def charged(fork: OptimismFork, transaction: Transaction, slots: dict[int, int]) -> Charged:
    """The execution by the engine, with these slots of L1Block."""
    overlay = Overlay.empty()
    overlay.set(ACCOUNTS[0].address, balance=2**200)
    overlay.set(L1_BLOCK, state=slots)
    return charge(overlay, env(f"optimism:{fork.name.title()}"), transaction)


@given(st.sampled_from(BEDROCK_FORKS), transactions(), fees, st.integers(0, 10_000), u32)
def test_before_ecotone(
    fork: OptimismFork, transaction: Transaction, base_fee: int, overhead: int, scalar: int
) -> None:
    words = (1, 2, base_fee, 4, 5, 6, overhead, scalar)
    data = bytes.fromhex("015d8eb9") + b"".join(word.to_bytes(32) for word in words)
    attributes = decode_attributes(data)
    assert attributes == BedrockAttributes(base_fee, overhead, scalar)
    slots = {1: base_fee, 5: overhead, 6: scalar}
    _, fee, _ = charged(fork, transaction, slots)
    cost = L1Costs(attributes, fork).of(transaction.raw)
    assert (cost.fee, cost.footprint) == (fee, 0)


PRICES = st.builds(EcotoneAttributes, fees, fees, u32, u32, u32, u64, u16)


def call_data(prices: EcotoneAttributes, fork: OptimismFork) -> bytes:
    """The deposit's data under a fork, which only has the prices of the fork."""
    data = b"".join(
        (
            prices.base_fee_scalar.to_bytes(4),
            prices.blob_base_fee_scalar.to_bytes(4),
            b"\x11" * 24,
            prices.base_fee.to_bytes(32),
            prices.blob_base_fee.to_bytes(32),
            b"\x22" * 64,
        )
    )
    if fork < OptimismFork.ISTHMUS:
        return bytes.fromhex("440a5e20") + data
    data += (prices.operator_fee_scalar or 0).to_bytes(4)
    data += (prices.operator_fee_constant or 0).to_bytes(8)
    if fork < OptimismFork.JOVIAN:
        return bytes.fromhex("098999be") + data
    return bytes.fromhex("3db6be2b") + data + (prices.da_footprint_gas_scalar or 0).to_bytes(2)


@given(st.sampled_from(ECOTONE_FORKS), transactions(), PRICES)
def test_from_ecotone_on(
    fork: OptimismFork, transaction: Transaction, prices: EcotoneAttributes
) -> None:
    assume(prices.base_fee_scalar or prices.blob_base_fee_scalar)  # else they are Bedrock's
    attributes = decode_attributes(call_data(prices, fork))
    isthmus, jovian = fork >= OptimismFork.ISTHMUS, fork >= OptimismFork.JOVIAN
    assert attributes == replace(
        prices,
        operator_fee_scalar=prices.operator_fee_scalar if isthmus else None,
        operator_fee_constant=prices.operator_fee_constant if isthmus else None,
        da_footprint_gas_scalar=prices.da_footprint_gas_scalar if jovian else None,
    )
    operator = (prices.operator_fee_scalar or 0) << 64 | (prices.operator_fee_constant or 0)
    slots = {
        1: prices.base_fee,
        3: prices.base_fee_scalar << 96 | prices.blob_base_fee_scalar << 64,
        7: prices.blob_base_fee,
        8: (prices.da_footprint_gas_scalar or 0) << 96 | operator,
    }
    executed, fees, share = charged(fork, transaction, slots)
    assert attributes is not None
    cost = L1Costs(attributes, fork).of(transaction.raw)
    gas_share = executed.gas_used * (attributes.operator_fee_scalar or 0)
    operator_fee = gas_share * 100 if jovian else gas_share // 10**6
    operator_fee += attributes.operator_fee_constant or 0
    assert (cost.fee + operator_fee, cost.footprint) == (fees, share if jovian else 0)


def test_real_block() -> None:
    """Base 50393250: a transaction of the minimum size costs 1,918,900,020 wei."""
    attributes = EcotoneAttributes(184_831_724, 11_819_775, 2_269, 1_055_762, 0, 0, 148)
    message = Message(sender=ACCOUNTS[0].address, to=b"\x35" * 20, gas=21_000)
    transaction = sign_transaction(message, 2, 1, 0, ACCOUNTS[0].secret)
    cost = L1Costs(attributes, OptimismFork.JOVIAN).of(transaction.raw)
    assert (cost.fee, cost.gas, cost.footprint) == (1_918_900_020, 1_600, 14_800)


def test_other_call_data_is_none_of_it() -> None:
    jovian = call_data(EcotoneAttributes(1, 2, 3, 4, 5, 6, 7), OptimismFork.JOVIAN)
    assert decode_attributes(jovian) is not None
    for data in (b"", b"\x3d", jovian[:-1], jovian + b"\0", b"\0" + jovian[1:]):
        assert decode_attributes(data) is None


def test_only_a_deposit_brings_attributes() -> None:
    message = Message(sender=ACCOUNTS[0].address, to=L1_BLOCK, gas=21_000)
    assert attributes_in(sign_transaction(message, 2, 1, 0, ACCOUNTS[0].secret).raw) is None
