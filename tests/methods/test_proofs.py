"""eth_getProof and eth_getAccount: proofs verify against the root, at every kept block."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ChainFiles
from foreblock._engine import Store, keccak256
from foreblock.errors import PrunedState
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.transaction_rules import created_address
from support.chains import long_chain as made
from support.chains.paying_chain import PayingChain, client_of, paying_chain
from support.each_case import each_case
from support.payloads.bytecode import code
from support.payloads.dev_state import ALICE, BOB
from support.payloads.merkle import EMPTY_ROOT, decode, proven
from support.servers.asking import Asker, asker, error

Json = Any

ABSENT = "0x" + "ab" * 20
ZERO = "0x" + "00" * 32
ACCOUNTS = [made.RICH, made.EMITTER, made.DELEGATED, made.COINBASE, made.REVERTER, ABSENT]
KEYS = ["0x0", "0x1", "0x7", "0x" + "00" * 31 + "02", "0xffff"]
KEPT_NODES = 2


def raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def number(data: bytes) -> int:
    return int.from_bytes(data)


def check(proof: Json, root: bytes, address: str) -> None:
    """Check the values of a proof against the trie with this root."""
    assert proof["address"] == address
    leaf = proven(root, raw(address), [raw(node) for node in proof["accountProof"]])
    storage_root = EMPTY_ROOT
    if leaf is None:
        shown = [proof[name] for name in ("nonce", "balance", "storageHash", "codeHash")]
        assert shown == ["0x0", "0x0", ZERO, ZERO]
    else:
        nonce, balance, storage_root, code_hash = decode(leaf)  # type: ignore[assignment]
        assert int(proof["nonce"], 16) == number(nonce)  # type: ignore[arg-type]
        assert int(proof["balance"], 16) == number(balance)  # type: ignore[arg-type]
        assert raw(proof["storageHash"]) == storage_root
        assert raw(proof["codeHash"]) == code_hash
    for slot in proof["storageProof"]:
        key = int(slot["key"], 16).to_bytes(32)
        held = proven(storage_root, key, [raw(node) for node in slot["proof"]])
        assert int(slot["value"], 16) == (0 if held is None else number(decode(held)))  # type: ignore[arg-type]


def root_of(client: Asker, block: object) -> bytes:
    return raw(client.ask("eth_getBlockByNumber", block, False)["stateRoot"])


def test_proofs_verify_at_every_block(ethereum: Asker) -> None:
    for height in range(made.HEAD + 1):
        root = root_of(ethereum, hex(height))
        for address in ACCOUNTS:
            check(ethereum.ask("eth_getProof", address, KEYS, hex(height)), root, address)
    assert ethereum.ask("eth_getProof", made.EMITTER, KEYS, "latest")["storageProof"][0]["proof"]


def test_every_name_of_a_block_means_the_same_proof(ethereum: Asker, preconf: Asker) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "latest", False)
    names = [block["number"], block["hash"], {"blockHash": block["hash"]}, "finalized"]
    expected = ethereum.ask("eth_getProof", made.EMITTER, KEYS, "latest")
    for name in names[:3]:
        assert preconf.ask("eth_getProof", made.EMITTER, KEYS, name) == expected
    assert ethereum.ask("eth_getProof", made.EMITTER, KEYS) == expected
    refused = preconf.ask("eth_getProof", made.EMITTER, KEYS)
    assert refused == error(-32602, "missing value for required argument 2 (block)")


def test_keys_are_read_and_shown_as_in_geth(ethereum: Asker) -> None:
    whole = "0x" + "00" * 31 + "0a"
    asked = ["0x0a", "a", "0XA", "", "0x", whole, whole[2:], whole[:2] + whole[3:]]
    shown = [
        each["key"]
        for each in ethereum.ask("eth_getProof", ABSENT, asked, "latest")["storageProof"]
    ]
    assert shown == ["0xa", "0xa", "0xa", "0x0", "0x0", whole, whole, whole]
    assert ethereum.ask("eth_getProof", ABSENT, None, "latest")["storageProof"] == []


@each_case(
    ("keys", "why"),
    [
        (["0x" + "00" * 33], "invalid argument 1: $[0]: storage key too long"),
        (["0x1", "0xg"], "invalid argument 1: $[1]: "),
        (["0x1"] * 1025, "too many storage keys requested (max 1024, got 1025)"),
        ([1], "invalid argument 1: $[0]: expected a string, found a number"),
        (["0x" + "00" * 200] * 1024, "too many storage keys requested (max 1024, "),
    ],
)
def test_keys_that_cannot_be_meant_are_refused(
    ethereum: Asker, keys: list[object], why: str
) -> None:
    refused = ethereum.ask("eth_getProof", ABSENT, keys, "latest")
    assert refused["code"] == -32602
    assert refused["message"].startswith(why)


def test_as_many_keys_as_are_allowed_are_proven(ethereum: Asker) -> None:
    keys = [hex(slot) for slot in range(1024)]
    proof = ethereum.ask("eth_getProof", made.EMITTER, keys, "latest")
    assert [each["key"] for each in proof["storageProof"]] == keys
    check(proof, root_of(ethereum, "latest"), made.EMITTER)


def test_an_account_has_the_root_of_its_storage(ethereum: Asker) -> None:
    for address in ACCOUNTS[:-1]:
        proof = ethereum.ask("eth_getProof", address, [], "latest")
        account = ethereum.ask("eth_getAccount", address, "latest")
        assert account == {
            "balance": proof["balance"], "nonce": proof["nonce"],
            "codeHash": proof["codeHash"], "storageRoot": proof["storageHash"],
        }  # fmt: skip
    assert ethereum.ask("eth_getAccount", ABSENT, "latest") is None


@pytest.fixture(scope="module")
def forgetful(long_chain: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A client of the long chain that keeps the nodes of two blocks and all states."""
    folder = tmp_path_factory.mktemp("forgetful") / "store"
    import_files(
        long_chain.genesis, long_chain.chain, folder, long_chain.fork_choice, lambda _: None
    )
    with Store(str(folder), write=True, keep_nodes=KEPT_NODES) as store:
        while store.maintain(100_000, 1.0):
            pass
        with store.view() as view:
            view.state(made.HEAD).trie()
            with pytest.raises(PrunedState):
                view.state(made.HEAD - KEPT_NODES - 1).trie()
    ledger = Ledger.open(str(folder))
    with asker(ledger, "ethereum") as client:
        yield client
    ledger.close()


