"""GasPriceOracle: the same fees as charged by execution."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreblock._engine import Message, estimated_compressed_size, sign_transaction
from foreblock.sequencer.predeploys import GAS_PRICE_ORACLE as ORACLE
from support.each_case import each_case
from support.executing import charge
from support.payloads.dev_state import ACCOUNTS, ALICE, BOB, Attributes, DevState

ATTRIBUTES = Attributes()
# With these values the L1 fee is the estimate itself: 16 x base fee x scalar is 10^12.
PLAIN = Attributes(base_fee=62_500, base_fee_scalar=10**6, blob_base_fee=0)
SLOPE = 836_500  # wei per additional byte of FastLZ
SIGNATURE = 68
SMALLEST = 10**8


def at(attributes: Attributes) -> DevState:
    state = DevState()
    assert state.deposit(attributes).receipt.status
    return state


STATE, PLAIN_STATE = at(ATTRIBUTES), at(PLAIN)


def estimate(data: bytes) -> int:
    """The oracle's estimate, in millionths of a byte."""
    found: int = PLAIN_STATE.ask(ORACLE, "getL1Fee(bytes)", data)
    return found


def operator_fee(gas_used: int) -> int:
    """By the default attributes, from Jovian on."""
    return gas_used * 71 * 100 + 1_000_003


def test_parameters_are_those_of_the_block() -> None:
    values = {
        "l1BaseFee": ATTRIBUTES.base_fee,
        "blobBaseFee": ATTRIBUTES.blob_base_fee,
        "baseFeeScalar": ATTRIBUTES.base_fee_scalar,
        "blobBaseFeeScalar": ATTRIBUTES.blob_base_fee_scalar,
        "baseFee": 10**9,
        "gasPrice": 10**9,
        "decimals": 6,
        "DECIMALS": 6,
        "isEcotone": 1,
        "isFjord": 1,
        "isIsthmus": 1,
        "isJovian": 1,
    }
    assert {name: STATE.ask(ORACLE, f"{name}()") for name in values} == values
    assert STATE.ask(ORACLE, "version()", shape=bytes) == b"1.0.0+foreblock"


@pytest.mark.parametrize("name", ["overhead", "scalar"])
def test_parameters_of_old_forks_are_refused(name: str) -> None:
    outcome = STATE.call(ORACLE, f"{name}()")
    assert outcome.status == "revert"
    assert f"{name}() is deprecated".encode() in outcome.output


def test_smallest_fee_with_published_parameters() -> None:
    """Base mainnet 50393250: 1,918,900,020 wei for a transaction of minimum size."""
    assert STATE.ask(ORACLE, "getL1Fee(bytes)", b"\x02" * 50) == 1_918_900_020


def test_bytes_that_do_not_compress() -> None:
    """The bytes 0 to 255 compress to 264, a published length."""
    data = bytes(range(256))
    assert estimate(data) == SLOPE * (264 + SIGNATURE) - 42_585_600
    used = PLAIN_STATE.ask(ORACLE, "getL1GasUsed(bytes)", data)
    assert used == estimate(data) * 16 // 10**6


pieces = st.one_of(
    st.binary(max_size=400),
    st.builds(lambda piece, times: piece * times, st.binary(min_size=1, max_size=9),
              st.integers(1, 400)),
    st.builds(lambda seed, size: random.Random(seed).randbytes(size), st.integers(0, 9),
              st.integers(0, 9_000)),
    st.lists(st.sampled_from([0, 1, 255]), max_size=400).map(bytes),
)  # fmt: skip


@given(st.lists(pieces, max_size=6).map(b"".join))
@example(b"")
@example(bytes(1_000))
@example(random.Random(1).randbytes(8_192) * 2)  # one byte too far back to match
@example(random.Random(1).randbytes(8_191) * 2)  # just within range
@example(random.Random(1).randbytes(12))
@example(random.Random(1).randbytes(200) + bytes(13))
@example(random.Random(1).randbytes(70_000) + bytes(600))  # positions beyond 16 bits
def test_length_is_the_engines(data: bytes) -> None:
    """The engine measures signed bytes; the oracle adds the size of a signature."""
    signed = estimated_compressed_size(data)
    if signed > SMALLEST:
        assert estimate(data) == signed + SLOPE * SIGNATURE
    else:
        assert SMALLEST <= estimate(data) <= SMALLEST + SLOPE * SIGNATURE


@each_case("end", range(8, 24))
def test_matches_near_the_end_are_the_engines(end: int) -> None:
    """Implementations differ in the limits on the start and the end of a match."""
    noise = random.Random(end).randbytes(300)
    for length in range(3, end + 1):
        data = noise + noise[40 : 40 + length] + noise[100 : 100 + end - length]
        assert estimate(data) == estimated_compressed_size(data) + SLOPE * SIGNATURE


@given(st.binary(max_size=600), st.sampled_from([b"", bytes(700), b"\x2a\x17" * 90]))
def test_fee_is_what_execution_charges(noise: bytes, regular: bytes) -> None:
    """A transaction that is signed, executed and paid for, compared with the oracle's result for
    its bytes.
    """
    state = at(PLAIN)
    data = noise + regular + random.Random(2).randbytes(300)
    message = Message(
        sender=ALICE, to=BOB, data=data, gas=1_000_000, max_fee_per_gas=10**10,
        max_priority_fee_per_gas=1,
    )  # fmt: skip
    transaction = sign_transaction(message, 2, 31337, 0, ACCOUNTS[0].secret)
    charged = charge(state.overlay, state.env, transaction, base_fee=10**9)
    l1_fee = charged.fees - operator_fee(charged.executed.gas_used)
    assert l1_fee + SLOPE * SIGNATURE == estimate(transaction.raw)


def test_operator_fee_is_what_execution_charges() -> None:
    state = at(ATTRIBUTES)
    message = Message(
        sender=ALICE, to=BOB, gas=21_000, max_fee_per_gas=10**10, max_priority_fee_per_gas=1
    )
    transaction = sign_transaction(message, 2, 31337, 0, ACCOUNTS[0].secret)
    fees = charge(state.overlay, state.env, transaction, base_fee=10**9).fees
    smallest = STATE.ask(ORACLE, "getL1Fee(bytes)", b"\x02" * 50)
    fee = STATE.ask(ORACLE, "getOperatorFee(uint256)", 21_000)
    assert fee == fees - smallest == operator_fee(21_000)


@given(st.binary(min_size=0, max_size=2_000))
def test_upper_bound_is_one(data: bytes) -> None:
    bound = PLAIN_STATE.ask(ORACLE, "getL1FeeUpperBound(uint256)", len(data))
    assert bound >= estimate(data)
    size = len(data) + SIGNATURE
    assert bound == max(SMALLEST, SLOPE * (size + size // 255 + 16) - 42_585_600)


def test_large_transaction_can_be_asked_about() -> None:
    """128 kB, the maximum of pools, within the gas limit of calls."""
    data = random.Random(3).randbytes(131_072)
    outcome = PLAIN_STATE.call(ORACLE, "getL1Fee(bytes)", data)
    assert outcome.status == "success"
    assert outcome.gas_used < 50_000_000
