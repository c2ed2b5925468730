"""The index of addresses, compared with a plain scan, through blocks, reorganisations and restarts.

Sections are made small, so that a few blocks fill and merge all sizes.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Transaction, touched_row
from foreblock.ledger.reading.availability import network_status
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage import section_index
from foreblock.ledger.storage.section_index import ADDRESSES, OF_CALLS, OF_TRANSACTIONS, touched_key
from foreblock.ledger.tracing import address_indexing
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from foreblock.status.status_text import status_lines
from support.address_model import check_pages, scan
from support.chains.dev_chain import DevChain
from support.chains.writing import (
    FACTORY,
    MAKES_MORTAL,
    MORTAL,
    NOBODY,
    SCRIBE,
    SENDERS,
    Chain,
)
from support.servers.asking import asker, error
from support.servers.long_work import thresholds
from support.servers.waiting import PATIENCE, until

UNKNOWN = b"\x99" * 20
ADDRESSES_ASKED = ["0x" + each.hex() for each in (*SENDERS[:2], NOBODY, FACTORY, MORTAL, UNKNOWN)]


pytestmark = pytest.mark.usefixtures("small_sections")


@pytest.fixture(autouse=True)
def short_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_indexing, "JOB_S", 0.0)  # one block per job


def transaction(chain: Chain, kind: int) -> Transaction:
    """One of a few transactions, with and without inner calls."""
    who = kind % 3
    match kind // 3:
        case 0:
            return chain.signed(who)
        case 1:
            return chain.write(SCRIBE, kind, 1, who)
        case 2:
            return chain.signed(who, FACTORY, 0, MAKES_MORTAL)  # creates it, or fails to
        case _:
            return chain.signed(who, MORTAL, 0)  # destroys itself, if it exists


def grow(chain: Chain, kinds: list[int]) -> None:
    """Seal a block with these transactions, spread over two indices."""
    if chain.block.index == 0:
        chain.add(chain.deposit())
    for kind in kinds:
        chain.block.run([transaction(chain, kind)])
    chain.add()
    chain.seal(chain.deposit())


def check(chain: Chain) -> int:
    """Check that every page equals the result of a scan, including pre-confirmed blocks."""
    # Any number of blocks without rows is executed again.
    with (
        thresholds(searched_traces=1 << 20),
        asker(Ledger(chain.store, clock=chain.clock)) as client,
    ):
        return check_pages(client, scan(client), ADDRESSES_ASKED, [1, 4])


class Delayed(Executor):
    """Runs a job immediately, and reports it later."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401, as it is
        future: Future[Any] = Future()
        result = fn(*args, **kwargs)
        self.waiting.append(lambda: future.set_result(result))
        return future

    def tell(self) -> None:
        """Report that the jobs are done."""
        for each in self.waiting:
            each()
        self.waiting.clear()


def index_all(chain: Chain, indexing: AddressIndexing, thread: Delayed) -> None:
    """Take turns until no work is due."""
    while indexing.turn(chain.writer.latest.number) or thread.waiting:
        thread.tell()


BLOCKS = st.lists(st.integers(0, 11), max_size=4)
STEPS = st.lists(
    st.one_of(
        BLOCKS,
        BLOCKS,
        BLOCKS,
        st.just("turn"),
        st.just("tell"),
        st.just("all turns"),
        st.integers(1, 9),
        st.just("restart"),
    ),
    min_size=5,
    max_size=25,
)


@given(steps=STEPS)
def test_pages_are_what_a_scan_finds(steps: list[object]) -> None:
    folder = Path(tempfile.mkdtemp())
    chain = Chain(folder / "store", keep_partials=2)
    thread = Delayed()
    indexing = AddressIndexing(chain.store, thread)
    for step in steps:
        match step:
            case list(kinds):
                grow(chain, kinds)
            case int(depth):
                chain.rewind(depth)
            case "turn":
                indexing.turn(chain.writer.latest.number)
            case "tell":
                thread.tell()
            case "all turns":
                index_all(chain, indexing, thread)
                check(chain)
            case _:
                chain.reopen()
                thread = Delayed()
                indexing = AddressIndexing(chain.store, thread)
    check(chain)
    index_all(chain, AddressIndexing(chain.store, thread), thread)
    check(chain)
    with chain.store.view() as view:
        behind = chain.writer.latest.number + 1 - ADDRESSES.read(view).end
    assert behind < section_index.SIZES[0], (
        "each block has a transaction, so all sections are written"
    )
    chain.store.close()
    shutil.rmtree(folder)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    found = Chain(tmp_path / "store")
    yield found
    found.store.close()


def test_sections_and_rows_are_read(chain: Chain) -> None:
    """A block is not found without its entry, and is executed again without its row."""
    for _ in range(5):
        grow(chain, [0])
    AddressIndexing(chain.store).catch_up(chain.writer.latest.number)
    with chain.store.view() as view:
        assert ADDRESSES.read(view).ends == (6, 4, 0)
        sections = [key for key, _ in view.rows(section_index.Section(b"T", 1, 0).prefix, 99)]
        row = view.row(touched_key(5))
    assert row is not None
    sender = "0x" + SENDERS[0].hex()
    with asker(Ledger(chain.store, clock=chain.clock)) as client:

        def blocks() -> list[str]:
            found = client.ask("ots_searchTransactionsBefore", sender, 0, 25)["txs"]
            return [it["blockNumber"] for it in found]

        assert blocks() == ["0x5", "0x4", "0x3", "0x2", "0x1"]
        chain.store.put_rows([], [touched_key(5)])
        assert len(blocks()) == 5
        # Without its entries it is ignored, and so are rows of other branches.
        chain.store.put_rows([(touched_key(5), row[:33])], [])
        assert blocks() == ["0x4", "0x3", "0x2", "0x1"]
        chain.store.put_rows([(touched_key(5), bytes(32) + row[32:33])], [])
        assert len(blocks()) == 5
        chain.store.put_rows([], sections)
        assert blocks() == ["0x5", "0x4"]


