"""Nodes of one network that write, stand by and follow, in one process with a real NATS server."""

import asyncio
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from foreblock._engine import Store
from foreblock.bus.commands import Mine
from foreblock.bus.messages import (
    Committed,
    NextNonce,
    PoolNumbers,
    PoolQuery,
    Result,
    failed,
)
from foreblock.cli.log.stream import begin_log, inspect_before, open_store
from foreblock.clock import SystemClock
from foreblock.errors import (
    DifferentGenesis,
    ForeignLog,
    ForkedLog,
    LogBeginsLater,
    RefusedCommand,
    SequencerUnavailable,
)
from foreblock.log import append
from foreblock.log.append import Appender
from foreblock.log.message import NO_LINK, LogMessage
from foreblock.replication.leading import HintPublisher
from foreblock.replication.log_network import FOLLOWS
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.snapshot.server import SnapshotOffers, SnapshotServer
from foreblock.sources.dev_network import DevChainSource
from support.chains.dev_chain import ACCOUNTS, send
from support.servers.dev_processes import package_environment
from support.servers.log_networks import Machine, dev, log, replica, running
from support.servers.log_nodes import node
from support.servers.log_services import tables
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE, poll_until

WRITES = "this node writes"
REFUSED = "snapshot_unusable"
ALICE = ACCOUNTS[0]


async def level(machine: Machine, commit: int) -> None:
    """Wait until its workers have been notified of a commit."""

    def has() -> bool:
        return any(isinstance(each, Committed) and each.commit >= commit for each in machine.heard)

    await machine.until(has)


def last_commit(machine: Machine) -> int:
    return max(each.commit for each in machine.heard if isinstance(each, Committed))


def maintained_tables(data: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """Return the replicated tables of a closed store, with all maintenance done."""
    with Store(str(data), write=True, keep_states=1_800, keep_partials=64) as store:
        store.trie().root()
        while store.maintain(10_000):
            pass
    return tables(data)


def test_a_transaction_reaches_the_writer_and_its_nonce_is_there_first(
    tmp_path: Path, server: NatsServer
) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(replica(tmp_path / "one", server.url)) as one,
            running(replica(tmp_path / "other", server.url)) as other,
        ):
            transaction = send(ALICE, 0)
            one.submit(transaction.raw, ALICE.address)
            await one.until(lambda: Result(1) in one.heard)
            hint = NextNonce("main", ALICE.address, 1)
            assert one.heard.index(hint) < one.heard.index(Result(1))
            await writer.until(lambda: hint in writer.heard)
            await other.until(lambda: hint in other.heard)
            again = send(ALICE, 0, value=2, tip=1)
            one.submit(again.raw, ALICE.address, 2)
            await one.until(lambda: any(getattr(each, "id", 0) == 2 for each in one.heard[-3:]))
            assert Result(2) not in one.heard
            await level(other, last_commit(writer))

    asyncio.run(run())


def test_the_nonce_comes_with_the_answer_where_hints_are_lost(
    tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HintPublisher, "put", lambda *_: None)

    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)),
            running(replica(tmp_path / "one", server.url)) as one,
        ):
            one.submit(send(ALICE, 0).raw, ALICE.address)
            await one.until(lambda: Result(1) in one.heard)
            at = one.heard.index(Result(1))
            assert NextNonce("main", ALICE.address, 1) in one.heard[:at]

    asyncio.run(run())


def test_without_a_writer_a_transaction_is_refused_for_certain(
    tmp_path: Path, server: NatsServer
) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)),
            running(replica(tmp_path / "one", server.url)) as one,
        ):
            await level(one, 3)
        async with running(replica(tmp_path / "one", server.url)) as one:
            await one.until(lambda: bool(one.facts))
            one.submit(send(ALICE, 0).raw, ALICE.address)
            refusal = failed(1, SequencerUnavailable())
            await one.until(lambda: refusal in one.heard)

    asyncio.run(run())


