"""Blocks of many portions: the rows that a request reads, its steps, and the number of reads."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import (
    Block,
    StoredBlock,
    StoredItems,
    decode_block,
)
from foreblock.errors import StoreDamaged
from foreblock.ledger.reading.blocks import BlockId, ReadableBlock
from foreblock.ledger.reading.stored_block import Portion, read_stored, some_receipts
from foreblock.ledger.reading.transaction_lookup import (
    portion_rows,
    read_tips,
    stored_block,
)
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.partial_rows import ADDRESS_BYTES, Position
from foreblock.methods import fee_methods
from foreblock.methods.blocks.block_text import PORTION_BYTES, BlockTexts, KeptBytes, PortionText
from foreblock.methods.blocks.receipts import ReceiptCache, ReceiptsText
from foreblock.methods.fee_methods import KEPT_BYTES
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.scheduler import Scheduler
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Settings
from foreblock.types import Header
from support.chains.importing import import_bytes
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.asking import ANYBODY, Asker, body_of, request
from support.servers.long_work import finish, scheduler, thresholds

PORTIONS = (3, 0, 4, 1, 0, 2)  # transactions per index after the first


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """Two sealed blocks of seven indices each, and one in progress."""
    found = PreconfirmingChain(tmp_path / "store")
    for _ in range(3):
        found.begin()
        for count in PORTIONS:
            found.extend([found.pay(COUNTER, 1) for _ in range(count)])
    yield found
    found.close()


@pytest.fixture
def ledger(chain: PreconfirmingChain) -> Ledger:
    return Ledger(chain.store, clock=chain.clock)


@pytest.fixture
def client(ledger: Ledger) -> Iterator[Asker]:
    found = Asker(ledger)
    yield found
    found.close()


@pytest.fixture
def in_turns() -> Iterator[None]:
    """Every step of a read waits for its turn, and texts stay in pieces."""
    with thresholds(
        pieces_bytes=1_000,
        read_round_seconds=0.0,
        read_slice_seconds=1e-9,
        rendered_transactions=1,
        rendered_hashes=1,
        rendered_receipts=1,
    ):
        yield


def transactions(client: Asker, block: str) -> list[str]:
    found: list[str] = client.ask("eth_getBlockByNumber", block, False)["transactions"]
    return found


def forget_positions(chain: PreconfirmingChain) -> None:
    """Rewrite the store in an older version's format, whose rows end with the last sender."""
    with chain.store.view() as view:
        rows = [row for row in view.rows(b"p", 1 << 20) if row[0].endswith(b"s")]
    batch = chain.store.batch()
    for key, value in rows:
        assert len(value) % ADDRESS_BYTES, "it has its position"
        batch.put(key, value[: len(value) - len(value) % ADDRESS_BYTES])
    chain.store.commit(batch)


