"""The execution of a block, compared with functions that compute the same from whole lists."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import (
    Allowance,
    BlockExecution,
    Env,
    Header,
    Message,
    Overlay,
    Receipt,
    Transaction,
    address_of,
    decode_transactions,
    deposit_transaction,
    logs_bloom,
    sign_transaction,
    transactions_root,
    unsigned_transaction,
)
from foreblock.errors import InvalidArgument, InvalidTransaction, OverBudget, Undecodable
from support.payloads.signing import rlp

SECRET = (7).to_bytes(32)
SENDER = address_of(SECRET)
LOGGER, STRANGER = bytes([0xC0]) * 20, bytes([0xAA]) * 20
# Two logs with the call value as their topic: CALLVALUE PUSH0 PUSH0 LOG1, twice.
LOGS = bytes.fromhex("345f5fa1345f5fa100")
GAS_PRICE = 10**9
HEADER = Header(
    parent_hash=bytes(32),
    beneficiary=bytes(20),
    state_root=bytes(32),
    number=1,
    gas_limit=30_000_000,
    timestamp=2,
)


def environment(rules: str = "optimism:Isthmus") -> Env:
    return Env(
        rules=rules, chain_id=1, number=1, timestamp=2, coinbase=bytes(20),
        gas_limit=30_000_000, prevrandao=bytes(32), blob_base_fee=1,
    )  # fmt: skip


def overlay() -> Overlay:
    made = Overlay.empty()
    made.set(SENDER, balance=10**24)
    made.set(LOGGER, code=LOGS)
    return made


def transaction(nonce: int, kind: int) -> Transaction:
    """A deposit, a transfer, or a call that logs."""
    if kind == 0:
        return deposit_transaction(
            source_hash=bytes(32), sender=STRANGER, to=LOGGER, mint=5, value=3, gas_limit=100_000,
            input=b"",
        )  # fmt: skip
    to = LOGGER if kind == 2 else STRANGER
    message = Message(sender=SENDER, to=to, value=kind, gas=100_000, gas_price=GAS_PRICE)
    return sign_transaction(message, 0, 1, nonce, SECRET)


def transactions(kinds: list[int]) -> list[Transaction]:
    signed = [index for index, kind in enumerate(kinds) if kind]
    return [
        transaction(signed.index(index) if kind else 0, kind) for index, kind in enumerate(kinds)
    ]


def outcomes(kinds: list[int]) -> list[Receipt]:
    """The receipts of `transactions`, from calls that are outside of any block."""
    receipts, gas = [], 0
    for at, kind in enumerate(kinds):
        to = STRANGER if kind == 1 else LOGGER
        message = Message(sender=SENDER, to=to, value=kind or 3, gas=100_000)
        outcome = overlay().call(environment(), message, check_base_fee=False)
        gas += outcome.gas_used
        is_deposit = kind == 0
        receipts.append(
            Receipt(
                type=0x7E if is_deposit else 0,
                cumulative_gas_used=gas,
                status=True,
                logs=outcome.logs,
                deposit_nonce=kinds[:at].count(0) if is_deposit else None,
                deposit_receipt_version=1 if is_deposit else None,
            )
        )
    return receipts


@given(st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_any_runs_make_the_same_block(kinds: list[int], cuts: list[int]) -> None:
    all_, receipts = transactions(kinds), outcomes(kinds)
    encoded = [each.encode() for each in receipts]
    execution, taken = BlockExecution(overlay(), environment(), deposit_receipt_version=1), []
    bounds = [0, *sorted(min(cut, len(all_)) for cut in cuts), len(all_)]
    for first, last in pairwise(bounds):
        execution.run(all_[first:last])
        assert execution.added == last - first
        taken.append(execution.take())
    header, gas = execution.fill(HEADER), receipts[-1].cumulative_gas_used if receipts else 0
    raws = [each.raw for each in all_]
    assert header == HEADER.replace(
        transactions_root=transactions_root(raws),
        receipts_root=transactions_root(encoded),
        logs_bloom=logs_bloom(receipts),
        gas_used=gas,
    )
    assert [raw for each in taken for raw in each[0]] == raws
    assert b"".join(each[1] for each in taken) == b"".join(each.sender for each in all_)
    assert [it for each in taken for it in each[2]] == encoded
    assert [it for each in taken for it in each[3]] == [each.hash for each in all_]
    logs = sum(len(each.logs) for each in receipts)
    found = execution.count, execution.gas_used, execution.log_count, execution.size
    assert found == (len(all_), gas, logs, sum(map(len, raws)))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(0, 8))
def test_a_block_continues_after_stored_transactions(kinds: list[int], cut: int) -> None:
    all_, env = transactions(kinds), environment()
    whole = BlockExecution(overlay(), env, deposit_receipt_version=1)
    state = overlay()
    first = BlockExecution(state, env, deposit_receipt_version=1)
    first.run(all_[:cut])
    raws, _, receipts, _ = first.take()
    resumed = BlockExecution(state, env, deposit_receipt_version=1)
    resumed.resume(first.fill(HEADER), raws, receipts, logs=first.log_count)
    resumed.run(all_[cut:])
    whole.run(all_)
    assert resumed.fill(HEADER) == whole.fill(HEADER)
    assert (resumed.count, resumed.size) == (whole.count, whole.size)


@given(st.lists(st.integers(0, 2), max_size=80))
def test_encoded_transactions_make_the_same_block_as_decoded_ones(kinds: list[int]) -> None:
    all_ = transactions(kinds)
    decoded, encoded = (BlockExecution(overlay(), environment()) for _ in range(2))
    decoded.run(all_)
    encoded.run([each.raw for each in all_])
    assert encoded.fill(HEADER) == decoded.fill(HEADER)
    assert encoded.take() == decoded.take()


def test_a_transaction_that_cannot_be_decoded_is_reported_before_an_invalid_one() -> None:
    raws = [transaction(0, 1).raw, transaction(5, 1).raw, transaction(1, 1).raw[:-1], b""]
    with pytest.raises(Undecodable, match="index 2: "):
        BlockExecution(overlay(), environment()).run(raws)


def test_a_named_sender_is_believed_on_request_alone() -> None:
    message = Message(sender=SENDER, to=STRANGER, gas=21_000, max_fee_per_gas=GAS_PRICE)
    raw, env = unsigned_transaction(message, 1, 0).raw, environment("ethereum:Cancun")
    execution = BlockExecution(overlay(), env)
    with pytest.raises(Undecodable):
        execution.run([raw])
    execution.run([raw], unsigned=True)
    assert execution.take()[1] == SENDER


def test_a_block_has_a_number_of_blobs_at_most() -> None:
    # The end is the price of a blob, two blobs and a signature.
    raws = [
        b"\x03" + rlp([1, nonce, 0, GAS_PRICE, 21_000, STRANGER, 0, b"", [], 1,
                       [b"\x01" * 32] * 2, 0, 1, 1])
        for nonce in range(3)
    ]  # fmt: skip
    blobs = decode_transactions(raws, senders=[SENDER] * 3)
    execution = BlockExecution(overlay(), environment("ethereum:Cancun"), max_blobs=5)
    with pytest.raises(InvalidTransaction, match="6 blobs in a block of 5 at most") as invalid:
        execution.run(blobs)
    assert (invalid.value.index, execution.count, execution.blobs) == (2, 2, 4)
    with pytest.raises(InvalidTransaction):
        execution.run(blobs[:1])
    assert execution.blobs == 4, "its nonce was used"


def test_receipts_of_old_blocks_have_the_state_root_in_place_of_the_status() -> None:
    all_, kinds = transactions([1, 2, 1]), [1, 2, 1]
    execution, roots = BlockExecution(overlay(), environment()), [bytes([at]) * 32 for at in (1, 2)]
    execution.run(all_[:1])
    for root, each in zip(roots, all_[1:], strict=True):
        execution.run([each])
        execution.set_post_state(root)
    plain = outcomes(kinds)
    old = [
        Receipt(
            type=0, cumulative_gas_used=each.cumulative_gas_used, post_state=root, logs=each.logs
        )
        for each, root in zip(plain[1:], roots, strict=True)
    ]
    encoded = [each.encode() for each in (plain[0], *old)]
    found = execution.fill(HEADER)
    assert (found.receipts_root, found.logs_bloom) == (
        transactions_root(encoded),
        logs_bloom(plain),
    )
    assert execution.take()[2] == encoded
    with pytest.raises(InvalidArgument):
        execution.set_post_state(roots[0])


def test_what_ran_before_a_refusal_is_in_the_block() -> None:
    good, late = transaction(0, 1), transaction(5, 1)
    execution = BlockExecution(overlay(), environment())
    with pytest.raises(InvalidTransaction) as invalid:
        execution.run([good, late, transaction(1, 1)])
    assert invalid.value.index == 1
    assert (execution.count, execution.gas_used) == (1, 21_000)
    execution.run([transaction(1, 2)])
    raws, *_ = execution.take()
    assert raws == [good.raw, transaction(1, 2).raw]
    with pytest.raises(OverBudget) as over:
        execution.run(
            [transaction(2, 1), transaction(3, 1)], Allowance(gas=execution.gas_used + 21_000)
        )
    assert over.value.index == 1
