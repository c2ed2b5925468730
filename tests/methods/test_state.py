"""Nonces, code and storage on sealed and pre-confirmed state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.types import Transaction
from support.chains.paying_chain import PayingChain, client_of, paying_chain
from support.payloads.bytecode import code
from support.payloads.dev_state import ALICE, BOB
from support.servers.asking import Asker, error

WRITES = bytes.fromhex(code(0xABCD, 5, "SSTORE", 0xFE, 0, "MSTORE", 1, 31, "RETURN")[2:])
MADE = "0x" + created_address(ALICE, 1).hex()
WHO = "0x" + ALICE.hex()


class Waiting:
    """A pool with waiting transactions of some senders."""

    def __init__(self, nonces: dict[bytes, int]) -> None:
        self._nonces = nonces

    async def submit(self, _raw: bytes, _sender: bytes) -> None:
        raise AssertionError("nothing is sent")

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    def next_nonce(self, sender: bytes) -> int:
        return self._nonces.get(sender, 0)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    """One transaction is sealed, a creation is pre-confirmed."""
    with paying_chain(tmp_path / "store") as found:
        found.extend(found.signed(BOB, 1))
        found.begin()
        found.extend(found.signed(None, 0, WRITES))
        yield found


@pytest.fixture
def client(chain: PayingChain) -> Iterator[Asker]:
    with client_of(chain) as found:
        yield found


def test_each_is_read_from_the_block_that_is_named(chain: PayingChain, client: Asker) -> None:
    word = "0x" + "abcd".rjust(64, "0")
    zero = "0x" + "0" * 64
    for block, nonce, code_, value in (
        ("pending", "0x2", "0xfe", word),
        (chain.hash, "0x2", "0xfe", word),
        ({"blockNumber": "0x2", "flashblockIndex": "0x0"}, "0x1", "0x", zero),
        ("latest", "0x1", "0x", zero),
        ("0x0", "0x0", "0x", zero),
    ):
        assert client.ask("eth_getTransactionCount", WHO, block) == nonce
        assert client.ask("eth_getCode", MADE, block) == code_
        assert client.ask("eth_getStorageAt", MADE, "0x5", block) == value


def test_slot_may_be_a_number_or_a_whole_word(client: Asker) -> None:
    word = "0x" + "abcd".rjust(64, "0")
    for slot in ("0x5", "0x05", "0x" + "5".rjust(64, "0")):
        assert client.ask("eth_getStorageAt", MADE, slot, "pending") == word
    assert client.ask("eth_getStorageAt", MADE, "0x", "pending") == "0x" + "0" * 64
    for slot, why in (
        ("0x" + "0" * 65, "storage key too long (want at most 32 bytes)"),
        ("5", "hex string without 0x prefix"),
        ("", "hex string without 0x prefix"),
        ("0x5_0", "invalid hex string"),
    ):
        answer = client.ask("eth_getStorageAt", MADE, slot, "pending")
        assert answer == error(-32602, f"invalid argument 1: {why}")


def test_slot_needs_no_prefix_in_the_dialect_of_other_nodes(chain: PayingChain) -> None:
    with client_of(chain, dialect="ethereum") as client:
        for slot in ("5", "0X5", "05"):
            assert int(client.ask("eth_getStorageAt", MADE, slot, "pending"), 16) == 0xABCD
        assert int(client.ask("eth_getStorageAt", MADE, "", "pending"), 16) == 0
        assert client.ask("eth_getStorageAt", MADE, "0" * 65, "pending")["code"] == -32602
        assert client.ask("eth_getStorageAt", MADE, "x5", "pending")["code"] == -32602


def test_block_is_needed_in_the_published_contract_only(chain: PayingChain, client: Asker) -> None:
    missing = error(-32602, "missing value for required argument 1 (block)")
    assert client.ask("eth_getTransactionCount", WHO) == missing
    assert client.ask("eth_getCode", MADE) == missing
    assert client.ask("eth_getStorageAt", MADE, "0x5") == error(
        -32602, "missing value for required argument 2 (block)"
    )
    assert client.ask("eth_getStorageAt", MADE)["code"] == -32602
    with client_of(chain, dialect="ethereum") as other:
        assert other.ask("eth_getTransactionCount", WHO) == "0x1"
        assert other.ask("eth_getCode", MADE) == "0x"
        assert other.ask("eth_getStorageAt", MADE, "0x5") == "0x" + "0" * 64


def test_nonce_at_pending_counts_what_waits(chain: PayingChain) -> None:
    pool = Waiting({ALICE: 7, BOB: 0})
    with client_of(chain, submissions=pool) as client:
        assert client.ask("eth_getTransactionCount", WHO, "pending") == "0x7"
        assert client.ask("eth_getTransactionCount", WHO, {"blockNumber": "pending"}) == "0x7"
        for block in ("latest", chain.hash, "0x1"):
            assert client.ask("eth_getTransactionCount", WHO, block) in ("0x1", "0x2")
        assert client.ask("eth_getTransactionCount", "0x" + BOB.hex(), "pending") == "0x0"
    with client_of(chain, submissions=Waiting({ALICE: 1})) as client:
        assert client.ask("eth_getTransactionCount", WHO, "pending") == "0x2", "the pool is behind"


def test_nonce_at_pending_may_be_the_states_own(chain: PayingChain) -> None:
    with client_of(chain, submissions=Waiting({ALICE: 7}), pending_nonce="state") as client:
        assert client.ask("eth_getTransactionCount", WHO, "pending") == "0x2"


def test_address_is_refused_before_the_block(client: Asker) -> None:
    """Argument 0 is wrong, and so is argument 1."""
    answer = client.ask("eth_getBalance", "0x12", "0xffff")
    assert answer["message"].startswith("invalid argument 0")
