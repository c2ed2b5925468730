"""Transactions with an explicit sender, on dev chains with Ethereum's rules."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from foreblock._engine import Store
from foreblock.bus.commands import Mine, SendUnsigned, SetAccount
from foreblock.errors import BadBlock, BadGenesis, Undecodable
from foreblock.ledger.genesis.genesis_file import Genesis, genesis_text, read_genesis
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.dev_genesis import dev_genesis, read_dev_genesis
from foreblock.sequencer.saved_pool import save_pool, saved_pool
from foreblock.settings import ChainSettings
from foreblock.types import Transaction, decode_transaction, decode_transactions
from support.chains.checking import DevFollower, check_by_import, heads
from support.chains.dev_chain import ACCOUNTS, ETHER, GWEI, NOBODY, DevChain, genesis_of, send
from support.chains.dev_service import dev_service

ALICE, BOB = ACCOUNTS[:2]
STRANGER = bytes(18) + b"\x12\xaa"  # its number is short


def unsigned(sender: bytes = STRANGER, value: int = 0, nonce: int | None = None) -> SendUnsigned:
    return SendUnsigned(
        sender, NOBODY, value.to_bytes(32), b"", 50_000, nonce, 10 * GWEI, GWEI, is_allowed=True
    )


def ethereum(folder: Path, mining: str = "automine", genesis: Genesis | None = None) -> DevChain:
    chosen = genesis or genesis_of("ethereum")
    chain = DevChain(folder, genesis=chosen, mining=mining)  # type: ignore[arg-type]
    chain.submit(send(ALICE, 0, STRANGER, ETHER))
    chain.execute(Mine())
    return chain


def last(chain: DevChain) -> Transaction:
    (*_, raw) = chain.sealed()[-1].transactions
    return decode_transaction(raw, unsigned=True)


def without_unsigned(genesis: Genesis) -> Genesis:
    config = json.loads(genesis.config)
    assert config.pop("unsignedTransactions") is True
    return replace(
        genesis,
        config=json.dumps(config).encode(),
        profile=replace(genesis.profile, unsigned=False),
    )


def test_it_pays_as_others_do_and_names_its_sender(tmp_path: Path) -> None:
    chain = ethereum(tmp_path / "store")
    hashed = chain.execute(unsigned(value=7))
    found = last(chain)
    assert (found.hash, found.sender, found.type, found.nonce) == (hashed, STRANGER, 2, 0)
    assert chain.latest_balance(NOBODY) == 7
    paid = ETHER - 7 - chain.latest_balance(STRANGER)
    assert paid == 21_000 * found.effective_gas_price(chain.sealed()[-1].header.base_fee_per_gas)
    chain.execute(unsigned(value=1))
    assert last(chain).nonce == 1
    check_by_import(chain, tmp_path / "check")


def test_nobody_else_believes_it(tmp_path: Path) -> None:
    chain = ethereum(tmp_path / "store")
    chain.execute(unsigned())
    raw = last(chain).raw
    with pytest.raises(Undecodable, match="no sender can be recovered"):
        decode_transaction(raw)
    with pytest.raises(Undecodable, match="index 1: no sender can be recovered"):
        decode_transactions([send(ALICE, 1).raw, raw])
    strict = without_unsigned(chain.genesis)
    with Store(str(tmp_path / "strict"), write=True) as store:
        begin_chain(store, strict)
        importing = Chain(store, strict.profile)
        first, second = chain.sealed()[:2], chain.sealed()[2:]
        assert len(second) == 1
        for block in first:
            importing.add(block)
        with pytest.raises(BadBlock, match="no sender can be recovered"):
            importing.add(second[0])
        importing.close()


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_follower_goes_by_its_genesis(tmp_path: Path, is_strict: bool) -> None:
    chain = ethereum(tmp_path / "store")
    genesis = chain.genesis
    if is_strict:
        chain.genesis = without_unsigned(genesis)
    follower = DevFollower(tmp_path / "follower", chain, accept_state_edits=False)
    chain.execute(unsigned(value=3))
    chain.submit(send(BOB, 0))
    follower.catch_up()
    assert (follower.heads == heads(chain.store)) is not is_strict
    follower.close()


def test_a_contract_may_send(tmp_path: Path) -> None:
    chain = ethereum(tmp_path / "store")
    chain.execute(SetAccount(STRANGER, code=b"\x00"))
    chain.execute(unsigned(value=9))
    assert chain.latest_balance(NOBODY) == 9


def test_it_outlives_a_kill_and_a_stop(tmp_path: Path) -> None:
    chain = ethereum(tmp_path / "store", mining="manual")
    chain.execute(unsigned(value=5))
    chain.run(1_000)
    chain.kill()
    chain.open()
    waits = chain.execute(unsigned(value=6))
    save_pool(tmp_path / "pool", chain.sequencer.builder.pooled())
    chain.kill()
    chain.open()
    with saved_pool(tmp_path / "pool") as saved:
        chain.submit(*saved)
    chain.execute(Mine())
    assert (last(chain).hash, chain.latest_balance(NOBODY)) == (waits, 11)
    check_by_import(chain, tmp_path / "check")


def test_a_request_is_filled_in(tmp_path: Path) -> None:
    who, to = "0x" + STRANGER.hex(), "0x" + NOBODY.hex()
    with dev_service(tmp_path, genesis=genesis_of("ethereum")) as (chain, client):
        listed = [{"address": to, "storageKeys": ["0x" + "00" * 32]}]
        request = {"from": who, "to": to, "value": "0x1", "accessList": listed}
        assert client.ask("eth_sendTransaction", request)["message"] == "No Signer available"
        client.ask("anvil_impersonateAccount", who)
        assert "insufficient funds" in client.ask("eth_sendTransaction", request)["message"]
        client.ask("anvil_setBalance", who, hex(ETHER))
        hashed = client.ask("eth_sendTransaction", request)
        found = client.ask("eth_getTransactionByHash", hashed)
        assert (found["from"], found["type"], found["yParity"]) == (who, "0x2", "0x0")
        assert (int(found["r"], 16), found["s"]) == (int(who, 16), "0x0")
        assert found["accessList"] == listed
        assert client.ask("eth_getTransactionReceipt", hashed)["status"] == "0x1"
        trace = client.ask("debug_traceTransaction", hashed, {"tracer": "callTracer"})
        assert trace["from"] == who
        raw = client.ask("eth_getRawTransactionByHash", hashed)
        assert "cannot be decoded" in client.ask("eth_sendRawTransaction", raw)["message"]
        legacy = client.ask("eth_sendTransaction", request | {"gasPrice": hex(20 * GWEI)})
        assert client.ask("eth_getTransactionByHash", legacy)["maxFeePerGas"] == hex(20 * GWEI)
        dear = client.ask("eth_sendTransaction", request | {"gasPrice": hex(2**64)})
        assert "more than 64 bits" in dear["message"]
        assert last(chain).sender == STRANGER


def test_a_genesis_says_whether_there_are_such_transactions() -> None:
    made = genesis_of("ethereum")
    assert made.profile.unsigned
    again = read_genesis(genesis_text(made))
    assert again.profile == made.profile
    given = read_dev_genesis(genesis_text(without_unsigned(made)))
    assert given.profile == made.profile, "every dev chain has them"
    assert not read_genesis(genesis_text(without_unsigned(made))).profile.unsigned
    assert not dev_genesis(ChainSettings()).profile.unsigned, "an OP chain has deposits"
    config = json.loads(genesis_text(dev_genesis(ChainSettings())))
    config["config"]["unsignedTransactions"] = True
    with pytest.raises(BadGenesis, match="an OP chain has deposits for them"):
        read_genesis(json.dumps(config).encode())