def test_commands_and_the_pool_are_the_writers(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)),
            running(dev(tmp_path / "standby", server.url)) as standby,
        ):
            await standby.until(lambda: "writer reachable" in standby.facts)
            standby.call(1, Mine())
            assert failed(1, RefusedCommand(FOLLOWS)) in standby.heard
            standby.call(2, PoolQuery("all"))
            assert Result(2, PoolNumbers()) in standby.heard

    asyncio.run(run())


def test_a_replica_that_comes_first_waits_for_block_0(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        early = Machine(replica(tmp_path / "replica", server.url))
        opening = asyncio.create_task(early.node.open())
        async with running(dev(tmp_path / "writer", server.url)):
            async with asyncio.timeout(PATIENCE):
                await opening
            assert any(isinstance(each, Committed) for each in early.heard)
            early.node.stop()
            await early.node.run()
            await early.node.close()

    asyncio.run(run())


def test_of_two_that_begin_at_once_one_writes(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "one", server.url)) as one,
            running(dev(tmp_path / "other", server.url)) as other,
        ):
            await one.until(lambda: bool(one.facts))
            await other.until(lambda: "writer reachable" in one.facts + other.facts)
            assert [WRITES in each.facts for each in (one, other)].count(True) == 1
            await level(one, last_commit(other) + 1)
            await level(other, last_commit(one))

    asyncio.run(run())


def test_a_writer_that_stops_is_followed_at_once(tmp_path: Path, server: NatsServer) -> None:
    """And the next one continues with the same numbers, in the open block."""

    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(dev(tmp_path / "standby", server.url)) as standby,
        ):
            await standby.until(lambda: "writer reachable" in standby.facts)
            changes = standby.changes
            writer.node.stop()
            await writer.node.run()
            await writer.node.close()
            await standby.until(lambda: "epoch 2" in standby.facts and WRITES in standby.facts)
            assert standby.changes == changes + 1  # workers drop the nonces of the lost pool
            await level(standby, last_commit(standby) + 3)
            numbers = [each.commit for each in standby.heard if isinstance(each, Committed)]
            assert numbers == sorted(set(numbers))  # several may be reported as one

    asyncio.run(run())


def test_a_store_from_before_the_log_is_copied_to_others(
    tmp_path: Path, server: NatsServer
) -> None:
    """Its log begins with a commit that others cannot follow."""
    alone = structs.replace(dev(tmp_path / "writer", server.url), log=None)
    source = DevChainSource(alone, SystemClock(), FeedSink(lambda _: None, lambda _: None))
    source.tick()
    before = source.last_commit
    source.close()
    offers, listening = SnapshotOffers(), socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    copies = SnapshotServer(listening, offers)
    copies.start()

    async def run() -> None:
        writer = dev(tmp_path / "writer", server.url)
        async with running(writer) as first:
            await level(first, before + 3)
            with pytest.raises(LogBeginsLater) as raised:
                await Machine(replica(tmp_path / "none", server.url)).node.open()
            assert raised.value.first == before
        from_there = replica(tmp_path / "replica", server.url, snapshot_from=[url])
        early = Machine(from_there)  # it retries until a snapshot is offered
        opening = asyncio.create_task(early.node.open())
        await early.until(lambda: not opening.done())
        async with running(writer, offers) as again:
            await level(again, before + 6)
            await opening
            await early.node.close()
            async with running(from_there) as other:
                await level(other, last_commit(again))

    try:
        asyncio.run(run())
    finally:
        copies.stop()


