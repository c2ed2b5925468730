"""A network as an ordinary node: blocks above `latest` are visible only if named by the request.

Tools take a receipt as proof that the transaction is in the chain at `latest`, and then read at
`latest` or at the receipt's block. Each test of the first kind is a sequence of requests of such a
tool, beside the unchanged responses of the pre-confirmed view.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.view import Ledger
from foreblock.types import Transaction
from support.chains.preconfirming import COUNTER, PAID, SENDER, PreconfirmingChain
from support.payloads.bytecode import code
from support.servers.asking import Asker, asker, error
from support.servers.toys import ToyPool, Waits

PAYEE, PAYER = "0x" + PAID.hex(), "0x" + SENDER.hex()
COUNT = "0x" + COUNTER.hex()
NO_BLOCK = ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")


class Scene:
    """A chain with both views of it, and the transactions of its block in progress."""

    def __init__(self, chain: PreconfirmingChain, node: Asker, root: Asker, pool: ToyPool) -> None:
        self.chain, self.node, self.root, self.pool = chain, node, root, pool
        self.paid = chain.pay(value=10)
        self.counted = chain.pay(COUNTER, 7)
        chain.extend([self.paid])
        chain.extend([self.counted])

    def seal(self) -> None:
        self.chain.begin()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """One sealed block with a payment; a second in progress, with two transactions."""
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    chain.extend([chain.pay()])
    chain.begin()
    pool = ToyPool()
    ledger = Ledger(chain.store, clock=chain.clock)
    with (
        asker(ledger, "ethereum", view="sealed", pool=pool) as node,
        asker(ledger, pool=pool) as root,
    ):
        yield Scene(chain, node, root, pool)
    chain.close()


def hash_of(transaction: Transaction) -> str:
    return "0x" + transaction.hash.hex()


def receipt(client: Asker, transaction: Transaction) -> Any:  # noqa: ANN401, it is JSON
    return client.ask("eth_getTransactionReceipt", hash_of(transaction))


def test_coinbase_is_that_of_the_newest_block_shown(tmp_path: Path) -> None:
    with closing(PreconfirmingChain(tmp_path / "store")) as chain:
        chain.begin()
        ledger = Ledger(chain.store, clock=chain.clock)
        with asker(ledger, view="sealed") as node, asker(ledger) as root:
            for client, block in ((node, "latest"), (root, "pending")):
                shown = client.ask("eth_getBlockByNumber", block, False)["miner"]
                assert client.ask("eth_coinbase") == shown
            assert node.ask("eth_coinbase") != root.ask("eth_coinbase")


# --- Requests of tools after a receipt -------------------------------------------------------


def test_receipt_is_there_when_latest_has_its_block(scene: Scene) -> None:
    assert receipt(scene.node, scene.paid) is None
    assert receipt(scene.root, scene.paid)["status"] == "0x1"
    scene.seal()
    found = receipt(scene.node, scene.paid)
    assert found == receipt(scene.root, scene.paid)
    assert scene.node.ask("eth_blockNumber") == found["blockNumber"] == "0x2"


def test_next_nonce_at_latest_follows_a_receipt(scene: Scene) -> None:
    """forge, cast and web3.js read it there; a nonce that is too low is rejected."""
    assert receipt(scene.node, scene.counted) is None
    scene.seal()
    assert receipt(scene.node, scene.counted) is not None
    assert scene.node.ask("eth_getTransactionCount", PAYER) == "0x3"
    assert scene.node.ask("eth_getTransactionCount", PAYER, "latest") == "0x3"


def test_what_a_receipt_promises_is_read_at_latest_and_at_its_block(scene: Scene) -> None:
    """hardhat, web3.py and titanoboa read the block, balances and contracts by its number."""
    scene.seal()
    number = receipt(scene.node, scene.counted)["blockNumber"]
    block = scene.node.ask("eth_getBlockByNumber", number, False)
    assert hash_of(scene.counted) in block["transactions"]
    assert block["hash"] == receipt(scene.node, scene.counted)["blockHash"]
    assert scene.node.ask("eth_getBlockByHash", block["hash"], False) == block
    for at in (number, "latest", block["hash"]):
        assert scene.node.ask("eth_getBalance", PAYEE, at) == "0xb"
        assert int(scene.node.ask("eth_getStorageAt", COUNT, "0x0", at), 16) == 7


def test_deployed_contract_has_its_code_when_its_receipt_is_there(scene: Scene) -> None:
    """hardhat, web3.js and brownie then call it at `latest`; a revert must be one."""
    reverts = bytes.fromhex(code(0, 0, "REVERT")[2:])
    # Copies the five bytes after itself into memory and returns them.
    creation = bytes([0x60, len(reverts), 0x80, 0x60, 0x0B, 0x60, 0, 0x39, 0x60, 0, 0xF3]) + reverts
    sent = scene.chain.pay(None, 0, creation)
    scene.chain.extend([sent])
    address = receipt(scene.root, sent)["contractAddress"]
    assert scene.root.ask("eth_getCode", address, "latest") == "0x", "what tools fall over"
    assert receipt(scene.node, sent) is None
    scene.seal()
    found = receipt(scene.node, sent)
    assert found["contractAddress"] == address
    for at in ((), ("latest",), (found["blockNumber"],)):
        assert scene.node.ask("eth_getCode", address, *at) == "0x" + reverts.hex()
        reverted = error(3, "execution reverted", data="0x")
        assert scene.node.ask("eth_call", {"to": address}, *at) == reverted


def test_estimate_without_a_block_is_made_at_latest(scene: Scene) -> None:
    """The first write of a slot costs more than the next one, which distinguishes the two."""
    call = {"from": PAYER, "to": COUNT, "value": "0x1"}
    at_latest = scene.node.ask("eth_estimateGas", call)
    assert at_latest == scene.node.ask("eth_estimateGas", call, "latest")
    at_pending = scene.node.ask("eth_estimateGas", call, "pending")
    assert int(at_pending, 16) < int(at_latest, 16)
    assert scene.root.ask("eth_estimateGas", call) == at_pending
    scene.seal()
    assert scene.node.ask("eth_estimateGas", call) == at_pending


def test_price_of_gas_follows_from_the_latest_block(scene: Scene) -> None:
    """The next base fee, regardless of the block in progress."""
    before = scene.node.ask("eth_gasPrice")
    scene.chain.extend([scene.chain.pay(value=each) for each in range(20)])
    assert scene.node.ask("eth_gasPrice") == before


# --- Hidden blocks, and named ones -----------------------------------------------------------


def test_pending_and_pins_by_place_may_be_named(scene: Scene) -> None:
    pinned = {"blockNumber": "0x2", "flashblockIndex": "0x1"}
    for client in (scene.node, scene.root):
        block = client.ask("eth_getBlockByNumber", "pending", True)
        assert [each["hash"] for each in block["transactions"]][1:] == [
            hash_of(scene.paid),
            hash_of(scene.counted),
        ]
        assert {each["blockHash"] for each in block["transactions"]} == {block["hash"]}
        assert client.ask("eth_getBalance", PAYEE, "pending") == "0xb"
        assert client.ask("eth_getBalance", PAYEE, pinned) == "0xb"
        assert client.ask("eth_getTransactionCount", PAYER, "pending") == "0x3"
        assert client.ask("eth_getTransactionCount", PAYER, pinned) == "0x2"
        assert len(client.ask("eth_getBlockReceipts", "pending")) == 3


def test_hash_of_a_partial_block_is_not_known(scene: Scene) -> None:
    partial = scene.node.ask("eth_getBlockByNumber", "pending", False)["hash"]
    assert scene.root.ask("eth_getBlockByHash", partial, False)["hash"] == partial
    assert scene.node.ask("eth_getBlockByHash", partial, False) is None
    assert scene.node.ask("eth_getBlockReceipts", partial) is None
    assert scene.node.ask("eth_getTransactionByBlockHashAndIndex", partial, "0x1") is None
    assert scene.node.ask("eth_getBlockTransactionCountByHash", partial) is None
    unknown = error(-32000, "header for hash not found")
    for method in ("eth_getBalance", "eth_getCode", "eth_getTransactionCount"):
        assert scene.node.ask(method, PAYEE, partial) == unknown
        assert scene.node.ask(method, PAYEE, {"blockHash": partial}) == unknown
        assert scene.root.ask(method, PAYEE, partial) != unknown
    scene.seal()
    assert scene.node.ask("eth_getBlockByHash", partial, False) is None, "a prefix of the block"


def test_number_of_the_block_in_progress_is_not_found(scene: Scene) -> None:
    for client in (scene.node, scene.root):
        assert client.ask("eth_getBlockByNumber", "0x2", False) is None
        assert client.ask("eth_getBalance", PAYEE, "0x2") == error(-32000, "header not found")


def test_snapshot_is_named_alike_in_both_views(scene: Scene) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}'
    line = scene.node.reply(body).headers
    assert b"pending=0x2.2:" in line
    assert line == scene.root.reply(body).headers


# --- Waiting transactions --------------------------------------------------------------------


def waits(client: Asker, transaction: Transaction) -> dict[str, Any]:
    found: dict[str, Any] = client.ask("eth_getTransactionByHash", hash_of(transaction))
    assert {name: found[name] for name in NO_BLOCK} == dict.fromkeys(NO_BLOCK)
    return found


def test_preconfirmed_transaction_is_shown_without_a_block(scene: Scene) -> None:
    found = waits(scene.node, scene.paid)
    assert scene.pool.asked == 0
    placed = scene.root.ask("eth_getTransactionByHash", hash_of(scene.paid))
    assert placed["blockNumber"] == "0x2"
    assert found.keys() == placed.keys()
    differing = {name for name in found if found[name] != placed[name]}
    assert differing == {*NO_BLOCK, "gasPrice"}
    assert found["gasPrice"] == found["maxFeePerGas"]
    scene.seal()
    assert scene.node.ask("eth_getTransactionByHash", hash_of(scene.paid))["blockNumber"] == "0x2"


def test_pooled_transaction_is_shown_without_a_block(scene: Scene) -> None:
    pooled = scene.chain.pay(value=5)
    scene.pool.waiting.append(Waits(pooled))
    found = waits(scene.node, pooled)
    assert (found["from"], found["nonce"], found["value"]) == (PAYER, "0x3", "0x5")
    assert receipt(scene.node, pooled) is None
    assert scene.root.ask("eth_getTransactionByHash", hash_of(pooled)) is None


def test_transactions_that_wait_are_found_by_sender_and_nonce(scene: Scene) -> None:
    pooled = scene.chain.pay(value=5)
    scene.pool.waiting.append(Waits(pooled))
    for nonce, transaction in (("0x1", scene.paid), ("0x3", pooled)):
        found = scene.node.ask("eth_getTransactionBySenderAndNonce", PAYER, nonce)
        assert found == waits(scene.node, transaction)
    assert scene.node.ask("eth_getTransactionBySenderAndNonce", PAYER, "0x4") is None
    assert scene.root.ask("eth_getTransactionBySenderAndNonce", PAYER, "0x3") is None
    placed = scene.root.ask("eth_getTransactionByHash", hash_of(scene.paid))
    assert scene.root.ask("eth_getTransactionBySenderAndNonce", PAYER, "0x1") == placed
    scene.pool.answers = False
    assert scene.node.ask("eth_getTransactionBySenderAndNonce", PAYER, "0x3") is None


def test_transaction_is_never_unknown_on_its_way_into_a_block(scene: Scene) -> None:
    """It leaves the pool after the view was taken and before the pool is read."""
    pooled = scene.chain.pay(value=5)
    scene.pool.meanwhile = lambda: scene.chain.extend([pooled])
    waits(scene.node, pooled)


def test_transaction_is_shown_when_its_block_seals_while_the_pool_is_asked(scene: Scene) -> None:
    pooled = scene.chain.pay(value=5)

    def meanwhile() -> None:
        scene.chain.extend([pooled])
        scene.seal()

    scene.pool.meanwhile = meanwhile
    waits(scene.node, pooled)


def test_pool_that_does_not_answer_is_an_empty_one(scene: Scene) -> None:
    pooled = scene.chain.pay(value=5)
    scene.pool.waiting.append(Waits(pooled))
    scene.pool.answers = False
    assert scene.node.ask("eth_getTransactionByHash", hash_of(pooled)) is None
    assert scene.pool.asked == 1


def test_deposit_of_the_block_in_progress_is_shown_without_a_block(scene: Scene) -> None:
    (deposit, *_) = scene.node.ask("eth_getBlockByNumber", "pending", True)["transactions"]
    found = scene.node.ask("eth_getTransactionByHash", deposit["hash"])
    assert {name for name in found if found[name] != deposit[name]} == set(NO_BLOCK)


# --- The number of the block in progress, by a setting ---------------------------------------


def test_number_may_mean_the_block_in_progress(scene: Scene) -> None:
    ledger = Ledger(scene.chain.store, clock=scene.chain.clock)
    with asker(ledger, pending_by_number=True) as client:
        block = client.ask("eth_getBlockByNumber", "0x2", False)
        assert block == client.ask("eth_getBlockByNumber", "pending", False)
        number = receipt(client, scene.paid)["blockNumber"]
        assert client.ask("eth_getBalance", PAYEE, number) == "0xb"
        assert client.ask("eth_getBalance", PAYEE, {"blockNumber": number}) == "0xb"
        assert client.ask("eth_getBlockByNumber", "0x3", False) is None
        assert client.ask("eth_getBalance", PAYEE, "0x1") == "0x1"
    with asker(ledger, view="sealed", pending_by_number=True) as client:
        assert client.ask("eth_getBlockByNumber", "0x2", False) is None


# --- Any history -----------------------------------------------------------------------------

ACTS = st.lists(st.sampled_from(["pay", "pool", "include", "flashblock", "seal"]))


@given(ACTS)
def test_each_transaction_is_sealed_or_waits_whatever_the_chain_does(acts: list[str]) -> None:
    """Compared with a plain model: waiting, pre-confirmed and sealed transactions."""
    with TemporaryDirectory() as folder:
        chain, pool = PreconfirmingChain(Path(folder) / "store"), ToyPool()
        chain.begin()
        ledger = Ledger(chain.store, clock=chain.clock)
        sealed: dict[Transaction, str] = {}
        unsealed: list[Transaction] = []
        with (
            asker(ledger, "ethereum", view="sealed", pool=pool) as node,
            asker(ledger, pool=pool) as root,
        ):
            for act in acts:
                match act:
                    case "pay" if not pool.waiting:  # the payment would have a later nonce
                        unsealed.append(chain.pay())
                        chain.extend(unsealed[-1:])
                    case "pool":
                        pool.waiting.append(Waits(chain.pay()))
                    case "include":
                        unsealed += [each.transaction for each in pool.waiting]
                        chain.extend([each.transaction for each in pool.waiting])
                        pool.waiting.clear()
                    case "seal":
                        sealed |= dict.fromkeys(unsealed, hex(chain.block.base.block_number))
                        unsealed.clear()
                        chain.begin()
                    case _:
                        chain.extend()
                look(node, root, sealed, unsealed, pool)
        chain.close()


def look(
    node: Asker,
    root: Asker,
    sealed: dict[Transaction, str],
    unsealed: list[Transaction],
    pool: ToyPool,
) -> None:
    latest = node.ask("eth_blockNumber")
    for transaction, number in sealed.items():
        found = receipt(node, transaction)
        assert found == receipt(root, transaction)
        assert found["blockNumber"] == number
        assert int(latest, 16) >= int(number, 16)
        shown = node.ask("eth_getTransactionByHash", hash_of(transaction))
        assert shown == root.ask("eth_getTransactionByHash", hash_of(transaction))
    for transaction in unsealed:
        waits(node, transaction)
        assert receipt(node, transaction) is None
        assert receipt(root, transaction) is not None
    for each in pool.waiting:
        waits(node, each.transaction)
        assert receipt(node, each.transaction) is None
        assert root.ask("eth_getTransactionByHash", hash_of(each.transaction)) is None
    assert int(node.ask("eth_getTransactionCount", PAYER), 16) == len(sealed)
    assert int(node.ask("eth_getTransactionCount", PAYER, "pending"), 16) == len(sealed) + len(
        unsealed
    )
