"""Filters: the results of polls on any worker, each delivered once."""

import asyncio
import fcntl
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from foreblock.errors import TooManyFilters, TooManyWaiting
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods.events.filter_table import FilterTable, StoredFilter
from foreblock.scheduling.reply import Reply, whole
from foreblock.service.network_views import Service, Shared, make_scheduler
from foreblock.settings import Settings
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.asking import ANYBODY, body_of, error, request
from support.servers.long_work import thresholds

Json = Any
ADDED = "0x" + COUNTER.hex()
NOT_FOUND = error(-32000, "filter not found")


class Worker:
    """A worker with the filters of a folder, and a driven clock."""

    def __init__(self, chain: PreconfirmingChain, folder: Path, now: list[float]) -> None:
        options = Settings(dialect="ethereum")
        table = FilterTable(str(folder), most=3, seconds=300.0, now=lambda: now[0])
        self.scheduler = make_scheduler(options)
        self.ledger = Ledger(chain.store, clock=chain.clock)
        self.service = Service(self.ledger, options, self.scheduler, shared=Shared(filters=table))
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self.scheduler.close()
        self._loop.close()

    def ask(self, method: str, *params: object) -> Json:
        return self.run(self._reply(method, *params))

    def run(self, body: Coroutine[Any, Any, Json]) -> Json:
        return self._loop.run_until_complete(body)

    async def _reply(self, method: str, *params: object) -> Json:
        found = self.service.answer(request(method, *params), ANYBODY)
        answer = json.loads(body_of(found if isinstance(found, Reply) else await found))
        return answer["result"] if "result" in answer else answer["error"]

    def poll_on(self, view: LedgerView, name: str) -> Json:
        """A poll with a separate view, as in a batch."""

        async def poll() -> Json:
            text = self.service.methods["eth_getFilterChanges"](view, Raw(json.dumps([name])))
            return json.loads(whole(text if isinstance(text, bytes) else await text))

        return self.run(poll())

    async def ask_while_locked(self, lock: Path, turns: int, method: str, name: str) -> Json:
        """The response to a request that is made while another worker holds a lock."""
        with lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            reply = asyncio.ensure_future(self._reply(method, name))
            for _ in range(turns):
                await asyncio.sleep(0)
            assert not reply.done()
        return await reply


class Workers:
    """Two workers of one service."""

    def __init__(self, chain: PreconfirmingChain, folder: Path) -> None:
        self.chain = chain
        self.now = [1_000_000.0]
        self.folder = folder
        self.one, self.other = (Worker(chain, folder, self.now) for _ in range(2))

    def count(self, *values: int) -> None:
        """Add the next index, with a log for each value."""
        self.chain.extend([self.chain.pay(COUNTER, value) for value in values])


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    (tmp_path / "filters").mkdir()
    workers = Workers(chain, tmp_path / "filters")
    yield workers
    workers.one.close()
    workers.other.close()
    chain.close()


def logs_of(worker: Worker, block: str) -> list[Json]:
    receipts = worker.ask("eth_getBlockReceipts", block)
    return [log for receipt in receipts for log in receipt["logs"]]


def test_changes_are_given_once_whichever_worker_is_asked(workers: Workers) -> None:
    one, other, chain = workers.one, workers.other, workers.chain
    logs = one.ask("eth_newFilter", {"address": ADDED})
    blocks = other.ask("eth_newBlockFilter")
    hashes = one.ask("eth_newPendingTransactionFilter")
    assert len({logs, blocks, hashes}) == 3
    workers.count(1, 2)
    pending = one.ask("eth_getBlockByNumber", "pending", False)
    assert other.ask("eth_getFilterChanges", hashes) == pending["transactions"][-2:]
    assert one.ask("eth_getFilterChanges", hashes) == []
    assert one.ask("eth_getFilterChanges", logs) == []
    chain.begin()
    assert other.ask("eth_getFilterChanges", logs) == logs_of(one, "0x1") != []
    assert one.ask("eth_getFilterChanges", logs) == []
    chain.begin()
    found = one.ask("eth_getFilterChanges", blocks)
    assert found == [one.ask("eth_getBlockByNumber", n, False)["hash"] for n in ("0x1", "0x2")]
    assert other.ask("eth_getFilterChanges", blocks) == []


def test_full_transactions_have_no_place(workers: Workers) -> None:
    name = workers.one.ask("eth_newPendingTransactionFilter", True)
    workers.count(7)
    (found,) = workers.other.ask("eth_getFilterChanges", name)
    (expected,) = workers.one.ask("eth_getBlockByNumber", "pending", True)["transactions"][-1:]
    assert found["blockHash"] is found["blockNumber"] is found["transactionIndex"] is None
    assert found["hash"] == expected["hash"]


