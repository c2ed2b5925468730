"""Methods about the node and its chain, and reads of many slots."""

from pathlib import Path

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from support.chains import long_chain as made
from support.chains.paying_chain import client_of, paying_chain
from support.payloads.dev_state import COINBASE
from support.servers.asking import Asker, asker, error

WORD = "0x" + "00" * 31
ABSENT = "0x" + "ab" * 20


def test_what_a_node_without_peers_and_miners_says(preconf: Asker, ethereum: Asker) -> None:
    for client in (preconf, ethereum):
        assert client.ask("net_peerCount") == "0x0"
        assert client.ask("eth_mining") is False
        assert client.ask("eth_hashrate") == "0x0"
        assert client.ask("eth_protocolVersion") == "0x44"
        assert client.ask("op_supportedCapabilities") == []
        assert client.ask("eth_coinbase") == made.COINBASE
        assert client.ask("eth_mining", 1) == error(-32602, "too many arguments, want at most 0")


def test_hashes_are_keccak(preconf: Asker) -> None:
    empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert preconf.ask("web3_sha3", "0x") == empty
    hello = "0x47173285a8d7341e5e972fc677286384f802f8ef42a5ec5f03bbfa254cb01fad"
    assert preconf.ask("web3_sha3", "0x" + b"hello world".hex()) == hello
    long = preconf.ask("web3_sha3", "0x" + "00" * 300_000)
    assert len(long) == 66
    assert preconf.ask("web3_sha3", "hello")["code"] == -32602


def test_the_base_fee_is_that_of_the_next_block(ethereum: Asker, tmp_path: Path) -> None:
    history = ethereum.ask("eth_feeHistory", 1, "latest")
    assert ethereum.ask("eth_baseFee") == history["baseFeePerGas"][1]
    with paying_chain(tmp_path / "store") as chain, client_of(chain) as client:
        pending = client.ask("eth_getBlockByNumber", "pending", False)
        assert client.ask("eth_baseFee") == pending["baseFeePerGas"]
        assert client.ask("eth_coinbase") == pending["miner"] == "0x" + COINBASE.hex()
        assert client.ask("op_supportedCapabilities") == ["flashblocksv1"]


def test_a_chain_before_london_has_no_base_fee(long_chain: ChainFiles, tmp_path: Path) -> None:
    shorter = tmp_path / "chain.rlp"
    shorter.write_bytes(b"".join(long_chain.items()[: made.LONDON - 2]))
    store = tmp_path / "store"
    import_files(long_chain.genesis, shorter, store, None, lambda _: None)
    ledger = Ledger.open(str(store))
    with asker(ledger, "ethereum") as client:
        assert client.ask("eth_baseFee") is None
        config = client.ask("eth_config")
        assert config["current"] is None
        assert config["next"]["activationTime"] == made.FORKS["shanghaiTime"]
        assert config["last"]["activationTime"] == made.FORKS["bpo2Time"]
    ledger.close()


def test_capabilities_name_the_oldest_state(
    ethereum: Asker, long_chain: ChainFiles, tmp_path: Path
) -> None:
    everything = {"disabled": False, "oldestBlock": "0x0"}
    kinds = ("state", "tx", "logs", "receipts", "blocks", "stateproofs")
    head = {"number": hex(made.HEAD), "hash": made.HEAD_HASH}
    known = {"head": head, **dict.fromkeys(kinds, everything)}
    assert ethereum.ask("eth_capabilities") == known
    store = tmp_path / "store"
    import_files(long_chain.genesis, long_chain.chain, store, None, lambda _: None)
    with Store(str(store), write=True, keep_states=10, keep_partials=1) as opened:
        while opened.maintain(100_000, 1.0):
            pass
    ledger = Ledger.open(str(store))
    with asker(ledger, "ethereum") as client:
        found = client.ask("eth_capabilities")
        oldest = int(found["state"]["oldestBlock"], 16)
        assert oldest == made.HEAD - 10
        strategy = {"type": "window", "retentionBlocks": hex(11)}
        kept = {"disabled": False, "oldestBlock": hex(oldest), "deleteStrategy": strategy}
        assert found == known | {"state": kept, "stateproofs": kept}
        for asked in ("eth_getBalance", "eth_getAccount", "eth_getAccountInfo"):
            why = f"the state of block {oldest - 1} is no longer kept; the earliest is {oldest}"
            gone = error(4444, f"pruned history unavailable: {why}")
            assert client.ask(asked, made.RICH, hex(oldest - 1)) == gone
            assert "code" not in client.ask(asked, made.RICH, hex(oldest)) or asked.endswith("Info")
    ledger.close()


def test_slots_of_many_accounts_are_read_at_once(preconf: Asker, ethereum: Asker) -> None:
    keys = [f"{WORD}{slot:02x}" for slot in range(5)]
    asked = {made.EMITTER: keys, ABSENT: keys[:1], made.RICH: []}
    found = preconf.ask("eth_getStorageValues", asked, "latest")
    assert list(found) == list(asked)
    for address, slots in asked.items():
        assert found[address] == [
            preconf.ask("eth_getStorageAt", address, key, "latest") for key in slots
        ]
    assert ethereum.ask("eth_getStorageValues", asked) == found
    older = ethereum.ask("eth_getStorageValues", asked, hex(made.HEAD - 20))
    assert older != found


def test_reads_of_many_slots_have_a_limit_and_need_one(preconf: Asker) -> None:
    def ask(slots: object) -> object:
        return preconf.ask("eth_getStorageValues", slots, "latest")

    key = f"{WORD}01"
    assert ask({ABSENT: [key] * 1024}) == {ABSENT: ["0x" + "00" * 32] * 1024}
    too_many = error(-38026, "too many slots (max 1024)")
    assert ask({ABSENT: [key] * 1000, made.RICH: [key] * 25}) == too_many
    assert ask({ABSENT: [key] * 10_000}) == too_many
    assert ask({}) == ask({ABSENT: []}) == error(-32602, "empty request")
    for wrong in ({ABSENT: ["0x1"]}, {"0x1": [key]}, {ABSENT: key}, [key], None):
        refused = ask(wrong)
        assert isinstance(refused, dict)
        assert refused["code"] == -32602, wrong


def test_an_account_is_told_in_one_answer(preconf: Asker) -> None:
    for who in (made.EMITTER, made.RICH, made.DELEGATED, ABSENT):
        assert preconf.ask("eth_getAccountInfo", who, "latest") == {
            "balance": preconf.ask("eth_getBalance", who, "latest"),
            "nonce": preconf.ask("eth_getTransactionCount", who, "latest"),
            "code": preconf.ask("eth_getCode", who, "latest"),
        }
