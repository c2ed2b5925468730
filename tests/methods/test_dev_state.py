"""anvil_dumpState, anvil_loadState and token balances, over JSON-RPC."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from foreblock.feed.messages import encode
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.chains.dev_service import dev_service
from support.chains.whole_state import check_roots, state_root
from support.servers.asking import Asker

SOMEBODY = "0x" + "ab" * 20


def ask(client: Asker, method: str, *params: object) -> Any:  # noqa: ANN401, JSON
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    reply = json.loads(client.reply(body.encode()).body)
    return reply["result"] if "result" in reply else reply["error"]


def word(value: int) -> str:
    return f"0x{value:064x}"


def pending_root(chain: DevChain) -> bytes:
    with chain.store.view() as view:
        assert view.heads.pending is not None
        return state_root(view.state_of_partial(view.heads.pending))


def test_a_dump_holds_every_account_and_slot(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        for slot in range(130):  # more than are read at once
            ask(client, "anvil_setStorageAt", SOMEBODY, hex(slot), word(slot + 1))
        ask(client, "anvil_setCode", SOMEBODY, "0x6001")
        chain.submit(send(ACCOUNTS[0], 0))
        dump = json.loads(gzip.decompress(bytes.fromhex(ask(client, "anvil_dumpState")[2:])))
        account = dump["accounts"][SOMEBODY]
        assert account["storage"] == {word(slot): word(slot + 1) for slot in range(130)}
        assert (account["code"], account["nonce"], account["balance"]) == ("0x6001", 0, "0x0")
        assert dump["best_block_number"] == 1
        assert dump["blocks"][0]["header"]["number"] == "0x1"
        with chain.store.view() as view:
            assert view.heads.pending is not None
            state = view.state_of_partial(view.heads.pending)
            found = {"0x" + address.hex() for address, _ in state.accounts(None, 10_000)}
        assert set(dump["accounts"]) == found


def test_what_is_loaded_is_the_state_that_was_dumped(tmp_path: Path) -> None:
    with dev_service(tmp_path / "a") as (first, client):
        ask(client, "anvil_setStorageAt", SOMEBODY, "0x1", word(7))
        ask(client, "anvil_setBalance", SOMEBODY, "0x5")
        dump, root = ask(client, "anvil_dumpState"), pending_root(first)
    with dev_service(tmp_path / "b") as (second, client):
        assert ask(client, "anvil_loadState", dump) is True
        assert ask(client, "eth_getStorageAt", SOMEBODY, "0x1", "latest") == word(7)
        assert pending_root(second) == root
        second.submit(send(ACCOUNTS[0], 0))
        check_roots(second)


def test_geth_s_allocation_is_loaded_as_json(tmp_path: Path) -> None:
    alloc = {"alloc": {SOMEBODY: {"balance": "0x10", "storage": {"0x01": "0x02"}}}}
    with dev_service(tmp_path) as (_, client):
        assert ask(client, "anvil_loadState", json.dumps(alloc)) is True
        assert ask(client, "eth_getBalance", SOMEBODY, "latest") == "0x10"
        hexed = "0x" + gzip.compress(json.dumps(alloc["alloc"]).encode()).hex()
        assert ask(client, "hardhat_loadState", hexed) is True


def test_a_large_state_is_loaded_in_flashblocks_that_a_feed_carries(tmp_path: Path) -> None:
    storage = {hex(slot): "0x1" for slot in range(1, 40_000)}
    with dev_service(tmp_path) as (chain, client):
        assert ask(client, "anvil_loadState", json.dumps({SOMEBODY: {"storage": storage}})) is True
        loaded = [each for each in chain.published if each.edits]
        assert len(loaded) > 1
        assert max(len(encode(each)) for each in loaded) < 4 << 20
        chain.run(5_000)
        ask(client, "evm_mine")  # restarts the block, since its time has changed
        again = [each for each in chain.published if each.edits][len(loaded) :]
        assert sum(len(edit.storage) for each in again for edit in each.edits) == 39_999
        assert ask(client, "eth_getStorageAt", SOMEBODY, hex(39_999), "0x1") == word(1)


WETH = "0x4200000000000000000000000000000000000006"


def test_balances_of_many_accounts_are_set_in_one_commit(tmp_path: Path) -> None:
    people = [f"0x{number:040x}" for number in range(0x1000, 0x1000 + 1_000)]
    with dev_service(tmp_path) as (chain, client):
        for method, expected in (("anvil_setBalance", "0x5"), ("anvil_addBalance", "0xa")):
            with chain.store.view() as view:
                before = view.heads.commit
            assert ask(client, method, people, "0x5") is None
            with chain.store.view() as view:
                assert view.heads.commit == before + 1
            for each in (people[0], people[-1]):
                assert ask(client, "eth_getBalance", each, "latest") == expected
        check_roots(chain)
        assert ask(client, "anvil_addBalance", [people[0]] * 3, "0x1") is None
        assert ask(client, "eth_getBalance", people[0], "latest") == "0xd"


def test_a_token_s_balance_is_found_and_set(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        data = "0x70a08231" + SOMEBODY[2:].rjust(64, "0")
        for amount in (100, 100, 0, 2**256 - 1):
            assert ask(client, "anvil_dealERC20", SOMEBODY, WETH, hex(amount)) is None
            assert ask(client, "eth_call", {"to": WETH, "data": data}, "latest") == word(amount)
        before = len(chain.published)
        refused = ask(client, "anvil_dealERC20", SOMEBODY, SOMEBODY, "0x1")
        assert refused["message"] == "Unable to set ERC20 balance, no slot found"
        assert len(chain.published) == before


def test_a_slot_that_is_read_as_well_is_not_taken_for_the_balance(tmp_path: Path) -> None:
    """The contract reads slot 0, which must not be 0, then returns slot 1."""
    code = "0x" + "5f54156011576001545f5260205ff35b5f5ffd"
    with dev_service(tmp_path) as (_, client):
        ask(client, "anvil_setCode", SOMEBODY, code)
        ask(client, "anvil_setStorageAt", SOMEBODY, "0x0", word(5))
        ask(client, "anvil_setStorageAt", SOMEBODY, "0x1", word(7))
        assert ask(client, "anvil_setERC20Balance", WETH, SOMEBODY, "0x7") is None
        assert ask(client, "anvil_setERC20Balance", WETH, SOMEBODY, "0x9") is None
        slots = [
            ask(client, "eth_getStorageAt", SOMEBODY, slot, "latest") for slot in ("0x0", "0x1")
        ]
        assert slots == [word(5), word(9)]


def test_estimates_calls_and_simulations_at_latest_see_state_edits(tmp_path: Path) -> None:
    code = "0x" + "5f545f5260205ff3"  # returns its slot 0
    with dev_service(tmp_path) as (_, client):
        ask(client, "anvil_setCode", SOMEBODY, code)
        ask(client, "anvil_setStorageAt", SOMEBODY, "0x0", word(42))
        call = {"to": SOMEBODY}
        assert ask(client, "eth_call", call, "latest") == word(42)
        assert ask(client, "eth_call", call, "0x0") == "0x"
        assert int(ask(client, "eth_estimateGas", call, "latest"), 16) > 21_000
        assert ask(client, "eth_estimateGas", call, "0x0") == "0x5208"
        (block,) = ask(client, "eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "latest")
        assert block["calls"][0]["returnData"] == word(42)
        proof = ask(client, "eth_getProof", SOMEBODY, ["0x0"], "latest")
        assert proof["storageProof"][0]["value"] == "0x0", "it is for the header"
        proof = ask(client, "eth_getProof", SOMEBODY, ["0x0"], "pending")
        assert proof["storageProof"][0]["value"] == "0x2a"


def test_a_trace_replays_the_state_edits_before_it(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        ask(client, "anvil_setCode", SOMEBODY, "0x" + "5f545f5260205ff3")
        ask(client, "anvil_setStorageAt", SOMEBODY, "0x0", word(42))
        transaction = send(ACCOUNTS[0], 0, bytes.fromhex(SOMEBODY[2:]), 0, gas=100_000)
        chain.submit(transaction)
        for _ in range(80):  # until partial blocks are pruned
            ask(client, "evm_mine")
            chain.run_until_idle()
        found = "0x" + transaction.hash.hex()
        traced = ask(client, "debug_traceTransaction", found, {"tracer": "callTracer"})
        assert traced["output"] == word(42)


@pytest.mark.parametrize("in_hex", [1, 2])
def test_a_state_that_expands_too_far_is_refused(tmp_path: Path, in_hex: int) -> None:
    bomb = gzip.compress(b'{"alloc":{}, "more":"' + bytes(10_000) + b'"}')
    for _ in range(in_hex):
        bomb = b"0x" + bomb.hex().encode()
    with dev_service(tmp_path, methods={"trace_output": 5_000}) as (_, client):
        assert "larger than 5000 bytes" in ask(client, "anvil_loadState", bomb.decode())["message"]
        assert "the most of a dump" in ask(client, "anvil_dumpState")["message"]


@pytest.mark.parametrize("state", ["0x00", "0x", "{", "0xzz", '{"alloc":{"0x1":{}}}'])
def test_what_is_no_state_is_refused(tmp_path: Path, state: str) -> None:
    with dev_service(tmp_path) as (chain, client):
        before = len(chain.published)
        assert ask(client, "anvil_loadState", state)["code"] == -32602
        assert len(chain.published) == before
