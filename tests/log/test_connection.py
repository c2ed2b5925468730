"""Servers that may hold a log: their version, TLS, users, and stream."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.errors import BadLogStream, LogServerTooOld, LogUnreachable
from foreblock.log.connection import LogConnection, LogServers
from foreblock.log.stream_settings import LogSubjects, check_version, differences, new_stream
from support.each_case import each_case
from support.servers.log_nodes import Node, node, retried
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE, poll_until

MAIN = LogSubjects("main")


@pytest.mark.parametrize("version", ["2.12.0", "2.12.0-RC.1", "2.15.2", "v3.0.1"])
def test_a_new_server_is_taken(version: str) -> None:
    check_version(version)


@each_case("version", ["2.9.10", "2.11.9", "1.20.0", "", "new"])
def test_an_old_server_is_refused(version: str) -> None:
    with pytest.raises(LogServerTooOld, match=r"too old: the log needs 2\.12 or newer"):
        check_version(version)


def test_an_old_server_is_refused_when_it_is_connected_to(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        connection = LogConnection(LogServers([server.url], MAIN), "test")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LogServerTooOld, match=r"needs 99\.0 or newer"):
                await connection.open()
        await connection.close()

    monkeypatch.setattr("foreblock.log.stream_settings.NEEDED_VERSION", (99, 0))
    asyncio.run(run())


def test_the_stream_is_made_as_specified(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as first, node(server.url) as second:
            answer = await first.connection.ask_jetstream("STREAM.INFO.FB_main")
            found = answer.fields["config"]
            assert found.items() >= new_stream(MAIN, 1).items()
            assert found["max_age"] == 24 * 3600 * 10**9
            assert found["max_bytes"] == 16 << 30
            assert found["duplicate_window"] == 120 * 10**9
            await second.connection.check_stream()

    asyncio.run(run())


def test_a_stream_with_other_settings_is_refused_with_all_that_is_wrong(
    server: NatsServer,
) -> None:
    async def run() -> None:
        async with node(server.url, make=False) as found:
            wrong = new_stream(MAIN, 1) | {"allow_direct": False, "discard": "new"}
            await retried_request(found, wrong)
            with pytest.raises(BadLogStream) as refused:
                await found.connection.make_stream(1)
            assert str(refused.value) == (
                "the stream FB_main cannot be the log: discard is new and must be old;"
                " allow_direct is false and must be true"
            )

    async def retried_request(found: Node, settings: dict[str, object]) -> None:
        async def ask() -> None:
            await found.connection.ask_jetstream("STREAM.CREATE.FB_main", settings)

        await retried(ask)

    asyncio.run(run())


def test_what_an_operator_may_choose_is_no_difference() -> None:
    chosen = new_stream(MAIN, 3) | {"max_age": 1, "max_bytes": -1, "compression": "s2"}
    assert differences(chosen, MAIN) == []
    assert differences({}, MAIN)[0] == "name is unset and must be FB_main"


USERS = """
authorization { users: [
  { user: writer, password: w, permissions: { publish: ">", subscribe: ">" } }
  { user: replica, password: r, permissions: {
      publish: ["$JS.API.STREAM.INFO.FB_main", "$JS.API.DIRECT.GET.FB_main",
                "fb.main.ask.*", "fb.main.submit.*"]
      subscribe: ["fb.main.log", "fb.main.head", "fb.main.nonce", "_INBOX.>"] } }
] }
"""


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "guarded", more=USERS)
    found.start()
    yield found
    found.kill()


def test_a_replica_may_follow_and_not_write(guarded: NatsServer) -> None:
    address = guarded.url.removeprefix("nats://")

    async def run() -> None:
        async with (
            node(f"nats://writer:w@{address}") as writer,
            node(f"nats://replica:r@{address}", make=False) as replica,
            replica.following() as task,
        ):
            await replica.connection.check_stream()
            await writer.write(b"first")
            await replica.until_level(writer, task)
            writing = asyncio.create_task(replica.write(b"forbidden", epoch=9))
            await poll_until(lambda: replica.appender.waits)
            writing.cancel()
            await asyncio.wait([writing])
            await writer.write(b"second")
            await replica.until_level(writer, task)
            assert (await writer.connection.state()).last == 2

    asyncio.run(run())


TLS = """
tls {{ cert_file: "{folder}/cert.pem", key_file: "{folder}/key.pem" }}
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a self-signed certificate for 127.0.0.1."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl: TLS of the log is not tested")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder


def test_tls_with_an_authority_of_ones_own(tmp_path: Path, certificate: Path) -> None:
    server = NatsServer(tmp_path / "tls", more=TLS.format(folder=certificate))
    server.start()

    async def run() -> None:
        servers = LogServers([server.url], MAIN, ca=str(certificate / "cert.pem"))
        connection = LogConnection(servers, "test")
        async with asyncio.timeout(PATIENCE):
            await connection.open()
        await retried(lambda: connection.make_stream(1))
        await connection.close()

    try:
        asyncio.run(run())
    finally:
        server.kill()


def test_a_server_without_tls_is_refused_where_it_is_required(
    server: NatsServer, certificate: Path
) -> None:
    async def run() -> None:
        servers = LogServers([server.url], MAIN, ca=str(certificate / "cert.pem"))
        connection = LogConnection(servers, "test")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(LogUnreachable, match="does not use TLS"):
                await connection.open()
        await connection.close()

    asyncio.run(run())


def test_the_next_server_is_taken_when_one_dies(tmp_path: Path) -> None:
    """Two servers of one cluster, each with its own port; the connection moves."""
    servers = [NatsServer(tmp_path / name, name=name) for name in ("one", "two")]
    for each in servers:
        each.start()

    async def run() -> None:
        urls = [each.url for each in servers]
        connection = LogConnection(LogServers(urls, MAIN), "test")
        again = asyncio.Event()
        connection.reconnected.append(again.set)
        async with asyncio.timeout(PATIENCE):
            await connection.open()
            url = connection.client.connected_url
            assert url is not None
            next(each for each in servers if each.port == url.port).kill()
            await again.wait()
        assert connection.is_connected
        await connection.close()

    try:
        asyncio.run(run())
    finally:
        for each in servers:
            each.kill()


def test_a_server_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "late")

    async def run() -> None:
        connection = LogConnection(LogServers([server.url], MAIN), "test")
        opening = asyncio.create_task(connection.open())
        await poll_until(lambda: bool(connection.last_error))
        server.start()
        async with asyncio.timeout(PATIENCE):
            await opening
        await connection.close()

    try:
        asyncio.run(run())
    finally:
        server.kill()


def test_no_server_is_looked_for_after_the_end(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Python 3.12 a cancellation is lost if it comes as an attempt ends."""

    async def run() -> None:
        connection = LogConnection(LogServers([server.url], MAIN), "test")
        await connection.open()
        client, lost, begun = connection.client, [0], asyncio.Event()

        async def lose_a_cancellation(_: object) -> None:
            begun.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                lost[0] += 1
                if lost[0] > 1:
                    raise
                raise ConnectionRefusedError from None

        monkeypatch.setattr(client, "_connect_to_server", lose_a_cancellation)
        server.kill()
        await begun.wait()
        await connection.close()
        assert client._reconnection_task is not None
        assert client._reconnection_task.done()

    asyncio.run(run())


def test_a_cancellation_that_comes_with_a_failure_ends_the_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.11 lets `wait_for` raise the failure instead of the cancellation."""

    async def connect() -> None:
        connection = LogConnection(LogServers(["nats://127.0.0.1:1"], MAIN), "test")
        opening = asyncio.create_task(connection.open())

        async def refuse(*_given: object, **_named: object) -> None:
            opening.cancel()
            raise ConnectionRefusedError

        monkeypatch.setattr(asyncio, "open_connection", refuse)
        done, _ = await asyncio.wait({opening}, timeout=PATIENCE)
        assert done, "it continues although it was cancelled"
        assert opening.cancelled()

    asyncio.run(connect())
