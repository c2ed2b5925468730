"""Blocks assembled from calls, compared with the engine's plain functions."""

import json
from functools import partial
from typing import Any

import pytest

from foreblock import _engine
from foreblock._engine import (
    Body,
    Header,
    Message,
    Overlay,
    PlainCalls,
    Receipt,
    SealedBody,
    SimulationText,
)
from foreblock.errors import InvalidArgument, InvalidMessage
from support.each_case import each_case
from support.payloads.params import plain_calls
from support.payloads.small_store import ALICE, env

BOB = b"\xb0" * 20
LOGGER = b"\x10" * 20
REVERTER = b"\x4e" * 20
ZERO = bytes(32)
HALTER = b"\x4f" * 20
# PUSH1 0xaa PUSH1 32 PUSH1 0 LOG1, and PUSH1 0 PUSH1 0 REVERT.
LOGS, REVERTS = bytes.fromhex("60aa60206000a1"), bytes.fromhex("60006000fd")
HEADER = Header(
    parent_hash=b"\1" * 32, beneficiary=BOB, state_root=ZERO, number=9, gas_limit=30_000_000,
    timestamp=77, base_fee_per_gas=0, withdrawals_root=ZERO, blob_gas_used=0, excess_blob_gas=0,
    parent_beacon_block_root=ZERO, requests_hash=ZERO,
)  # fmt: skip


