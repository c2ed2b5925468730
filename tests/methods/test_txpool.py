"""The pool as JSON: in geth's forms, in steps, and with an error if the writer does not answer.

`geth_pool.json` has transactions of all types that can wait, and geth 1.17.2's responses with them
in its pool.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import CHECKOUT
from foreblock.ledger.reading.view import Ledger
from foreblock.types import decode_transaction
from support.chains.preconfirming import PreconfirmingChain
from support.chains.sequencing import transfer
from support.servers.asking import Asker, asker, error
from support.servers.toys import ToyPool, Waits

GETH: Final[dict[str, Any]] = json.loads(
    (CHECKOUT / "tests" / "support" / "payloads" / "geth_pool.json").read_text("utf-8")
)
UNAVAILABLE = error(-32002, "the transaction pool does not respond; try again later")


def geth_pool() -> ToyPool:
    """The transactions of geth's pool; some of them have a nonce gap."""
    transactions = [decode_transaction(bytes.fromhex(raw[2:])) for raw in GETH["sent"]]
    queued = {
        each["hash"]
        for by_nonce in GETH["content"]["queued"].values()
        for each in by_nonce.values()
    }
    return ToyPool(*(Waits(each, "0x" + each.hash.hex() not in queued) for each in transactions))


@pytest.mark.parametrize("dialect", ["preconf", "ethereum"])
def test_pool_is_shown_as_geth_shows_it(long_ledger: Ledger, dialect: Any) -> None:  # noqa: ANN401
    with asker(long_ledger, dialect, pool=geth_pool()) as client:
        assert client.ask("txpool_status") == GETH["status"]
        assert client.ask("txpool_content") == GETH["content"]
        assert client.ask("txpool_inspect") == GETH["inspect"]
        for sender, found in GETH["contentFrom"].items():
            assert client.ask("txpool_contentFrom", sender) == found
        assert set(GETH["status"].values()) != {"0x0"}, "else it shows nothing"


def test_chain_without_a_sequencer_has_an_empty_pool(long_ledger: Ledger) -> None:
    with asker(long_ledger) as client:
        assert client.ask("txpool_status") == {"pending": "0x0", "queued": "0x0"}
        empty: dict[str, object] = {"pending": {}, "queued": {}}
        assert client.ask("txpool_content") == client.ask("txpool_inspect") == empty
        assert client.ask("txpool_contentFrom", "0x" + "11" * 20) == empty
        assert client.ask("base_transactionStatus", "0x" + "11" * 32) == {"status": "Unknown"}


def test_writer_that_does_not_answer_is_an_error(long_ledger: Ledger) -> None:
    pool = ToyPool()
    pool.answers = False
    with asker(long_ledger, pool=pool) as client:
        for method in ("txpool_status", "txpool_content", "txpool_inspect"):
            assert client.ask(method) == UNAVAILABLE
        assert client.ask("txpool_contentFrom", "0x" + "11" * 20) == UNAVAILABLE
        assert client.ask("base_transactionStatus", "0x" + "11" * 32) == UNAVAILABLE


def test_parameters_are_checked(long_ledger: Ledger) -> None:
    with asker(long_ledger) as client:
        for method in ("txpool_status", "txpool_content", "txpool_inspect"):
            assert client.ask(method, 1)["code"] == -32602
        assert client.ask("txpool_contentFrom")["code"] == -32602
        assert client.ask("txpool_contentFrom", "0x1")["code"] == -32602


def test_full_pool_is_shown_whole(long_ledger: Ledger) -> None:
    """More than one step, and more than one piece of text."""
    pool = ToyPool(*(Waits(transfer(nonce % 8, nonce), nonce % 3 > 0) for nonce in range(2_000)))
    with asker(long_ledger, pool=pool) as client:
        found = client.ask("txpool_content")
        assert client.ask("txpool_status") == {"pending": hex(1_333), "queued": hex(667)}
    shown = {
        each["hash"]: kind
        for kind, by_sender in found.items()
        for by_nonce in by_sender.values()
        for each in by_nonce.values()
    }
    assert shown == {
        "0x" + each.transaction.hash.hex(): "pending" if each.can_run else "queued"
        for each in pool.waiting
    }


def test_status_is_known_until_the_block_seals(tmp_path: Path) -> None:
    """Like a node whose pool removes a transaction with its block, not with its flashblock."""
    chain, pool = PreconfirmingChain(tmp_path / "store"), ToyPool()
    chain.begin()
    sent = chain.pay()
    wanted = "0x" + sent.hash.hex()
    known, unknown = {"status": "Known"}, {"status": "Unknown"}
    with asker(Ledger(chain.store, clock=chain.clock), pool=pool) as client:
        assert client.ask("base_transactionStatus", wanted) == unknown
        pool.waiting.append(Waits(sent))
        assert client.ask("base_transactionStatus", wanted) == known
        pool.waiting.clear()
        chain.extend([sent])
        assert client.ask("base_transactionStatus", wanted) == known
        chain.begin()
        assert client.ask("base_transactionStatus", wanted) == unknown
    chain.close()


def test_an_ordinary_node_has_preconfirmed_transactions_in_its_pool(tmp_path: Path) -> None:
    """Like geth and anvil: a sent transaction waits in the pool, visibly, until a block includes
    it.
    """
    chain, pool = PreconfirmingChain(tmp_path / "store"), ToyPool()
    chain.begin()
    sent = [chain.pay() for _ in range(3)]
    sender = "0x" + sent[0].sender.hex()
    ledger = Ledger(chain.store, clock=chain.clock)

    def shown(client: Asker) -> list[str]:
        """The hashes in each of the responses."""
        content, own = client.ask("txpool_content"), client.ask("txpool_contentFrom", sender)
        lines = client.ask("txpool_inspect")["pending"]
        number = int(client.ask("txpool_status")["pending"], 16)
        ours = [each["hash"] for by in content["pending"].values() for each in by.values()]
        assert all(each["blockHash"] is None for each in own["pending"].values())
        assert [each["hash"] for each in own["pending"].values()] == ours
        assert number == len(ours) == sum(len(each) for each in lines.values())
        return ours

    hashes = ["0x" + each.hash.hex() for each in sent]
    with asker(ledger, view="sealed", pool=pool) as node, asker(ledger, pool=pool) as ahead:
        assert shown(node) == shown(ahead) == []
        chain.extend(sent[:1])
        chain.extend(sent[1:2])
        pool.waiting.append(Waits(sent[2]))
        assert shown(node) == hashes
        assert shown(ahead) == hashes[2:]
        chain.extend(sent[2:])
        pool.waiting.clear()
        assert shown(node) == hashes
        chain.begin()
        assert shown(node) == shown(ahead) == []
    chain.close()