def test_searches_give_others_a_turn(chain: Chain) -> None:
    for kind in (0, 6, 9, 3, 1, 7):
        grow(chain, [kind, 0])
    AddressIndexing(chain.store).catch_up(chain.writer.latest.number)
    with thresholds(slice_seconds=0.0, looked_up_terms=1):
        assert check(chain) > 50


def test_blocks_that_are_not_indexed_are_refused_when_they_are_reached(chain: Chain) -> None:
    indexing = AddressIndexing(chain.store)
    for _ in range(3):
        grow(chain, [0])
    indexing.catch_up(3)
    for _ in range(4):
        grow(chain, [0])
    sender = "0x" + SENDERS[0].hex()
    with thresholds(searched_traces=4), asker(Ledger(chain.store, clock=chain.clock)) as client:
        why = "transactions by address are indexed below block 4, 4 blocks are left"
        refused = client.ask("ots_searchTransactionsBefore", sender, 0, 25)
        assert refused == error(-32000, why)
        assert client.ask("ots_searchTransactionsAfter", sender, 0, 25) == error(-32000, why)
        assert len(client.ask("ots_searchTransactionsAfter", sender, 0, 2)["txs"]) == 2
        assert len(client.ask("ots_searchTransactionsBefore", sender, 8, 25)["txs"]) == 7
        indexing.catch_up(7)
        assert len(client.ask("ots_searchTransactionsBefore", sender, 0, 25)["txs"]) == 7


def facts(chain: Chain) -> tuple[str, ...]:
    """The lines of `/readyz?verbose`."""
    ledger = Ledger(chain.store, clock=chain.clock)
    return status_lines(network_status(ledger, "main", "dev", chain.clock.wall_ns()))


def test_a_writer_indexes_behind_the_head_and_says_how_far_it_is(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    for _ in range(3):
        grow(chain, [0])
    assert not [each for each in facts(chain) if "addresses" in each], "it is not kept yet"
    chain.options["address_index"] = True
    chain.reopen()
    for _ in range(3):
        grow(chain, [6, 9])

    def indexed() -> bool:
        while chain.writer.follow_up():
            pass
        return "addresses: 1 block to index" in facts(chain)

    assert "addresses: 7 blocks to index" in facts(chain)
    until(indexed, "all sections are written")
    assert check(chain) > 20
    chain.writer.close()
    chain.store.close()


def test_a_writer_that_is_closed_waits_for_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released, order = threading.Event(), threading.Event(), list[str]()
    make = touched_row

    def held(*block: Any) -> bytes:  # noqa: ANN401, as it takes them
        entered.set()
        assert released.wait(PATIENCE)
        row = make(*block)
        order.append("made")
        return row

    monkeypatch.setattr(address_indexing, "touched_row", held)
    chain = Chain(tmp_path / "store", address_index=True)
    grow(chain, [0])
    while chain.writer.follow_up() or not entered.is_set():
        pass
    released.set()
    chain.writer.close()
    assert order == ["made"], "it is not running any more"
    chain.reopen()
    assert check(chain) > 10
    chain.writer.close()
    chain.store.close()


def test_of_blocks_without_state_the_transactions_count(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", keep_states=4, keep_partials=2)
    try:
        chain.run(30_000)
        while chain.store.maintain(1000):
            pass
        latest = chain.writer.latest.number
        with chain.store.view() as view:
            earliest = view.heads.earliest
        assert 1 < earliest < latest
        AddressIndexing(chain.store).catch_up(latest)
        with chain.store.view() as view:
            rows = [view.row(touched_key(number)) for number in range(1, latest + 1)]
        made = [row[32] for row in rows if row is not None]
        assert made == [OF_TRANSACTIONS] * earliest + [OF_CALLS] * (latest - earliest)
        with asker(Ledger(chain.store, clock=chain.clock)) as client:
            block = client.ask("eth_getBlockByNumber", "0x1", True)
            (deposit,) = block["transactions"]
            for address in (deposit["from"], deposit["to"]):
                page = client.ask("ots_searchTransactionsAfter", address, 0, 1)
                assert page["txs"] == [deposit]
                assert (page["firstPage"], page["lastPage"]) == (False, True)
    finally:
        chain.kill()


def test_turns_draw_no_number(chain: Chain) -> None:
    for _ in range(5):
        grow(chain, [0])
    with chain.store.view() as view:
        before = view.heads.commit
    AddressIndexing(chain.store).catch_up(5)
    with chain.store.view() as view:
        assert view.heads.commit == before
        assert ADDRESSES.read(view).end == 6


def test_a_store_without_the_index_is_left_alone(chain: Chain) -> None:
    grow(chain, [0])
    chain.run_until_idle()
    chain.rewind(1)
    with chain.store.view() as view:
        assert not ADDRESSES.exists(view)
        assert not view.rows(touched_key(0)[:1], 1)