def abi_text(text: str) -> bytes:
    """A string as the arguments of `Error(string)`."""
    data = text.encode()
    return (32).to_bytes(32) + len(data).to_bytes(32) + data.ljust(-(-len(data) // 32) * 32, b"\0")


def overlay() -> Overlay:
    made = Overlay.empty()
    made.set(ALICE, balance=10**18, nonce=3)
    made.set(LOGGER, code=LOGS)
    made.set(REVERTER, code=REVERTS)
    made.set(HALTER, code=b"\xfe")
    return made


def filled(count: int, state: Overlay | None = None) -> Body:
    """A block of calls to a plain account, to a logging contract and to a reverting one, in
    turn.
    """
    body = Body(state or overlay(), env(), trace_transfers=True)
    to = (BOB, LOGGER, REVERTER)
    calls = plain_calls(*((ALICE, to[index % 3], 1, b"", 100_000) for index in range(count)))
    end, _used = body.run_plain(calls, 0, 2, 30_000_000, 30_000_000)
    assert end == count
    return body


def sealed(body: Body, **fields: Any) -> SealedBody:  # noqa: ANN401, fields of any type
    header: dict[str, Any] = {"state_root": ZERO, "blob_gas_used": 0, "requests_hash": ZERO}
    return body.seal(HEADER, **(header | fields))


@each_case("count", [0, 1, 2, 17, 140])
def test_header_commits_to_transactions_and_receipts(count: int) -> None:
    block = sealed(filled(count))
    transactions, outcomes = block.transactions(), block.outcomes
    assert [len(transactions), len(outcomes)] == [count, count]
    used, receipts = 0, []
    for outcome in outcomes:
        used += outcome.gas_used
        receipts.append(
            Receipt(
                type=2,
                status=outcome.status == "success",
                cumulative_gas_used=used,
                logs=outcome.logs,
            )
        )
    raws = [each.raw for each in transactions]
    assert block.header.transactions_root == _engine.transactions_root(raws)
    assert block.header.receipts_root == _engine.transactions_root(
        [each.encode() for each in receipts]
    )
    assert block.header.logs_bloom == _engine.logs_bloom(receipts)
    assert block.header.gas_used == used
    assert block.header.hash == _engine.keccak256(block.header.encode())
    assert shown(block)["transactions"] == ["0x" + _engine.keccak256(raw).hex() for raw in raws]


def shown(block: SealedBody, dialect: str = "preconf", *transactions: bytes) -> Any:  # noqa: ANN401, it is JSON
    """The block as JSON, written in small pieces."""
    text = SimulationText([block], dialect, transactions)
    (read,) = json.loads(b"".join(iter(partial(text.take, 100), b"")))
    return read


def plain(*calls: tuple[bytes | None, int | None], sender: bytes = ALICE) -> PlainCalls:
    return plain_calls(
        *((sender, to, index, b"\0\1", gas) for index, (to, gas) in enumerate(calls))
    )


def test_plain_calls_are_messages_without_a_price() -> None:
    first, second = Body(overlay(), env()), Body(overlay(), env())
    to = [BOB, LOGGER, REVERTER, None]
    calls = plain(*((each, 200_000) for each in to))
    end, used = first.run_plain(calls, 0, 2, 10**7, 10**7)
    for index, each in enumerate(to):
        call = Message(sender=ALICE, to=each, value=index, data=b"\0\1", gas=200_000)
        used -= second.run(call, 2, check_base_fee=False)
    assert (end, used, len(first), len(second)) == (4, 0, 4, 4)
    left, right = sealed(first), sealed(second)
    assert left.header == right.header
    assert shown(left) == shown(right)


def test_plain_calls_begin_where_they_are_told_to() -> None:
    body = Body(overlay(), env())
    calls = plain((BOB, 50_000), (LOGGER, 50_000), (BOB, 50_000))
    assert body.run_plain(calls, 2, 2, 10**6, 10**6)[0] == 3
    assert len(body) == 1
    assert body.run_plain(calls, 3, 2, 10**6, 10**6) == (3, 0)
    assert body.run_plain(calls, 9, 2, 10**6, 10**6) == (9, 0)


@pytest.mark.parametrize(
    "bad",
    [
        plain((BOB, 10**6 + 1)),
        plain((BOB, 20_999)),
        plain_calls((BOB, LOGGER, 0, b"", None), (BOB, ALICE, 1, b"", None)),
    ],
)
def test_plain_calls_end_before_what_has_to_be_decided(bad: PlainCalls) -> None:
    body = Body(overlay(), env())
    assert body.run_plain(bad, 0, 2, 10**6, 10**6)[0] == len(bad) - 1
    assert len(body) == len(bad) - 1


def test_gas_that_was_lowered_is_named_with_a_failure() -> None:
    body = Body(overlay(), env())
    body.run_plain(plain((HALTER, 40_000), (HALTER, None)), 0, 2, 10**6, 70_000)
    call = Message(sender=ALICE, to=HALTER, gas=30_000)
    body.run(call, 2, check_base_fee=False, lowered=True)
    why = "invalid opcode: INVALID"
    capped = f"{why} (gas limit was capped by the RPC server's global gas cap)"
    block = sealed(body)
    for dialect, errors in (
        ("preconf", [why, capped, capped]),
        ("ethereum", [{"code": -32015, "message": each} for each in (why, capped, capped)]),
    ):
        assert [call["error"] for call in shown(block, dialect)["calls"]] == errors


def test_plain_calls_can_be_looked_at() -> None:
    calls = plain((BOB, 5), (None, None))
    assert calls[0] == (ALICE, BOB, 0, b"\0\1", 5)
    assert calls[1] == (ALICE, None, 1, b"\0\1", None)
    with pytest.raises(IndexError, match="there are 2 calls"):
        calls[2]


def test_a_call_has_the_nonce_of_the_state_unless_another_is_given() -> None:
    body = Body(overlay(), env())
    for nonce in (None, 77, None):
        body.run(Message(sender=ALICE, to=BOB, gas=21_000), 2, nonce)
    assert [each.nonce for each in sealed(body).transactions()] == [3, 77, 5]


def test_a_transfer_is_collected_before_the_logs_of_its_call() -> None:
    _transfer, outcome, _revert = sealed(filled(3)).outcomes
    assert outcome.collected is not None
    (first, transfer), (second, log) = outcome.collected
    assert (first, second) == (1, 2)
    assert (transfer[0], int.from_bytes(transfer[2])) == (b"\xee" * 20, 1)
    assert log[0] == LOGGER
    assert outcome.logs == (log,), "a receipt knows nothing of traced transfers"


def test_logs_are_counted_through_the_block() -> None:
    block = sealed(filled(6))
    indices = [[index for index, _ in each.collected or ()] for each in block.outcomes]
    assert indices == [[0], [1, 2], [], [4], [5, 6], []]
    statuses = [each.status for each in block.outcomes]
    assert statuses == ["success", "success", "revert"] * 2


def test_what_cannot_begin_leaves_the_block_as_it_was() -> None:
    body = Body(overlay(), env())
    with pytest.raises(InvalidMessage):
        body.run(Message(sender=BOB, to=ALICE, value=1, gas=21_000), 2)
    with pytest.raises(InvalidArgument):
        body.run(Message(sender=ALICE, to=BOB, gas=21_000), 1)
    assert len(body) == 0
    assert sealed(body).header.gas_used == 0


def test_blockhash_finds_a_sealed_block() -> None:
    state = overlay()
    block = sealed(Body(state, env()))
    # PUSH1 9 BLOCKHASH, returned as a word.
    state.set(LOGGER, code=bytes.fromhex("60094060005260206000f3"))
    found = state.call(env(), Message(sender=ALICE, to=LOGGER, gas=100_000)).output
    assert found == block.header.hash


def test_a_block_tells_of_its_withdrawals_and_of_given_transactions() -> None:
    paid = (1, 2, BOB, 3)
    block = sealed(filled(1), withdrawals=[paid])
    found = shown(block, "preconf", b'["as given"]')
    assert found["withdrawals"] == [
        {"index": "0x1", "validatorIndex": "0x2", "address": "0x" + BOB.hex(), "amount": "0x3"}
    ]
    assert found["transactions"] == ["as given"]
    assert "withdrawals" not in shown(sealed(filled(1)))


REASON = 'no "\\\n\x01é'


@each_case(
    ("output", "why"),
    [
        (b"", "execution reverted"),
        (b"\xab", "execution reverted"),
        (b"\x08\xc3\x79\xa0" + abi_text(REASON), f"execution reverted: {REASON}"),
        (b"\x08\xc3\x79\xa0" + abi_text(""), "execution reverted"),
        (b"NH{q" + (0x11).to_bytes(32), "execution reverted: arithmetic underflow or overflow"),
    ],
)
def test_a_revert_is_described_in_either_dialect(output: bytes, why: str) -> None:
    state, data = overlay(), "0x" + output.hex()
    # CODECOPY of what follows these ten bytes, and REVERT.
    size = len(output).to_bytes(1)
    state.set(REVERTER, code=b"\x60" + size + bytes.fromhex("80600a5f395ffd00") + output)
    body = Body(state, env())
    body.run_plain(plain((REVERTER, 100_000)), 0, 2, 10**6, 10**6)
    block = sealed(body)
    error = {"code": 3, "message": why, "data": data}
    for dialect, returned, expected in (("preconf", data, why), ("ethereum", "0x", error)):
        (call,) = shown(block, dialect)["calls"]
        assert (call["status"], call["returnData"], call["error"]) == ("0x0", returned, expected)


@each_case("count", [0, 1, 3])
def test_blocks_are_written_as_an_array(count: int) -> None:
    blocks = [sealed(filled(index)) for index in range(count)]
    whole = SimulationText(blocks, "ethereum").take(1 << 20)
    assert json.loads(whole) == [shown(each, "ethereum") for each in blocks]
    for size in (1, 64, len(whole)):
        pieces = list(iter(partial(SimulationText(blocks, "ethereum").take, size), b""))
        assert b"".join(pieces) == whole
        assert max(map(len, pieces)) <= size
    with pytest.raises(InvalidArgument, match="preconf or ethereum"):
        SimulationText(blocks, "geth")
