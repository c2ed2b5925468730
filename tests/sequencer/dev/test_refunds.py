"""Dev chains of Lagoon whose sequencer refunds gas, and a follower of their feed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import foreblock
from foreblock._engine import decode_transaction, post_exec_transaction
from foreblock.errors import BadSetting, UnsupportedType
from foreblock.ledger.checking.check_store import check_store
from foreblock.ledger.rules.transaction_rules import POST_EXEC
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from support.chains.checking import DevFollower, check_by_import
from support.chains.dev_chain import ACCOUNTS, GWEI, NOBODY, DevChain, send
from support.chains.dev_service import dev_service
from support.servers.asking import Asker

ALICE, BOB = ACCOUNTS[:2]
REFUND = 2_000
OPTIONS = ChainSettings(fork="lagoon", refund_gas=REFUND)
CHARGED = 21_000 - REFUND


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[DevChain]:
    chain = DevChain(tmp_path / "chain", OPTIONS, genesis=dev_genesis(OPTIONS))
    yield chain
    chain.kill()


def pay(chain: DevChain, count: int = 1) -> list[bytes]:
    """Send transfers of Alice and Bob; returns their hashes."""
    sent = []
    for _ in range(count):
        for who in (ALICE, BOB):
            transaction = send(who, chain.sequencer.next_nonce(who.address))
            chain.submit(transaction)
            sent.append(transaction.hash)
    return sent


def refunds(flashblock: Flashblock) -> list[tuple[int, int]]:
    raw = flashblock.diff.post_exec_tx
    if raw is None:
        return []
    payload = decode_transaction(raw).post_exec
    assert payload is not None
    assert payload[:2] == (1, flashblock.block_number)
    return payload[2]


def test_each_block_ends_with_the_refunds_of_its_last_flashblock(
    chain: DevChain, tmp_path: Path
) -> None:
    for _ in range(4):
        pay(chain)
        chain.run(700)
    chain.run(4_000)
    last = {each.block_number: each for each in chain.published}
    first = {each.block_number: each.diff.gas_used for each in chain.published if not each.index}
    kinds = [[raw[0] for raw in block.transactions] for block in chain.sealed()]
    assert sum(each.count(2) for each in kinds) == 8
    for block, kind in zip(chain.sealed(), kinds, strict=True):
        ended = refunds(last[block.header.number])
        assert ended == [(at, REFUND) for at, each in enumerate(kind) if each == 2]
        if ended:
            assert block.transactions[-1] == last[block.header.number].diff.post_exec_tx
            assert block.header.gas_used == CHARGED * len(ended) + first[block.header.number]
    for each in chain.published:
        assert all(raw[0] != POST_EXEC for raw in each.diff.transactions)
    check_by_import(chain, tmp_path / "imported")


def test_a_refund_is_paid_with_its_transaction(chain: DevChain) -> None:
    """A model of the fees: the sender pays for the charged gas, at the price of the block."""
    before = chain.pending_balance(ALICE.address)
    pay(chain)
    (flashblock,) = (each for each in chain.run(250) if each.diff.transactions)
    base = next(each.base for each in chain.published if each.base is not None)
    paid = 1 + CHARGED * (base.base_fee_per_gas + GWEI)
    l1_and_operator = before - chain.pending_balance(ALICE.address) - paid
    assert 0 <= l1_and_operator < REFUND * GWEI
    assert [gas for _, gas in refunds(flashblock)] == [REFUND, REFUND]
    assert chain.pending_balance(NOBODY) == 2


def test_receipts_state_the_refund_and_the_end_appears_when_the_block_is_sealed(
    tmp_path: Path,
) -> None:
    options: dict[str, Any] = {"mining": "clock", "genesis": dev_genesis(OPTIONS)}
    with dev_service(tmp_path, sealed=False, options=OPTIONS, **options) as (chain, client):
        first, _ = pay(chain)
        (flashblock,) = (each for each in chain.run(250) if each.diff.transactions)
        end = "0x" + decode_transaction(flashblock.diff.post_exec_tx or b"").hash.hex()
        _check_receipt(client, first)
        assert client.ask("eth_getTransactionByHash", end) is None
        assert client.ask("eth_getTransactionReceipt", end) is None
        pending = client.ask("eth_getBlockByNumber", "pending", False)
        assert len(pending["transactions"]) == 3
        assert pending["hash"] == "0x" + flashblock.diff.block_hash.hex()
        chain.run(200)
        pay(chain)
        chain.run(3_000)
        assert client.ask("eth_getTransactionByHash", end) is None, "another one took its place"
        _check_receipt(client, first)
        number = hex(flashblock.block_number)
        block = client.ask("eth_getBlockByNumber", number, True)
        last = block["transactions"][-1]
        assert last["type"] == "0x7d"
        assert set(last) == {
            *("blockHash", "blockNumber", "blockTimestamp", "transactionIndex"),
            *("type", "hash", "from", "gas", "value", "input"),
        }
        assert client.ask("eth_getTransactionByHash", last["hash"]) == last
        receipt = client.ask("eth_getTransactionReceipt", last["hash"])
        assert (receipt["status"], receipt["gasUsed"], receipt["logs"]) == ("0x1", "0x0", [])
        assert receipt["cumulativeGasUsed"] == block["gasUsed"]
        assert "opGasRefund" not in receipt
        found = client.ask("eth_getBlockReceipts", number)
        assert [each.get("opGasRefund") for each in found] == [None, *[hex(REFUND)] * 4, None]
        raw = client.ask("eth_getRawTransactionByHash", last["hash"])
        assert (
            raw
            == "0x"
            + post_exec_transaction(
                flashblock.block_number, [(at, REFUND) for at in range(1, 5)]
            ).raw.hex()
        )
        for tracer in ("callTracer", "flatCallTracer", "prestateTracer", "4byteTracer", ""):
            named = {"tracer": tracer} if tracer else {}
            traces = client.ask("debug_traceBlockByNumber", number, named)
            assert len(traces) == 6, tracer
        replayed = client.ask("trace_replayBlockTransactions", number, ["trace", "stateDiff"])
        assert replayed[-1]["stateDiff"] == {}


def _check_receipt(client: Asker, transaction: bytes) -> None:
    receipt = client.ask("eth_getTransactionReceipt", "0x" + transaction.hex())
    assert (receipt["gasUsed"], receipt["opGasRefund"]) == (hex(CHARGED), hex(REFUND))


def test_a_post_execution_transaction_is_not_accepted(tmp_path: Path) -> None:
    raw = post_exec_transaction(1, [(1, 5)]).raw
    with dev_service(tmp_path, options=OPTIONS, genesis=dev_genesis(OPTIONS)) as (chain, client):
        refused = client.ask("eth_sendRawTransaction", "0x" + raw.hex())
        assert "transaction type not supported" in refused["message"]
        with pytest.raises(UnsupportedType):
            chain.sequencer.submit(decode_transaction(raw))


def test_a_restart_in_a_block_changes_nothing(tmp_path: Path) -> None:
    chains = []
    for name in ("whole", "restarted"):
        chain = DevChain(tmp_path / name, OPTIONS, genesis=dev_genesis(OPTIONS))
        chains.append(chain)
        for _ in range(6):
            pay(chain)
            chain.run(450)
            if name == "restarted":
                chain.kill()
                chain.open()
        chain.run(4_000)
    assert [each.hash for each in chains[0].sealed()] == [each.hash for each in chains[1].sealed()]
    damage: list[object] = []
    for chain in chains:
        chain.kill()
        check_store(str(chain.folder), damage.append, lambda *_: None)
    assert not damage


def test_a_follower_has_the_same_blocks_and_pending_state(chain: DevChain, tmp_path: Path) -> None:
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=False)
    for _ in range(8):
        pay(chain, 2)
        chain.run(650)
        follower.catch_up()
        assert follower.heads[1] is not None
        with chain.store.view() as ours, follower.store.view() as theirs:
            assert ours.heads.pending is not None
            assert theirs.heads.pending is not None
            for who in (ALICE, BOB):
                expected = ours.state_of_partial(ours.heads.pending).balance(who.address)
                found = theirs.state_of_partial(theirs.heads.pending).balance(who.address)
                assert found == expected
    assert follower.heads == _heads(chain)
    follower.close()


def _heads(chain: DevChain) -> object:
    with chain.store.view() as view:
        assert view.heads.pending is not None
        pending = view.partial(view.heads.pending)
        assert pending is not None
        return view.heads.latest, (pending.block, pending.hash)


def _with_end(message: Flashblock, *refunds: tuple[int, int], number: int = 0) -> Flashblock:
    raw = post_exec_transaction(number or message.block_number, refunds).raw
    return replace(message, diff=replace(message.diff, post_exec_tx=raw if refunds else None))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (((1, 7), (2, REFUND), (3, REFUND), (4, REFUND)), "expected"),
        (((3, REFUND), (4, REFUND)), "expected"),
        ((), "expected"),
        (((1, REFUND), (2, REFUND), (3, REFUND)), "expected"),
        (((1, REFUND), (2, REFUND), (3, REFUND), (4, 1)), "expected"),
        (((1, REFUND), (2, REFUND), (3, REFUND), (5, REFUND)), "index of a refund"),
        (((0, REFUND), (1, REFUND)), "expected"),
        (((1, REFUND), (2, REFUND), (4, REFUND), (3, REFUND)), "index of a refund"),
        (((1, REFUND), (2, REFUND), (3, 0), (4, REFUND)), "refund of transaction 3"),
        (((1, REFUND), (2, REFUND), (3, 30_000), (4, REFUND)), "above its 21000"),
    ],
)
def test_a_message_with_other_refunds_is_refused(
    chain: DevChain, tmp_path: Path, changed: tuple[tuple[int, int], ...], why: str
) -> None:
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=False)
    pay(chain)
    chain.run(150)
    pay(chain)
    chain.run(200)
    *before, last = chain.published
    assert refunds(before[-1]) == [(1, REFUND), (2, REFUND)]
    assert refunds(last) == [(at, REFUND) for at in range(1, 5)]
    for message in (*before, _with_end(last, *changed)):
        follower.follower.receive(message, "a")
        follower.run_until_idle()
    assert why in (follower.follower.last_error or "")
    assert follower.heads[1] == (1, before[-1].diff.block_hash)
    follower.follower.receive(_with_end(last, (1, REFUND), number=2), "a")
    follower.run_until_idle()
    assert "post-execution block number" in (follower.follower.last_error or "")
    follower.close()


def test_a_chain_in_the_process_refunds_and_goes_back() -> None:
    with foreblock.DevChain(fork="lagoon", refund_gas=REFUND) as chain:
        for _ in range(2):
            snapshot = chain.rpc("evm_snapshot")
            sent = chain.send("0x" + NOBODY.hex(), value=1)
            receipt = chain.rpc("eth_getTransactionReceipt", str(sent.hash))
            assert (receipt["gasUsed"], receipt["opGasRefund"]) == (hex(CHARGED), hex(REFUND))
            block = chain.rpc("eth_getBlockByNumber", receipt["blockNumber"], True)
            end = block["transactions"][-1]
            assert end["type"] == "0x7d"
            assert chain.rpc("eth_getTransactionByHash", end["hash"]) == end
            assert chain.rpc("evm_revert", snapshot)
            assert chain.rpc("eth_getTransactionByHash", end["hash"]) is None


def test_refunds_need_lagoon() -> None:
    with pytest.raises(BadSetting, match="refund_gas: needs the fork lagoon"):
        foreblock.DevChain(refund_gas=1)