def test_a_node_that_waits_for_a_copy_can_be_stopped(tmp_path: Path, server: NatsServer) -> None:
    alone = structs.replace(dev(tmp_path / "writer", server.url), log=None)
    DevChainSource(alone, SystemClock(), FeedSink(lambda _: None, lambda _: None)).close()

    async def run() -> None:
        async with running(dev(tmp_path / "writer", server.url)):
            nobody = ["http://127.0.0.1:1"]
            waiting = Machine(replica(tmp_path / "none", server.url, snapshot_from=nobody))
            with capture_logs() as logs:
                opening = asyncio.create_task(waiting.node.open())
                await poll_until(lambda: [each["event"] for each in logs].count(REFUSED) > 1)
            waiting.node.stop()
            await opening
            await waiting.node.close()

    asyncio.run(run())


def test_another_history_is_refused_and_what_was_there_is_served(
    tmp_path: Path, server: NatsServer
) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(replica(tmp_path / "replica", server.url)) as follower,
        ):
            await level(follower, 5)
            await level(writer, 5)
        has = follower.commit()
        other = NatsServer(tmp_path / "other")
        other.start()
        try:
            async with running(dev(tmp_path / "stranger", other.url)) as stranger:
                await level(stranger, has + 3)
                again = Machine(replica(tmp_path / "replica", other.url))
                await again.node.open()
                with pytest.raises((ForkedLog, ForeignLog)):
                    await again.node.run()
                await again.node.close()
        finally:
            other.kill()
        assert follower.commit() == has

    asyncio.run(run())


def test_what_is_here_is_served_before_there_is_a_log(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)),
            running(replica(tmp_path / "replica", server.url)) as first,
        ):
            await level(first, 3)
        server.kill()
        async with running(replica(tmp_path / "replica", server.url)) as again:
            await again.until(lambda: "not connected yet" in again.facts)
            again.submit(send(ALICE, 0).raw, ALICE.address)
            assert failed(1, SequencerUnavailable()) in again.heard

    asyncio.run(run())


def test_a_standby_of_another_chain_does_not_start(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        async with running(dev(tmp_path / "writer", server.url)):
            with pytest.raises(DifferentGenesis):
                await Machine(dev(tmp_path / "standby", server.url, chain_id=5)).node.open()

    asyncio.run(run())


def test_a_writer_ends_that_waits_for_its_log(tmp_path: Path, server: NatsServer) -> None:
    async def run() -> None:
        async with running(dev(tmp_path / "writer", server.url)) as writer:
            await level(writer, 3)
            server.kill()
            await writer.until(lambda: "waits for the log" in writer.facts)
        with Store(str(tmp_path / "writer"), write=True):
            pass  # the lock is free

    asyncio.run(run())


def test_without_a_log_nothing_of_nats_is_loaded() -> None:
    code = (
        "import sys; from foreblock.service import writer, worker; from foreblock.cli import dev;"
        "print([each for each in ('nats', 'zstandard', 'foreblock.log') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=package_environment(),
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_a_first_writer_ends_that_waits_for_its_log(tmp_path: Path, server: NatsServer) -> None:
    """Its thread waits for the loop in the commit of block 0."""

    async def run() -> None:
        machine = Machine(dev(tmp_path / "writer", server.url))
        refused = asyncio.Event()
        append = Appender.append

        async def held(*_: object) -> None:
            refused.set()
            await asyncio.Event().wait()

        Appender.append = held  # type: ignore[method-assign,assignment]
        try:
            opening = asyncio.create_task(machine.node.open())
            async with asyncio.timeout(PATIENCE):
                await refused.wait()
                opening.cancel()
                await asyncio.wait([opening])
        finally:
            Appender.append = append  # type: ignore[method-assign]
        with Store(str(tmp_path / "writer"), write=True) as store, store.view() as view:
            assert view.heads.latest is None

    asyncio.run(run())


def test_commits_that_the_log_has_lost_are_appended_again(
    tmp_path: Path, server: NatsServer
) -> None:
    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(replica(tmp_path / "replica", server.url)) as other,
        ):
            await level(other, 3)
            server.kill()
            saved = server.save()
            server.start()
            await level(other, last_commit(writer) + 3)
            server.kill()
            server.restore(saved)  # as after a power failure, without a sync
            lost = last_commit(writer)
            server.start()
            await level(other, lost + 3)
            await other.until(lambda: "epoch 1" in other.facts)
            numbers = [each.commit for each in other.heard if isinstance(each, Committed)]
            assert numbers == sorted(set(numbers))  # several may be reported as one

    asyncio.run(run())


FOREIGN = LogMessage(1, 5, 6, b"f" * 16, b"p" * 32, b"foreign")


def test_nothing_that_is_published_stops_a_node(tmp_path: Path, server: NatsServer) -> None:
    """Neither noise nor foreign commits; and all stores are equal afterwards."""
    forged = replace(FOREIGN, epoch=2, previous=NO_LINK)
    spoilt = (b"7 bytes", b"", FOREIGN.encode(), FOREIGN.encode()[:-2], forged.encode())

    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(replica(tmp_path / "replica", server.url)) as follower,
            running(dev(tmp_path / "standby", server.url)) as standby,
        ):
            for message in spoilt:
                await writer.publish(message)
                await level(follower, last_commit(writer) + 2)
                await level(standby, last_commit(writer))
            for each in (writer, follower, standby):
                await each.until(lambda each=each: "5 messages skipped" in each.facts)  # type: ignore[misc]
            assert "epoch 1," in writer.facts
            await writer.stop()
            await standby.until(lambda: WRITES in standby.facts)
            await standby.stop()
            await level(follower, last_commit(standby))

    asyncio.run(run())
    assert maintained_tables(tmp_path / "replica") == maintained_tables(tmp_path / "standby")


