"""Delivery to many subscribers: through reorganisations, from several workers, in turns."""

import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec import Raw

from foreblock.ledger.reading.events import BlockSealed, Event
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods.events.commit_watch import CommitWatch, last_commit
from foreblock.methods.events.flashblock_kinds import (
    FlashblockTransactions,
    TransactionsWanted,
)
from foreblock.methods.events.kinds import SEALED, Wanted
from foreblock.methods.events.log_kinds import LogKind, read_wanted
from foreblock.scheduling.steps import Steps
from foreblock.service.network_views import Service, Shared, make_scheduler
from foreblock.settings import Settings
from support.chains.following import Following, Truth
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.in_loop import run, turns, until
from support.servers.long_work import thresholds
from support.servers.sessions import Connection

Json = Any
T = TypeVar("T")
ADDED = "0x" + COUNTER.hex()


class Worker:
    """The service of one worker."""

    def __init__(self, ledger: Ledger) -> None:
        options = Settings(dialect="ethereum")
        self.scheduler = make_scheduler(options)
        self.service = Service(ledger, options, self.scheduler)

    def connect(self) -> Connection:
        return Connection(self.service.open_session)


def in_loop(body: Callable[[], Awaitable[None]], *workers: Worker) -> None:
    run(body)
    for each in workers:
        each.scheduler.close()


def test_workers_tell_the_same_of_a_reorganisation(tmp_path: Path) -> None:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    following.canonical(*truth.grow(2, "both"))
    workers = [Worker(following.ledger), Worker(following.ledger)]

    async def body() -> None:
        clients = [worker.connect() for worker in workers]
        for client in clients:
            await client.ask("eth_subscribe", "logs")
        await turns()
        ours = truth.grow(2, "ours")
        following.canonical(*ours)
        before = [await client.notifications(2) for client in clients]
        truth.rewind(2)
        theirs = truth.grow(3, "theirs")
        following.follower.canonical(theirs[0], theirs[1:])
        following.run_until_idle()
        after = [await client.notifications(5) for client in clients]
        for told in (before, after):
            results = [[(each["result"], each["cursor"]) for each in one] for one in told]
            assert results[0] == results[1]
        removed = [each["result"] for each in after[0][:2]]
        assert removed == [each["result"] | {"removed": True} for each in reversed(before[0])]
        added = [each["result"] for each in after[0][2:]]
        assert [each["blockHash"] for each in added] == [f"0x{each.hash.hex()}" for each in theirs]
        assert not any(each["removed"] for each in added)

    in_loop(body, *workers)
    following.close()
    truth.close()


def test_a_client_that_saw_a_part_of_a_removed_block_takes_back_that_part(tmp_path: Path) -> None:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    following.canonical(*truth.grow(1, "both"))
    worker = Worker(following.ledger)

    async def body() -> None:
        client = worker.connect()
        await client.ask("eth_subscribe", "logs")
        await turns()
        job = truth.job("three logs", [[(0, 1), (1, 3), (2, 5)]])
        following.canonical(truth.seal(job))
        told = await client.notifications(3)
        client.session.ended()
        truth.rewind(1)
        following.canonical(*truth.grow(2, "theirs"))
        again = worker.connect()
        await again.ask("eth_subscribe", "logs", {"cursor": told[1]["cursor"]})
        notices = [each["result"] for each in await again.notifications(4)]
        assert notices[:2] == [each["result"] | {"removed": True} for each in reversed(told[:2])]
        assert [each["removed"] for each in notices] == [True, True, False, False]

    in_loop(body, worker)
    following.close()
    truth.close()