def test_filter_logs_are_those_of_its_range(workers: Workers) -> None:
    one, chain = workers.one, workers.chain
    workers.count(1)
    chain.begin()
    workers.count(2, 3)
    chain.begin()
    first, second = logs_of(one, "0x1"), logs_of(one, "0x2")
    for criteria, expected in (
        ({"fromBlock": "earliest"}, first + second),
        ({"fromBlock": "0x1", "toBlock": "0x1"}, first),
        ({}, second),
        ({"blockHash": first[0]["blockHash"]}, first),
        ({"fromBlock": "0x0", "address": "0x" + "11" * 20}, []),
    ):
        name = one.ask("eth_newFilter", criteria)
        assert workers.other.ask("eth_getFilterLogs", name) == expected
        assert one.ask("eth_uninstallFilter", name) is True
    name = one.ask("eth_newBlockFilter")
    assert one.ask("eth_getFilterLogs", name) == NOT_FOUND


def test_long_changes_are_given_in_portions(workers: Workers) -> None:
    name = workers.one.ask("eth_newFilter", {})
    workers.count(1, 2, 3, 4, 5)
    workers.chain.begin()
    expected = logs_of(workers.one, "0x1")
    with thresholds(polled_results=2):
        portions = [workers.other.ask("eth_getFilterChanges", name) for _ in range(4)]
    assert portions == [expected[:2], expected[2:4], expected[4:], []]


def test_filters_that_are_not_polled_expire(workers: Workers) -> None:
    one, other, now = workers.one, workers.other, workers.now
    first, second = one.ask("eth_newBlockFilter"), one.ask("eth_newBlockFilter")
    now[0] += 299
    assert other.ask("eth_getFilterChanges", first) == []
    now[0] += 1
    assert one.ask("eth_getFilterChanges", first) == []
    assert one.ask("eth_getFilterChanges", second) == NOT_FOUND
    now[0] += 300
    assert one.ask("eth_uninstallFilter", first) is False


def test_there_are_so_many_filters_and_those_that_expired_do_not_count(workers: Workers) -> None:
    one, other, now = workers.one, workers.other, workers.now
    names = [one.ask("eth_newBlockFilter") for _ in range(3)]
    full = error(-32005, "too many filters, at most 3; uninstall unused filters")
    assert one.ask("eth_newBlockFilter") == full
    assert one.ask("eth_uninstallFilter", names[0]) is True
    assert isinstance(one.ask("eth_newBlockFilter"), str)
    assert one.ask("eth_newBlockFilter") == full
    now[0] += 300
    found = [other.ask("eth_newBlockFilter") for _ in range(3)]
    assert sum(isinstance(each, str) for each in found) >= 2
    assert len(list(workers.folder.glob("0x*"))) <= 3


@pytest.mark.parametrize("name", ["0x1", "", "0x", "../store", "0x1/../../x", "0X1", "x" * 5000])
def test_other_names_are_no_filters(workers: Workers, name: str) -> None:
    assert workers.one.ask("eth_getFilterChanges", name) == NOT_FOUND
    assert workers.one.ask("eth_getFilterLogs", name) == NOT_FOUND
    assert workers.one.ask("eth_uninstallFilter", name) is False


def test_bad_filters_are_refused_as_geth_does(workers: Workers) -> None:
    for criteria, expected in (
        ({"topics": [[]] * 5}, error(-32602, "invalid argument 0: exceed max topics")),
        (
            {"address": [ADDED] * 1001},
            error(-32000, "exceed max addresses or topics per search position"),
        ),
        ({"toBlock": "pending"}, error(-32602, "pending logs are not supported")),
        ({"fromBlock": "safe"}, error(-32602, "invalid block range params")),
    ):
        assert workers.one.ask("eth_newFilter", criteria) == expected


def test_a_poll_on_an_older_view_returns_nothing_and_keeps_the_filter(workers: Workers) -> None:
    one, other, chain = workers.one, workers.other, workers.chain
    names = [
        one.ask("eth_newBlockFilter"),
        one.ask("eth_newFilter", {}),
        one.ask("eth_newPendingTransactionFilter"),
    ]
    old = one.ledger.view()
    workers.count(1)
    chain.begin()
    workers.count(2)
    for name in names:
        assert other.ask("eth_getFilterChanges", name) != []
        assert one.poll_on(old, name) == []
        assert one.ask("eth_getFilterChanges", name) == []
    older = one.ledger.view()
    workers.count(3)
    chain.begin()
    for name in names:
        assert one.poll_on(older, name) == []  # nothing new, and nothing is lost:
        found = other.ask("eth_getFilterChanges", name)
        assert found
        assert one.poll_on(old, name) == one.poll_on(older, name) == []
        assert one.ask("eth_getFilterChanges", name) == []
    old.close()
    older.close()


