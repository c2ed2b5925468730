"""Balances and calls on pre-confirmed state, under all its names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.preconfirming import BEACON_ROOTS, COUNTER, PAID, SENDER, PreconfirmingChain
from support.payloads.bytecode import returning
from support.servers.asking import Asker, error, request

TO = "0x00000000000000000000000000000000000c0de0"
PAYEE = "0x" + PAID.hex()
PAYER = "0x" + SENDER.hex()
NOT_FOUND = error(-32000, "header for hash not found")


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """One sealed block; a second one in progress, after its index 2."""
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    found.extend([found.pay()])
    found.begin()
    found.extend([found.pay(value=10)])
    found.extend([found.pay(value=100), found.pay(COUNTER, 7)])
    yield found
    found.close()


def seen(client: Asker, block: object, *program: str | int | bytes, **call: str) -> int:
    """Return the word that code returns when it runs at this block."""
    overrides = {TO: {"code": returning(*program)}}
    return int(client.ask("eth_call", {"to": TO, **call}, block, overrides), 16)


def place(block: int, index: int) -> dict[str, str]:
    return {"blockNumber": hex(block), "flashblockIndex": hex(index)}


def test_balance_grows_with_each_index(chain: PreconfirmingChain, client: Asker) -> None:
    def balance(block: object) -> int:
        return int(client.ask("eth_getBalance", PAYEE, block), 16)

    assert balance("pending") == 111
    assert balance({"blockNumber": "pending"}) == 111
    assert balance("latest") == balance("0x1") == 1
    assert [balance(place(2, index)) for index in range(3)] == [1, 11, 111]
    assert [balance(place(1, index)) for index in range(2)] == [0, 1]
    chain.extend([chain.pay(value=1000)])
    assert balance("pending") == 1111
    assert balance(place(2, 2)) == 111
    chain.begin()
    assert balance("latest") == balance("pending") == 1111
    assert [balance(place(2, index)) for index in range(4)] == [1, 11, 111, 1111]


def test_call_runs_in_the_pending_block_itself(chain: PreconfirmingChain, client: Asker) -> None:
    base = chain.block.base
    for name in ("pending", place(2, 2), place(2, 0)):
        assert seen(client, name, "NUMBER") == base.block_number == 2
        assert seen(client, name, "TIMESTAMP") == base.timestamp
        assert seen(client, name, "COINBASE") == int.from_bytes(base.fee_recipient)
        assert seen(client, name, "PREVRANDAO") == int.from_bytes(base.prev_randao)
        assert seen(client, name, "GASLIMIT") == base.gas_limit
        assert seen(client, name, "BASEFEE") == 0, "a call that pays nothing"
        price = hex(base.base_fee_per_gas)
        paid = seen(client, name, "BASEFEE", gasPrice=price, gas="0x186a0", **{"from": PAYER})
        assert paid == base.base_fee_per_gas
    assert base.base_fee_per_gas != chain.writer.latest.base_fee_per_gas, "else it shows nothing"


def test_block_hash_of_the_parent_is_the_sealed_one(
    chain: PreconfirmingChain, client: Asker
) -> None:
    latest = int.from_bytes(chain.writer.latest.hash)
    genesis = int(client.ask("eth_getBlockByNumber", "0x0", False)["hash"], 16)
    assert seen(client, "pending", 1, "BLOCKHASH") == latest
    assert seen(client, "pending", 0, "BLOCKHASH") == genesis
    assert seen(client, "pending", 2, "BLOCKHASH") == 0
    assert seen(client, place(1, 0), 0, "BLOCKHASH") == genesis
    assert seen(client, place(1, 0), 1, "BLOCKHASH") == 0, "it was not sealed then"


def test_call_sees_the_state_of_its_index(chain: PreconfirmingChain, client: Asker) -> None:
    program = (PAID, "BALANCE")
    names = ("latest", place(2, 0), place(2, 1), place(2, 2), "pending")
    assert [seen(client, name, *program) for name in names] == [1, 1, 11, 111, 111]
    slots = []
    for name in ("latest", place(2, 1), "pending"):
        account = {"0x" + COUNTER.hex(): {"code": returning(0, "SLOAD")}}
        slots.append(int(client.ask("eth_call", {"to": "0x" + COUNTER.hex()}, name, account), 16))
    assert slots == [0, 0, 7]
    asked = {"to": "0x" + BEACON_ROOTS.hex(), "data": f"0x{chain.block.base.timestamp:064x}"}
    root = "0x" + chain.block.base.parent_beacon_block_root.hex()
    assert client.ask("eth_call", asked, "pending") == root, "what its first index stored"


def test_block_overrides_change_the_pending_block(client: Asker) -> None:
    overrides = {TO: {"code": returning("NUMBER", "TIMESTAMP", "ADD")}}
    changed = {"number": "0x64", "time": "0x3e9"}
    answer = client.ask("eth_call", {"to": TO}, "pending", overrides, changed)
    assert int(answer, 16) == 0x64 + 0x3E9


def test_calls_with_and_without_overrides_are_answered_alike(client: Asker) -> None:
    """The counter exists in the chain: the path of ordinary calls, and the other one."""
    call = {"to": "0x" + BEACON_ROOTS.hex(), "data": "0x" + "00" * 32}
    for name in ("pending", place(2, 1)):
        assert client.ask("eth_call", call, name) == client.ask("eth_call", call, name, {})


def test_every_form_names_the_block_it_says(chain: PreconfirmingChain, client: Asker) -> None:
    assert chain.block.header is not None
    pending = "0x" + chain.block.header.hash.hex()
    sealed = "0x" + chain.writer.latest.hash.hex()
    forms: list[tuple[object, int]] = [
        ("pending", 111),
        (pending, 111),
        ({"blockHash": pending}, 111),
        ({"blockHash": pending, "requireCanonical": False}, 111),
        ({"blockNumber": "pending"}, 111),
        (place(2, 2), 111),
        ("latest", 1),
        ("safe", 0),
        ("finalized", 0),
        ("earliest", 0),
        ("0x1", 1),
        (sealed, 1),
        ({"blockHash": sealed, "requireCanonical": True}, 1),
    ]
    for form, expected in forms:
        assert int(client.ask("eth_getBalance", PAYEE, form), 16) == expected
        assert seen(client, form, PAID, "BALANCE") == expected
        number = client.ask("eth_getBlockByNumber", form, False)["number"]
        assert seen(client, form, "NUMBER") == int(number, 16)


def test_what_cannot_be_shown_is_said(chain: PreconfirmingChain, client: Asker) -> None:
    assert chain.block.header is not None
    pending = "0x" + chain.block.header.hash.hex()
    refusals: list[tuple[object, dict[str, object]]] = [
        ("0x2", error(-32000, "header not found")),
        (place(2, 3), NOT_FOUND),
        (place(3, 0), NOT_FOUND),
        ("0x" + "12" * 32, NOT_FOUND),
        (
            {"blockHash": pending, "requireCanonical": True},
            error(-32000, "hash is not currently canonical"),
        ),
    ]
    for name, refusal in refusals:
        assert client.ask("eth_getBalance", PAYEE, name) == refusal
        assert client.ask("eth_call", {"to": TO}, name) == refusal
        assert client.ask("eth_simulateV1", {"blockStateCalls": [{}]}, name) == refusal
        assert client.ask("eth_getBlockByNumber", name, False) is None


def test_dropped_branch_is_said_to_be_unknown(chain: PreconfirmingChain, client: Asker) -> None:
    assert chain.block.header is not None
    pending = "0x" + chain.block.header.hash.hex()
    assert client.ask("eth_getBlockByHash", pending, True)["hash"] == pending
    batch = chain.store.batch()
    batch.drop(list(chain.block.partials), "it lost")
    chain.store.commit(batch)
    for name in (pending, {"blockHash": pending, "requireCanonical": True}, place(2, 2)):
        assert client.ask("eth_getBalance", PAYEE, name) == NOT_FOUND
        assert client.ask("eth_call", {"to": TO}, name) == NOT_FOUND
        assert client.ask("eth_simulateV1", {"blockStateCalls": [{}]}, name) == NOT_FOUND
        assert client.ask("eth_getBlockByNumber", name, True) is None
    assert client.ask("eth_getBlockByHash", pending, True) is None, "though its text is kept"
    assert int(client.ask("eth_getBalance", PAYEE, "pending"), 16) == 1


def test_pending_means_latest_past_its_deadline(chain: PreconfirmingChain, client: Asker) -> None:
    chain.clock.advance(4 * 10**9 - 1)
    assert int(client.ask("eth_getBalance", PAYEE, "pending"), 16) == 111
    chain.clock.advance(1)
    assert int(client.ask("eth_getBalance", PAYEE, "pending"), 16) == 1
    assert seen(client, "pending", "NUMBER") == 1
    assert client.ask("eth_getBlockByNumber", "pending", False)["number"] == "0x1"
    (block,) = client.ask("eth_simulateV1", {"blockStateCalls": [{}]}, "pending")
    assert block["parentHash"] == "0x" + chain.writer.latest.hash.hex()
    assert int(client.ask("eth_getBalance", PAYEE, place(2, 2)), 16) == 111, "a pin stays"


def test_the_snapshot_is_that_of_the_header(chain: PreconfirmingChain, client: Asker) -> None:
    """In a batch it is the commit of the other responses, with its heads."""
    requests = (
        request("foreblock_snapshot"),
        request("eth_getBlockByNumber", "latest", False),
        request("eth_getBlockByNumber", "pending", False),
    )
    body = b"[%b]" % b",".join(requests)
    for has_pending in (True, False):
        reply = client.reply(body)
        found, latest, pending = (each["result"] for each in json.loads(reply.body))
        text = f"commit={int(found['commit'], 16)}; latest={latest['number']}:{latest['hash']}"
        assert found["latest"] == {"number": latest["number"], "hash": latest["hash"]}
        if has_pending:
            assert found["pending"] == {
                "number": pending["number"], "index": "0x2", "hash": pending["hash"],
            }  # fmt: skip
            text += f"; pending={pending['number']}.2:{pending['hash']}"
        else:
            assert found["pending"] is None
        assert reply.headers.decode() == f"Foreblock-Snapshot: {text}\r\n"
        chain.clock.advance(10**10)
    assert client.ask("foreblock_snapshot", 1)["code"] == -32602