def test_a_standby_takes_a_snapshot_after_the_log_was_begun_anew(
    tmp_path: Path, server: NatsServer
) -> None:
    """Its store is ahead of the one that the log begins with."""
    offers, listening = SnapshotOffers(), socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    copies = SnapshotServer(listening, offers)
    copies.start()
    alone = dev(tmp_path / "standby", server.url)
    behind = structs.replace(alone, log=log(server.url, snapshot_from=[url]))

    async def run() -> None:
        async with running(dev(tmp_path / "writer", server.url)) as writer:
            await level(writer, 3)
            async with running(alone) as standby:
                await level(standby, 3)
        async with running(alone) as standby:  # it continues alone
            await level(standby, last_commit(writer) + 5)
        await begin(tmp_path / "writer")
        async with (
            running(dev(tmp_path / "writer", server.url), offers) as writer,
            running(behind) as standby,
        ):
            await level(writer, 1)
            await level(standby, last_commit(writer) + 2)
            await standby.until(lambda: "writer reachable" in standby.facts)

    async def begin(data: Path) -> None:
        async with node(server.url) as other:
            with open_store(data) as store:
                before = await inspect_before(other.connection, store)
                await begin_log(other.connection, store, before, 1)

    try:
        asyncio.run(run())
    finally:
        copies.stop()
    assert (tmp_path / "standby" / "diverged").exists()


def test_a_lost_stream_is_created_again_by_the_writer(
    tmp_path: Path, server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "_LISTEN_SECONDS", 0.3)

    async def run() -> None:
        async with (
            running(dev(tmp_path / "writer", server.url)) as writer,
            running(replica(tmp_path / "replica", server.url)) as follower,
            running(dev(tmp_path / "standby", server.url)) as standby,
        ):
            await level(writer, 3)
            await level(follower, last_commit(writer) + 2)
            await level(standby, last_commit(writer))
            server.kill()
            server.restore(server.folder / "empty")
            server.start()
            await level(follower, last_commit(writer) + 2)
            await level(standby, last_commit(writer))
            await standby.stop()
            await writer.stop()
            await level(follower, last_commit(writer))

    (server.folder / "empty").mkdir()
    asyncio.run(run())
    assert maintained_tables(tmp_path / "replica") == maintained_tables(tmp_path / "writer")