def test_states_whose_nodes_are_gone_are_proven_all_the_same(
    forgetful: Asker, ethereum: Asker
) -> None:
    for height in range(made.HEAD + 1):
        for address in ACCOUNTS:
            asked = ("eth_getProof", address, KEYS, hex(height))
            assert forgetful.ask(*asked) == ethereum.ask(*asked)


SLOTS = [0, 1, 2, 0x80, 2**255]


def writer_of(pairs: list[tuple[int, int]]) -> bytes:
    """Init code that stores these words and deploys a byte of code."""
    stores = [word for slot, value in pairs for word in (value, slot, "SSTORE")]
    return raw(code(*stores, 0xFE, 0, "MSTORE", 1, 31, "RETURN"))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    with paying_chain(tmp_path / "store") as found:
        yield found


def test_a_pinned_partial_is_proven_against_the_root_it_would_have(chain: PayingChain) -> None:
    contract = "0x" + created_address(ALICE, 1).hex()
    alice = "0x" + ALICE.hex()
    hashes = [chain.hash]
    chain.extend(chain.signed(BOB, 1))
    hashes.append(chain.hash)
    chain.extend(chain.signed(None, 0, writer_of([(1, 2), (5, 6)])))
    hashes.append(chain.hash)
    with client_of(chain) as client:
        pinned = {each: proofs(client, each, alice, contract) for each in hashes}
        places = [{"blockNumber": "0x1", "flashblockIndex": hex(index)} for index in range(3)]
        assert [proofs(client, each, alice, contract) for each in places] == list(pinned.values())
        assert proofs(client, "pending", alice, contract) == pinned[hashes[-1]]
        roots = [keccak256(raw(each[0]["accountProof"][0])) for each in pinned.values()]
        assert len(set(roots)) == 3
        for root, (of_alice, of_contract) in zip(roots, pinned.values(), strict=True):
            check(of_alice, root, alice)
            check(of_contract, root, contract)
    chain.begin()
    with client_of(chain) as client:
        # Sealed at its last index, so the root is the one that the proofs verified against.
        assert root_of(client, "0x1") == roots[-1]
        assert proofs(client, "0x1", alice, contract) == pinned[hashes[-1]]
        for each in hashes:
            assert proofs(client, each, alice, contract) == pinned[each]


def proofs(client: Asker, block: object, *addresses: str) -> list[Json]:
    return [client.ask("eth_getProof", each, ["0x1", "0x2", "0x5"], block) for each in addresses]


@given(
    blocks=st.lists(
        st.lists(
            st.lists(st.tuples(st.sampled_from(SLOTS), st.integers(0, 3)), max_size=4),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_proofs_of_random_storage_verify_at_every_index(
    blocks: list[list[list[tuple[int, int]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with paying_chain(tmp_path_factory.mktemp("random") / "store") as chain:
        created, hashes = 0, []
        for indices in blocks:
            for pairs in indices:
                chain.extend(chain.signed(None, 0, writer_of(pairs)))
                created += 1
                hashes.append(chain.hash)
            chain.begin()
        contracts = ["0x" + created_address(ALICE, each).hex() for each in range(created)]
        keys = [hex(each) for each in SLOTS]
        with client_of(chain) as client:
            for height in range(len(blocks) + 1):
                root = root_of(client, hex(height))
                for address in contracts:
                    check(client.ask("eth_getProof", address, keys, hex(height)), root, address)
            for block_hash in hashes:
                first = client.ask("eth_getProof", contracts[0], [], block_hash)["accountProof"][0]
                for address in contracts:
                    proof = client.ask("eth_getProof", address, keys, block_hash)
                    check(proof, keccak256(raw(first)), address)
