"""Pre-confirmed blocks as JSON, and their sealed forms."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Block, Receipt, decode_receipt, transactions_root
from foreblock.ledger.reading.stored_block import Portion, read_stored
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.partial_rows import split_senders
from foreblock.types import Header
from support.chains.importing import import_bytes
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.chains.writing import PASSER
from support.payloads.headers import header_hash
from support.servers.asking import Asker, asker, request
from support.servers.long_work import thresholds


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def receipts_in(portion: Portion) -> list[bytes]:
    return portion.receipts.take(0, len(portion))


def grow(chain: PreconfirmingChain) -> None:
    """Add a block of four indices, one of them empty, and the first of the next."""
    chain.begin()
    chain.extend([chain.pay(), chain.pay(COUNTER, 5)])
    chain.extend()
    chain.extend([chain.pay(PASSER, 3), chain.pay(None, 0, b"\0")])


def test_partial_block_has_the_hash_of_its_fields(chain: PreconfirmingChain, client: Asker) -> None:
    flashblocks = [chain.begin()]
    for transactions in ([chain.pay()], [], [chain.pay(PASSER, 3)]):
        flashblocks.append(chain.extend(transactions))
        block = client.ask("eth_getBlockByNumber", "pending", False)
        newest = flashblocks[-1].diff
        assert block["hash"] == header_hash(block) == "0x" + newest.block_hash.hex()
        assert block["number"] == "0x1"
        assert block["gasUsed"] == hex(newest.gas_used)
        assert block["blobGasUsed"] == hex(newest.blob_gas_used)
        assert block["receiptsRoot"] == "0x" + newest.receipts_root.hex()
        assert block["withdrawalsRoot"] == "0x" + newest.withdrawals_root.hex()
        assert block["stateRoot"] == "0x" + "00" * 32
        raws = [raw for each in flashblocks for raw in each.diff.transactions]
        assert block["transactionsRoot"] == "0x" + transactions_root(raws).hex()
        assert len(block["transactions"]) == len(raws)
        assert (block["uncles"], block["withdrawals"]) == ([], [])
    assert (
        block["withdrawalsRoot"]
        != client.ask("eth_getBlockByNumber", "0x0", False)["withdrawalsRoot"]
    ), "the message passer was touched"


def test_shape_and_size_are_those_of_a_sealed_block(
    chain: PreconfirmingChain, client: Asker
) -> None:
    grow(chain)
    pending = client.ask("eth_getBlockByNumber", "pending", True)
    chain.begin()
    sealed = client.ask("eth_getBlockByNumber", "latest", True)
    differ = {name for name in sealed if sealed[name] != pending[name]}
    assert list(sealed) == list(pending)
    assert differ == {"hash", "stateRoot", "transactions"}
    assert int(pending["size"], 16) > 0
    for before, after in zip(pending["transactions"], sealed["transactions"], strict=True):
        assert before | {"blockHash": 0} == after | {"blockHash": 0}


def test_one_response_holds_one_block_hash(chain: PreconfirmingChain, client: Asker) -> None:
    grow(chain)
    for _ in range(2):
        for name in ("pending", "latest", {"blockNumber": "0x1", "flashblockIndex": "0x1"}):
            block = client.ask("eth_getBlockByNumber", name, True)
            said = {transaction["blockHash"] for transaction in block["transactions"]}
            assert said | {block["hash"]} == {block["hash"]}
            short = client.ask("eth_getBlockByNumber", name, False)
            assert short["hash"] == block["hash"]
            hashes = [transaction["hash"] for transaction in block["transactions"]]
            assert short["transactions"] == hashes
        chain.begin()
    pinned = client.ask(
        "eth_getBlockByNumber", {"blockNumber": "0x1", "flashblockIndex": "0x1"}, True
    )
    assert len(pinned["transactions"]) == 3
    assert pinned["hash"] != client.ask("eth_getBlockByNumber", "0x1", True)["hash"]


def test_sealed_block_is_the_one_that_others_import(
    chain: PreconfirmingChain, client: Asker, tmp_path: Path
) -> None:
    """Its RLP, verified root by root, gives the same JSON and the same receipts elsewhere."""
    for _ in range(3):
        grow(chain)
    view = Ledger(chain.store, clock=chain.clock).view()
    encoded = b""
    receipts: list[list[bytes]] = []
    for number in range(1, 3):
        block = view.resolve(number)
        portions = read_stored(view, block).portions()
        raws = [raw for portion in portions for raw in portion.raws]
        receipts.append([receipt for portion in portions for receipt in receipts_in(portion)])
        encoded += Block(block.header, raws, (), ()).encode()
    view.close()
    import_bytes(tmp_path / "imported", chain.genesis, encoded)
    ledger = Ledger.open(str(tmp_path / "imported"))
    with asker(ledger) as other:
        for height in ("0x0", "0x1", "0x2"):
            for full in (False, True):
                body = request("eth_getBlockByNumber", height, full)
                assert client.reply(body).body == other.reply(body).body
        assert other.ask("eth_getBlockByNumber", "latest", True)["number"] == "0x2"
    view = ledger.view()
    for number in (1, 2):
        (portion,) = read_stored(view, view.resolve(number)).portions()
        assert receipts_in(portion) == receipts[number - 1]
    view.close()
    ledger.close()


def test_receipts_of_a_partial_have_its_root(chain: PreconfirmingChain) -> None:
    grow(chain)
    view = Ledger(chain.store, clock=chain.clock).view()
    assert view.pending is not None
    portions = read_stored(view, view.pending).portions()
    receipts: list[Receipt] = [
        decode_receipt(receipt) for portion in portions for receipt in receipts_in(portion)
    ]
    assert (
        transactions_root([each.encode() for each in receipts]) == view.pending.header.receipts_root
    )
    assert len(receipts) == 5
    for portion in portions:
        known = [each.sender for each in portion.transactions(0, len(portion.raws))]
        assert known == split_senders(portion.senders or b"")
    view.close()


def test_transactions_are_rendered_once_for_all_partials_and_the_sealed_block(
    chain: PreconfirmingChain, client: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[int] = []
    render = Portion.fragments

    def counting(
        portion: Portion, start: int, stop: int, first: int, header: Header
    ) -> list[bytes]:
        texts = render(portion, start, stop, first, header)
        rendered.extend(range(first + start, first + start + len(texts)))
        return texts

    monkeypatch.setattr(Portion, "fragments", counting)
    chain.begin()
    client.ask("eth_getBlockByNumber", "pending", False)
    assert rendered == [], "hashes need none"
    client.ask("eth_getBlockByNumber", "pending", True)
    chain.extend([chain.pay(), chain.pay()])
    client.ask("eth_getBlockByNumber", "pending", False)
    client.ask("eth_getBlockByNumber", "pending", True)
    assert rendered == [0, 1, 2]
    chain.extend([chain.pay()])
    for _ in range(2):
        client.ask("eth_getBlockByNumber", "pending", True)
    assert rendered == [0, 1, 2, 3]
    chain.begin()
    assert len(client.ask("eth_getBlockByNumber", "latest", True)["transactions"]) == 4
    client.ask("eth_getBlockByHash", "0x" + chain.writer.latest.hash.hex(), True)
    assert rendered == [0, 1, 2, 3]


def test_rendering_in_portions_changes_nothing(chain: PreconfirmingChain) -> None:
    """Also for concurrent requests that render the same block."""
    grow(chain)
    ledger = Ledger(chain.store, clock=chain.clock)
    body = request("eth_getBlockByNumber", "pending", True)
    answers = set()
    for budget in (1, 2, 3, 256):
        with thresholds(rendered_transactions=budget), asker(ledger) as client:
            answers |= {reply.body for reply in client.replies([body, body, body])}
            answers.add(client.reply(body).body)
    assert len(answers) == 1
    assert len(json.loads(answers.pop())["result"]["transactions"]) == 5


def test_texts_that_are_not_kept_are_made_again(chain: PreconfirmingChain) -> None:
    grow(chain)
    ledger = Ledger(chain.store, clock=chain.clock)
    with (
        asker(ledger) as keeping,
        asker(ledger, cached_bytes=0) as not_,
    ):
        for full in (True, False, True):
            body = request("eth_getBlockByNumber", "pending", full)
            assert keeping.reply(body).body == not_.reply(body).body


def test_identity_can_be_null_where_pending_is_asked_for(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    with asker(ledger) as real, asker(ledger, pending_identity="null") as nameless:
        assert nameless.ask("eth_getBlockByNumber", "pending", False)["number"] == "0x0", (
            "nothing is pending"
        )
        grow(chain)
        pinned = {"blockNumber": "0x1", "flashblockIndex": "0x3"}
        for full in (False, True):
            block = real.ask("eth_getBlockByNumber", "pending", full)
            assert (block["number"], block["nonce"]) == ("0x1", "0x" + "00" * 8)
            nulls = {"number": None, "hash": None}
            assert nameless.ask("eth_getBlockByNumber", "pending", full) == block | nulls
            named = nameless.ask("eth_getBlockByNumber", {"blockNumber": "pending"}, full)
            assert named == block | nulls
            assert nameless.ask("eth_getBlockByNumber", pinned, full) == block
            assert nameless.ask("eth_getBlockByHash", block["hash"], full) == block
            assert nameless.ask("eth_getBlockByNumber", "latest", full)["number"] == "0x0"


def test_identity_is_null_also_in_a_text_that_takes_long(chain: PreconfirmingChain) -> None:
    grow(chain)
    ledger = Ledger(chain.store, clock=chain.clock)
    with (
        thresholds(rendered_transactions=1),
        asker(ledger, pending_identity="null") as nameless,
    ):
        block = nameless.ask("eth_getBlockByNumber", "pending", True)
        assert (block["number"], block["hash"]) == (None, None)
        assert len(block["transactions"]) == 5


def test_block_is_found_by_its_hash_sealed_or_not(chain: PreconfirmingChain, client: Asker) -> None:
    partial = "0x" + chain.begin().diff.block_hash.hex()
    expected = client.ask("eth_getBlockByNumber", "pending", True)
    assert client.ask("eth_getBlockByHash", partial, True) == expected
    chain.extend([chain.pay()])
    chain.begin()
    assert client.ask("eth_getBlockByHash", partial, True) == expected, "the index it was"
    latest = client.ask("eth_getBlockByNumber", "latest", False)
    assert client.ask("eth_getBlockByHash", latest["hash"], False) == latest
    assert client.ask("eth_getBlockByHash", "0x" + "12" * 32, False) is None
    assert client.ask("eth_getBlockByHash", "latest", False)["code"] == -32602
    assert client.ask("eth_getBlockByHash", latest["hash"])["code"] == -32602