def test_quiet_flashblocks_count_once_each_also_for_who_resumes(tmp_path: Path) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    worker = Worker(Ledger(chain.store, clock=chain.clock))

    def quiet() -> None:
        chain.writer.extend(chain.block, quietly=True)

    async def body() -> None:
        client = worker.connect()
        await client.ask("eth_subscribe", "newFlashblocks")
        await turns()
        chain.extend([chain.pay(COUNTER, 1)])
        quiet()
        quiet()
        chain.extend([chain.pay(COUNTER, 2)])
        quiet()
        chain.begin()
        quiet()
        told = await client.notifications(7)
        sizes = [len(each["result"]["transactions"]) for each in told]
        assert sizes == [2, 2, 2, 3, 3, 1, 1]
        for seen, each in enumerate(told[:-1]):
            again = worker.connect()
            await again.ask("eth_subscribe", "newFlashblocks", {"cursor": each["cursor"]})
            rest = await again.notifications(len(told) - seen - 1)
            assert [one["cursor"] for one in rest] == [one["cursor"] for one in told[seen + 1 :]]
            await turns()
            assert again.channel.sent == []

    in_loop(body, worker)
    chain.close()


def test_an_event_is_rendered_once_for_all_who_want_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    worker = Worker(Ledger(chain.store, clock=chain.clock))
    rendered: list[list[Wanted]] = []
    render = FlashblockTransactions.render

    def counted(
        self: FlashblockTransactions, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> object:
        rendered.append(list(wanted))
        return render(self, view, event, wanted)

    monkeypatch.setattr(FlashblockTransactions, "render", counted)

    async def body() -> None:
        clients = [worker.connect() for _ in range(50)]
        for client in clients:
            await client.ask("eth_subscribe", "newFlashblockTransactions", True)
        await turns()
        chain.extend([chain.pay(COUNTER, 1)])
        told = [(await client.notifications(1))[0] for client in clients]
        assert len({each["subscription"] for each in told}) == 50
        assert all(each["result"] == told[0]["result"] for each in told)
        assert rendered == [[TransactionsWanted(full=True)]]

    in_loop(body, worker)
    chain.close()


def test_many_subscribers_are_served_in_turns_with_other_work(tmp_path: Path) -> None:
    """Another task runs in the loop while thousands of notifications are sent."""
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    worker = Worker(Ledger(chain.store, clock=chain.clock))

    async def body() -> None:
        clients = [worker.connect() for _ in range(100)]
        for client in clients:
            await client.ask("eth_subscribe", "newFlashblockTransactions")
        await turns()
        chain.extend([chain.pay(value=value) for value in range(1, 21)])
        progress: Counter[int] = Counter()

        def sent() -> int:
            return sum(len(client.channel.sent) for client in clients)

        def look() -> bool:
            progress[sent()] += 1
            return sent() == 2_000

        await until(look)
        assert len(progress) > 10, "others ran between"
        for client in clients:
            hashes = [json.loads(each)["params"]["result"] for each in client.channel.sent]
            assert len(set(hashes)) == 20

    with thresholds(notify_seconds=0.0):
        in_loop(body, worker)
    chain.close()


def test_a_subscriber_whose_events_are_pruned_is_closed_with_the_reason(tmp_path: Path) -> None:
    chain = PreconfirmingChain(tmp_path / "store", keep_partials=2)
    chain.begin()
    worker = Worker(Ledger(chain.store, clock=chain.clock))

    async def body() -> None:
        client = worker.connect()
        await client.ask("eth_subscribe", "newFlashblockTransactions")
        heads = worker.connect()
        await heads.ask("eth_subscribe", "newHeads")
        await turns()
        for _ in range(8):  # without a turn of the loop in between
            chain.begin()
            chain.run_until_idle()
        assert len(await heads.notifications(8)) == 8
        await until(lambda: client.channel.closed)
        assert client.channel.closed == (1013, "events were missed, subscribe again")
        assert client.channel.sent == []

    in_loop(body, worker)
    chain.close()


def test_who_resumes_is_one_of_the_others_once_it_has_caught_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    worker = Worker(Ledger(chain.store, clock=chain.clock))
    rendered: list[Event] = []
    render = LogKind.render

    def counted(
        self: LogKind, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> object:
        rendered.append(event)
        return render(self, view, event, wanted)

    monkeypatch.setattr(LogKind, "render", counted)

    async def body() -> None:
        clients = [worker.connect() for _ in range(3)]
        await clients[0].ask("eth_subscribe", "pendingLogs")
        await turns()
        for value in range(1, 5):
            chain.extend([chain.pay(COUNTER, value)])
        told = await clients[0].notifications(4)
        for client, seen in ((clients[1], 0), (clients[2], 2)):
            await client.ask("eth_subscribe", "pendingLogs", {"cursor": told[seen]["cursor"]})
            rest = await client.notifications(3 - seen)
            expected = [each["result"] for each in told[seen + 1 :]]
            assert [each["result"] for each in rest] == expected
        await turns()
        rendered.clear()
        chain.extend([chain.pay(COUNTER, 9)])
        last = [(await client.notifications(1))[0]["result"] for client in clients]
        assert last[0] == last[1] == last[2]
        assert len(rendered) == 1

    in_loop(body, worker)
    chain.close()


@pytest.mark.parametrize("size", [10, 2_000])
def test_the_cost_of_an_event_does_not_depend_on_the_filters_that_it_does_not_match(
    tmp_path: Path, size: int
) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    chain.extend([chain.pay(COUNTER, value) for value in range(1, 4)])
    chain.begin()
    kind = LogKind("l", SEALED)

    def join(filters: Iterable[Json]) -> list[Wanted]:
        texts = [json.dumps(each).encode() for each in filters]
        return [kind.join(read_wanted(Raw(text), 0)) for text in texts]

    others = join({"address": [f"0x{number:040x}", "0x" + "77" * 20]} for number in range(size))
    others += join({"topics": [[], f"0x{number:064x}"]} for number in range(100, size))
    others += join({"topics": [f"0x{number:064x}"], "address": ADDED} for number in range(size))
    ours = join([{"address": ADDED}, {}, {"fromBlock": "0x1"}])
    wanted = dict.fromkeys([*others, *ours])
    while not drive(kind.update())[0]:
        pass
    view = Ledger(chain.store, clock=chain.clock).view()
    with thresholds(matched_filters=8):
        found, steps = drive(kind.render(view, BlockSealed(view.latest), wanted))
    view.close()
    chain.close()
    assert set(found) == set(ours)
    assert all(len(notices) == 3 for notices in found.values())
    assert steps < 20, steps


def drive(steps: Steps[T]) -> tuple[T, int]:
    """Return the result of steps, and their number."""
    for count in itertools.count():
        try:
            next(steps)
        except StopIteration as done:
            return done.value, count
    raise AssertionError


def test_a_hint_of_a_commit_is_followed_at_once_and_a_missed_one_is_no_loss(
    tmp_path: Path,
) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    options = Settings(dialect="ethereum")
    scheduler, hints = make_scheduler(options), list[Callable[[], None]]()

    @contextmanager
    def follow(hint: Callable[[], None]) -> Iterator[None]:
        hints.append(hint)
        yield
        hints.remove(hint)

    ledger = Ledger(chain.store, clock=chain.clock)
    commits = CommitWatch(partial(last_commit, ledger.view), follow)
    service = Service(ledger, options, scheduler, shared=Shared(commits=commits))

    async def body() -> None:
        client = Connection(service.open_session)
        with thresholds(commit_poll_seconds=3_600, hinted_poll_seconds=3_600):
            await client.ask("eth_subscribe", "newFlashblockTransactions")
            await until(lambda: bool(hints))
            await turns()
            chain.extend([chain.pay(COUNTER, 1)])
            hints[0]()
            await client.notifications(1)
        with thresholds(commit_poll_seconds=3_600, hinted_poll_seconds=0):
            hints[0]()
            await turns()
            chain.extend([chain.pay(COUNTER, 1)])
            (missed,) = await client.notifications(1)
            # The next one is polled for at the rate of unannounced commits.
            chain.extend([chain.pay(COUNTER, 1)])
            await turns()
            assert client.channel.sent == []
        with thresholds(commit_poll_seconds=0, hinted_poll_seconds=3_600):
            again = Connection(service.open_session)
            resume = {"cursor": missed["cursor"]}
            await again.ask("eth_subscribe", "newFlashblockTransactions", resume)
            (late,), (found,) = await again.notifications(1), await client.notifications(1)
            assert late["cursor"] == found["cursor"]
            chain.extend([chain.pay(COUNTER, 1)])
            await client.notifications(1)
        client.session.ended()
        again.session.ended()
        await until(lambda: not hints)

    run(body)
    scheduler.close()
