"""`foreblock log`, against a real NATS server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.clock import SystemClock
from foreblock.errors import ForeignLog, LogBeginsLater
from foreblock.log.message import LogMessage
from foreblock.log.node_messages import Announcer
from foreblock.log.position import LogPosition
from support.chains.checked_chains import logged_chain
from support.servers import command
from support.servers.log_nodes import BOOT, Node, node
from support.servers.nats_servers import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store that was part of a log, in epoch 3."""
    chain, _ = logged_chain(tmp_path / "store")
    chain.store.close()
    return tmp_path / "store"


def run(*arguments: object, answer: str = "") -> command.Done:
    return command.run("log", *arguments, answer=answer)


def told(*arguments: object) -> dict[str, object]:
    done = run(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    found: dict[str, object] = json.loads(done.stdout)
    return found


def written(server: NatsServer, count: int) -> Node:
    """A log with some commits."""

    async def write() -> Node:
        async with node(server.url) as writer:
            for number in range(count):
                await writer.write(b"commit %d" % number * (1 + 400_000 * (number == 2)), 7)
            return writer

    return asyncio.run(write())


def test_a_log_is_shown_with_its_last_commits(server: NatsServer) -> None:
    writer = written(server, 5)
    found = told("show", f"--log={server.url}", "--last=3")
    assert (found["stream"], found["messages"], found["last"]) == ("FB_main", 5, 5)
    assert (found["replicas"], found["max_age_seconds"], found["wrong"]) == (1, 86_400, "")
    commits = found["commits"]
    assert isinstance(commits, list)
    shown = [(each["sequence"], each["epoch"], each["commit"], each["link"]) for each in commits]
    links = [link.hex() for link in writer.links]
    assert shown == [(5, 7, 5, links[4]), (4, 7, 4, links[3]), (3, 7, 3, links[2])]
    assert commits[2]["unpacked"] > 3_000_000 > commits[2]["bytes"] > 84
    assert commits[0]["writer"]
    assert commits[0]["stored_at"].startswith("20")
    assert found["writer"] is None
    assert "no responders" in str(found["silence"])

    text = run("show", f"--log={server.url}").stdout
    assert "FB_main on 1 server" in text
    assert "1 to 5, 5 messages" in text
    assert "24 h, 16.0 GiB" in text
    assert f"{links[4][:12]}…" in text
    assert "silent: " in text


def test_the_writer_is_named_while_it_answers(server: NatsServer, data: Path) -> None:
    async def announced() -> None:
        async with node(server.url) as writer:
            await writer.write(b"first", 7)
            announcer = Announcer(
                writer.connection, writer.appender, writer.position, BOOT, SystemClock()
            )
            answering = asyncio.create_task(announcer.run())
            found = await asyncio.to_thread(told, "show", f"--log={server.url}")
            assert found["writer"] is not None
            assert found["writer"]["epoch"] == 7  # type: ignore[index]
            refused = await asyncio.to_thread(run, "begin", data, f"--log={server.url}", "--yes")
            assert refused.returncode == 1
            assert refused.stderr == (
                "foreblock: the writer of epoch 7 is running, at commit 1: stop it first\n"
            )
            assert (await writer.connection.state()).last == 1
            answering.cancel()

    asyncio.run(announced())


def test_a_log_is_begun_anew_and_nothing_else_fits_it(server: NatsServer, data: Path) -> None:
    old = written(server, 5)
    with Store(str(data)) as store, store.view() as view:
        before, latest = view.heads.commit, view.heads.latest
    begun = told("begin", data, f"--log={server.url}", "--yes")
    assert (begun["epoch"], begun["commit"], begun["sequence"]) == (8, before + 1, 1)
    with Store(str(data)) as store, store.view() as view:
        assert (view.heads.commit, view.heads.latest) == (before + 1, latest)
        assert view.log_row is not None
        assert (view.log_row.epoch, view.log_row.sequence) == (8, 1)
        assert begun["link"] == view.log_row.link.hex()
        assert begun["log_id"] == view.heads.store_id.hex()
        here = LogPosition(8, view.log_row.link, 1, before + 1, view.heads.store_id)

    async def follow() -> None:
        async with node(server.url, make=False) as replica:
            with pytest.raises(LogBeginsLater):
                await replica.follower().catch_up()
            replica.position = old.position
            with pytest.raises(ForeignLog):
                await replica.follower().relocate()
            replica.position = here
            await replica.follower().catch_up()
            assert replica.position == here
            found = await replica.reader.commit_covering(1)
            assert found is not None
            assert (found.message.before, found.message.body) == (before, b"")

    asyncio.run(follow())
    # And again, in a higher epoch.
    assert told("begin", data, f"--log={server.url}", "--yes")["epoch"] == 9


def test_a_log_is_shown_and_begun_whatever_it_holds(server: NatsServer, data: Path) -> None:
    highest = LogMessage((1 << 64) - 1, 3, 4, b"f" * 16, b"p" * 32, b"").encode()
    writer = written(server, 3)
    spoilt = (b"7 bytes", b"", highest, highest[:-3], b"FBLC\x09" + bytes(200))

    async def publish() -> None:
        async with node(server.url) as other:
            for message in spoilt:
                await other.connection.request(other.connection.subjects.log, message)

    asyncio.run(publish())
    found = told("show", f"--log={server.url}")
    commits, foreign = found["commits"], found["foreign"]
    assert isinstance(commits, list)
    assert isinstance(foreign, list)
    assert [each["sequence"] for each in commits] == [6, 3, 2, 1]
    assert [each["first"] for each in foreign] == [8, 7, 5, 4]
    assert "7 bytes are too few" in foreign[-1]["why"]
    text = run("show", f"--log={server.url}").stdout
    assert "sequence 4: malformed commit at sequence 4" in text
    assert f"epoch 7, commit {writer.position.commit}" in text
    assert told("begin", data, f"--log={server.url}", "--yes")["epoch"] == 8


def test_it_is_asked_before_anything_is_lost(server: NatsServer, data: Path) -> None:
    with Store(str(data)) as store, store.view() as view:
        before = view.heads.commit
    written(server, before + 4)
    refused = run("begin", data, f"--log={server.url}", answer="n\n")
    assert refused.returncode == 1
    assert f"This store is at commit {before}." in refused.stderr
    assert f"FB_main has {before + 4} messages" in refused.stderr
    assert "4 commits of the log are not in this store and will be lost." in refused.stderr
    assert told("show", f"--log={server.url}")["messages"] == before + 4
    done = run("begin", data, f"--log={server.url}", answer="y\n")
    assert done.returncode == 0
    assert done.stdout.startswith("begun      log ")
    assert told("show", f"--log={server.url}")["messages"] == 1


def test_a_store_in_use_and_a_log_that_is_not_there_are_refused(
    server: NatsServer, data: Path, tmp_path: Path
) -> None:
    with Store(str(data), write=True):
        busy = command.run_apart("log", "begin", data, f"--log={server.url}", "--yes")
        assert (busy.returncode, "already being written" in busy.stderr) == (1, True)
    (tmp_path / "empty").mkdir()
    missing = run("begin", tmp_path / "empty", f"--log={server.url}", "--yes")
    assert (missing.returncode, "no store at" in missing.stderr) == (1, True)
    assert list((tmp_path / "empty").iterdir()) == []
    absent = run("show", f"--log={server.url}")
    assert (absent.returncode, "FB_main cannot be the log" in absent.stderr) == (1, True)
    bad = run("show", "--log=http://x")
    assert (bad.returncode, "expected nats://HOST:PORT" in bad.stderr) == (2, True)
    server.kill()
    gone = run("show", f"--log={server.url}")
    assert (gone.returncode, "the log does not respond" in gone.stderr) == (1, True)


def test_no_password_is_printed(server: NatsServer) -> None:
    server.kill()
    for url in (server.url, server.url.replace("nats://", "http://")):
        failed = run("show", "--log=" + url.replace("://", "://user:S3cretPass@"))
        assert failed.returncode == (1 if url == server.url else 2)
        assert "127.0.0.1" in failed.stderr
        assert "S3cretPass" not in failed.stderr + failed.stdout