def test_a_filter_of_a_chain_that_was_replaced_is_removed(workers: Workers) -> None:
    one = workers.one
    name = one.ask("eth_newBlockFilter")
    file = workers.folder / name
    kind, cursor, commit, *rest = msgspec.msgpack.decode(file.read_bytes())
    ahead = cursor.replace("0.", "ffff.", 1)
    file.write_bytes(msgspec.msgpack.encode([kind, ahead, commit + 1_000, *rest]))
    workers.now[0] = file.stat().st_mtime
    assert one.ask("eth_getFilterChanges", name) == NOT_FOUND
    assert not file.exists()


def test_only_the_filter_that_was_read_is_removed(tmp_path: Path) -> None:
    table, found = FilterTable(str(tmp_path)), StoredFilter("blocks", "0", 0)
    table.add("0x7", found)
    assert table.move("0x7", found, "1", 1)
    assert not table.remove("0x7", found)
    assert table.remove("0x7", table.read("0x7"))
    assert not table.remove("0x7")


def test_the_limits_hold_for_all_workers_together(tmp_path: Path) -> None:
    tables = [FilterTable(str(tmp_path), most=5) for _ in range(3)]
    names = [hex(number) for number in range(50)]

    def add(number: int) -> bool:
        with suppress(TooManyFilters):
            tables[number % 3].add(names[number], StoredFilter("logs", "0", 0, bytes(1_000)))
            return True
        return False

    assert [add(number) for number in range(8)] == [True] * 5 + [False] * 3
    assert tables[2].remove(names[0])
    assert [add(number) for number in range(8, 10)] == [True, False]
    for name in names[1:9]:
        tables[1].remove(name)
    with thresholds(filters_bytes=4_000):
        assert [add(number) for number in range(20, 24)] == [True] * 3 + [False]
        with pytest.raises(TooManyFilters, match="at most 4000 bytes"):
            tables[0].add("0x99", StoredFilter("logs", "0", 0, bytes(1_000)))


def test_the_logs_of_a_filter_wait_for_another_worker_that_holds_it(workers: Workers) -> None:
    name = workers.one.ask("eth_newFilter", {})
    asking = workers.other.ask_while_locked(workers.folder / name, 20, "eth_getFilterLogs", name)
    assert workers.other.run(asking) == []


@pytest.mark.parametrize("method", ["eth_getFilterChanges", "eth_uninstallFilter"])
def test_a_request_waits_for_another_worker_that_holds_a_filter(
    workers: Workers, method: str
) -> None:
    name = workers.one.ask("eth_newBlockFilter")
    for lock in (name, "sizes") if method == "eth_uninstallFilter" else (name,):
        name = workers.one.ask("eth_newBlockFilter")
        path = workers.folder / (name if lock != "sizes" else lock)
        answer = workers.other.run(workers.other.ask_while_locked(path, 20, method, name))
        assert answer == ([] if method == "eth_getFilterChanges" else True)


def patiently(table: FilterTable, name: str) -> StoredFilter:
    while True:
        with suppress(TooManyWaiting):
            return table.read(name)


def test_two_polls_at_once_never_note_the_same_change(tmp_path: Path) -> None:
    """Each thread has a separate table, as workers have."""
    name, steps = "0x7", 200
    FilterTable(str(tmp_path)).add(name, StoredFilter("blocks", "0", 0))

    def poll(_: int) -> list[int]:
        table, given = FilterTable(str(tmp_path)), []
        while (found := patiently(table, name)).cursor != str(steps):
            following = str(int(found.cursor) + 1)
            with suppress(TooManyWaiting):  # like a client that retries
                if table.move(name, found, following, 0):
                    given.append(int(following))
        return given

    with ThreadPoolExecutor(4) as pool:
        given = [each for of_one in pool.map(poll, range(4)) for each in of_one]
    assert sorted(given) == list(range(1, steps + 1))


def test_a_worker_that_is_stopped_with_a_filter_in_hand_stops_no_other(workers: Workers) -> None:
    name = workers.one.ask("eth_newBlockFilter")
    with (workers.folder / name).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = error(-32005, "too many requests are waiting, try again later")
        with thresholds(filter_wait=0):
            assert workers.other.ask("eth_getFilterChanges", name) == refused
    assert workers.other.ask("eth_getFilterChanges", name) == []


def test_a_file_that_a_killed_worker_left_is_no_filter(workers: Workers) -> None:
    name = workers.one.ask("eth_newBlockFilter")
    (workers.folder / name).write_bytes(b"\x93")
    workers.now[0] = (workers.folder / name).stat().st_mtime
    assert workers.other.ask("eth_getFilterChanges", name) == NOT_FOUND
