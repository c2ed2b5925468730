"""anvil_dumpState, anvil_loadState and token balances, over JSON-RPC."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("state", ["0x00", "0x", "{", "0xzz", '{"alloc":{"0x1":{}}}'])
def test_what_is_no_state_is_refused(tmp_path: Path, state: str) -> None:
    with dev_service(tmp_path) as (chain, client):
        before = len(chain.published)
        assert ask(client, "anvil_loadState", state)["code"] == -32602
        assert len(chain.published) == before