@pytest.mark.parametrize("block", ["0x1", "0x2", "pending"])
def test_a_transaction_or_receipt_reads_no_whole_row(
    client: Asker, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("it reads a whole row")

    places = transactions(client, block)
    client.ask("eth_getTransactionReceipt", places[0])  # common parts of all receipts are cached
    monkeypatch.setattr(LedgerView, "row", forbidden)
    for place, transaction in enumerate(places):
        assert client.ask("eth_getTransactionReceipt", transaction)["transactionIndex"] == hex(
            place
        )
        assert client.ask("eth_getTransactionByHash", transaction)["hash"] == transaction
        index = client.ask("eth_getTransactionByBlockNumberAndIndex", block, hex(place))
        assert index["hash"] == transaction
    assert client.ask("eth_getTransactionByBlockNumberAndIndex", block, hex(len(places))) is None
    count = client.ask("eth_getBlockTransactionCountByNumber", block)
    assert count == hex(len(places)) == hex(1 + sum(PORTIONS))


def test_one_item_of_a_block_is_read_later_if_the_round_has_no_time_left(
    ledger: Ledger, client: Asker
) -> None:
    first = transactions(client, "0x1")[1]
    bodies = [
        request(method, *params)
        for method, *params in (
            ("eth_getTransactionReceipt", first),
            ("eth_getTransactionByHash", first),
            ("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x1"),
            ("eth_getRawTransactionByHash", first),
        )
    ]
    service, scheduler = _service(ledger)

    async def answer_all() -> None:
        for body in bodies:
            with thresholds(read_round_seconds=0.0):
                waiting = service.answer(body, ANYBODY)
            assert isinstance(waiting, Awaitable)
            at_once = service.answer(body, ANYBODY)
            assert isinstance(at_once, Reply)
            assert (await waiting).body == at_once.body

    asyncio.run(answer_all())
    scheduler.close()


def test_receipts_are_the_same_by_either_way_and_in_older_stores(
    chain: PreconfirmingChain, client: Asker
) -> None:
    """Single receipts in place, all in order, and counted if rows have no positions."""
    before: dict[str, tuple[object, object]] = {}
    for block in ("0x1", "0x2", "pending"):
        receipts = client.ask("eth_getBlockReceipts", block)
        logs = [log["logIndex"] for receipt in receipts for log in receipt["logs"]]
        assert logs == [hex(index) for index in range(sum(PORTIONS))]
        gas = [int(receipt["cumulativeGasUsed"], 16) for receipt in receipts]
        assert [int(each["gasUsed"], 16) for each in receipts] == [
            end - start for start, end in zip([0, *gas], gas, strict=False)
        ]
        for receipt in receipts:
            name = receipt["transactionHash"]
            assert client.ask("eth_getTransactionReceipt", name) == receipt
            before[name] = receipt, client.ask("eth_getTransactionByHash", name)
    forget_positions(chain)
    older = Asker(Ledger(chain.store, clock=chain.clock))
    for name, (receipt, transaction) in before.items():
        assert older.ask("eth_getTransactionReceipt", name) == receipt
        assert older.ask("eth_getTransactionByHash", name) == transaction
    for block in ("0x1", "pending"):
        count = older.ask("eth_getBlockTransactionCountByNumber", block)
        assert count == hex(1 + sum(PORTIONS))
        assert older.ask("eth_getTransactionByBlockNumberAndIndex", block, "0xff") is None
    older.close()


def counted(view: LedgerView, block: ReadableBlock) -> list[tuple[int, int, int]]:
    """The positions of the portions of a block and its end, by decoding all receipts."""
    positions, before = [], Position()
    for portion in read_stored(view, block).portions():
        positions.append((before.transactions, before.gas, before.logs))
        for placed in some_receipts(portion, 0, len(portion), before):
            before = placed.end
    return [*positions, (before.transactions, before.gas, before.logs)]


def test_positions_are_those_that_counting_finds(chain: PreconfirmingChain) -> None:
    """Also after a writer has continued a block that another one began."""
    chain.reopen()
    chain.extend([chain.pay(COUNTER, 1)])
    view = Ledger(chain.store, clock=chain.clock).view()
    names: tuple[BlockId, ...] = (1, 2, "pending")
    for name in names:
        block = view.resolve(name)
        stored = stored_block(block, view.partials_of(block))
        for portion, position in enumerate(counted(view, block)):
            assert stored.position(view.stored, portion) == position
    view.close()


def test_a_store_that_was_of_an_older_version_goes_on_with_positions(
    chain: PreconfirmingChain,
) -> None:
    forget_positions(chain)
    chain.reopen()
    chain.extend([chain.pay(COUNTER, 1)])
    ledger = Ledger(chain.store, clock=chain.clock)
    view = ledger.view()
    assert view.pending is not None
    numbers = view.partials_of(view.pending)
    positions = counted(view, view.pending)
    row = view.row(partial_rows.senders_key(view.pending.number, numbers[-1]), view.pending)
    written = partial_rows.decode_position(len(row), row[-16:])
    assert written is not None
    assert (written.transactions, written.gas, written.logs) == positions[-2]
    stored = stored_block(view.pending, numbers)
    assert [stored.position(view.stored, each) for each in range(len(positions))] == positions
    view.close()


def test_rows_that_are_missing_or_cut_are_damage(chain: PreconfirmingChain, ledger: Ledger) -> None:
    view = ledger.view()
    block = view.resolve(1)
    rows = portion_rows(block, view.partials_of(block)[-1])
    view.close()
    assert rows.senders is not None
    for key, value in ((rows.senders, None), (rows.transactions, b"\0"), (rows.receipts, b"\0")):
        batch = chain.store.batch()
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
        chain.store.commit(batch)
        view = ledger.view()
        with pytest.raises(StoreDamaged):
            read_stored(view, block).portions()
        view.close()


@pytest.mark.usefixtures("in_turns")
def test_what_is_made_in_steps_is_what_is_made_at_once(
    chain: PreconfirmingChain, client: Asker, tmp_path: Path
) -> None:
    """For portions, and for the same blocks imported, which have one portion each."""
    bodies = [
        request("eth_getBlockByNumber", "0x2", True),
        request("eth_getBlockByNumber", "0x2", False),
        request("eth_getBlockReceipts", "0x2"),
        request("debug_getRawBlock", "0x2"),
        request("eth_getTransactionByBlockNumberAndIndex", "0x2", "0x5"),
    ]
    found = [client.reply(body).body for body in bodies]
    raws = [client.ask("debug_getRawBlock", each) for each in ("0x1", "0x2")]
    encoded = b"".join(bytes.fromhex(raw[2:]) for raw in raws)
    import_bytes(tmp_path / "imported", chain.genesis, encoded)
    ledger = Ledger.open(str(tmp_path / "imported"))
    other = Asker(ledger)
    assert [other.reply(body).body for body in bodies] == found
    assert other.ask("eth_getBlockTransactionCountByNumber", "0x2") == hex(1 + sum(PORTIONS))
    block, _ = decode_block(encoded[len(bytes.fromhex(raws[0][2:])) :])
    assert isinstance(block, Block)
    assert len(block.transactions) == 1 + sum(PORTIONS)
    other.close()
    ledger.close()


def test_no_step_makes_more_than_a_few(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a bounded number is rendered between two turns of others."""
    rendered: list[int] = []
    render = Portion.fragments

    def counting(
        portion: Portion, start: int, stop: int, first: int, header: Header
    ) -> list[bytes]:
        texts = render(portion, start, stop, first, header)
        rendered.append(len(texts))
        return texts

    monkeypatch.setattr(Portion, "fragments", counting)
    view = ledger.view()
    block = view.resolve(1)
    texts = BlockTexts(scheduler(5_000))
    with thresholds(rendered_transactions=2):
        for _ in texts.render(view, block, full=True):
            assert sum(rendered) <= 2
            rendered.clear()
    found = texts.show(view, block, full=True)
    assert isinstance(found, bytes)
    assert len(json.loads(found)["transactions"]) == 1 + sum(PORTIONS)
    text, sizes = ReceiptsText(), [0]
    steps = text.render(view, ReceiptCache().stored(view, block))
    with thresholds(rendered_receipts=2):
        sizes.extend(text.count for _ in steps)
    assert max(after - before for before, after in pairwise(sizes)) == 2
    assert text.count == 1 + sum(PORTIONS)
    view.close()


@pytest.mark.parametrize("full", [False, True])
def test_portions_without_transactions_are_dropped_from_the_cache(
    chain: PreconfirmingChain, *, full: bool
) -> None:
    """On an idle chain every flashblock has such a portion, which holds a header."""
    kept, rendered = 10, 40

    def alive() -> int:
        gc.collect()
        return sum(isinstance(each, PortionText) for each in gc.get_objects())

    before = alive()
    texts = BlockTexts(scheduler(5_000), KeptBytes(0, kept * PORTION_BYTES))
    ledger = Ledger(chain.store, clock=chain.clock)
    for _ in range(rendered):
        chain.extend([])
        view = ledger.view()
        assert view.pending is not None
        finish(texts.render(view, view.pending, full=full))
        view.close()
    assert 0 < alive() - before <= kept


@pytest.mark.usefixtures("in_turns")
@pytest.mark.parametrize(
    "body",
    [request("eth_getBlockByNumber", "0x1", True), request("eth_getBlockReceipts", "0x1")],
)
def test_equal_requests_render_once_and_go_on_when_the_first_one_leaves(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """The view of the first request is closed with it; it is not read afterwards."""
    with_all = Asker(ledger)
    expected = with_all.reply(body).body
    with_all.close()
    portions: list[int] = []
    take = StoredItems

    def counting(row: bytes) -> StoredItems:
        items = take(row)
        portions.append(len(items))
        return items

    class CountingBlock:
        def __init__(self, *positional: Any, **keywords: Any) -> None:  # noqa: ANN401, as it is
            self._block = StoredBlock(*positional, **keywords)
            self.transaction = self._block.transaction

        def receipts(self, *positional: Any) -> object:  # noqa: ANN401, as it is
            portions.append(1)
            return self._block.receipts(*positional)

    monkeypatch.setattr("foreblock.ledger.reading.stored_block.StoredItems", counting)
    monkeypatch.setattr("foreblock.ledger.reading.transaction_lookup.StoredBlock", CountingBlock)
    # Each portion and its receipts, or each receipt and the end, are read once.
    reads = 2 + sum(PORTIONS) if b"Receipts" in body else 2 * (1 + len(PORTIONS))

    async def main() -> tuple[list[Reply], list[Reply]]:
        service, scheduler = _service(ledger)
        tasks = [asyncio.ensure_future(_ask(service, body)) for _ in range(8)]
        together = await asyncio.gather(*tasks)
        scheduler.close()
        once = len(portions)
        assert once == reads
        service, scheduler = _service(ledger)
        tasks = [asyncio.ensure_future(_ask(service, body)) for _ in range(4)]
        for _ in range(9):
            await asyncio.sleep(0)
        assert once < len(portions) < 2 * once, "it is under way"
        tasks[0].cancel()
        rest = await asyncio.gather(*tasks[1:])
        scheduler.close()
        return together, rest

    together, rest = asyncio.run(main())
    assert {reply.body for reply in (*together, *rest)} == {expected}


def _service(ledger: Ledger) -> tuple[Service, Scheduler]:
    options = Settings()
    scheduler = make_scheduler(options)
    return Service(ledger, options, scheduler), scheduler


async def _ask(service: Service, body: bytes) -> Reply:
    answer = service.answer(body, ANYBODY)
    reply = await answer if isinstance(answer, Awaitable) else answer
    return Reply(body_of(reply), reply.headers)


def test_tips_of_a_thousand_busy_blocks_are_kept(ledger: Ledger) -> None:
    view = ledger.view()
    found = finish(read_tips(view, view.resolve(1)))
    assert len(found) == sum(PORTIONS), "all but the deposit"
    assert found.size <= 128 + 12 * len(found)
    assert KEPT_BYTES >= 1024 * (128 + 12 * 2_000)
    view.close()


@pytest.mark.usefixtures("in_turns")
def test_a_history_that_ran_out_of_time_leaves_what_it_has_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counting(view: LedgerView, block: object) -> object:
        read.append(block.number)  # type: ignore[attr-defined]
        return read_tips(view, block)  # type: ignore[arg-type]

    monkeypatch.setattr(fee_methods, "read_tips", counting)
    body = request("eth_feeHistory", "0x3", "pending", [50])

    async def main() -> None:
        service, scheduler = _service(ledger)
        task = asyncio.ensure_future(_ask(service, body))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        assert read, "it is under way"
        answered = json.loads((await _ask(service, body)).body)["result"]
        assert len(answered["reward"]) == 3
        assert read.count(1) == 1, "the first blocks are not read again"
        scheduler.close()

    asyncio.run(main())


@pytest.mark.usefixtures("in_turns")
@pytest.mark.parametrize(
    "body",
    [
        request("eth_getBlockByNumber", "pending", True),
        request("eth_getBlockReceipts", "pending"),
        request("debug_getRawBlock", "pending"),
    ],
)
def test_networks_of_a_worker_are_not_given_each_others_blocks(tmp_path: Path, body: bytes) -> None:
    """Their partial blocks have the same numbers, and are requested at the same time."""
    chains = [PreconfirmingChain(tmp_path / name) for name in ("main", "test")]
    for value, chain in enumerate(chains, 1):
        chain.begin()
        for count in PORTIONS:
            chain.extend([chain.pay(COUNTER, value) for _ in range(count)])
    ledgers = [Ledger(chain.store, clock=chain.clock) for chain in chains]
    alone = []
    for ledger in ledgers:
        asker = Asker(ledger)
        alone.append(asker.reply(body).body)
        asker.close()
    assert alone[0] != alone[1]
    options = Settings()
    scheduler = make_scheduler(options)
    services = [Service(ledger, options, scheduler) for ledger in ledgers]

    async def together() -> list[Reply]:
        return await asyncio.gather(*(_ask(service, body) for service in services))

    assert [reply.body for reply in asyncio.run(together())] == alone
    scheduler.close()
    for chain in chains:
        chain.close()
