"""A log on three servers, one of which at a time is killed: nothing is lost, doubled or forked."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from support.servers.log_nodes import Node, node
from support.servers.nats_servers import NatsServer, nats_cluster
from support.servers.waiting import poll_until


@contextmanager
def started(servers: list[NatsServer]) -> Iterator[list[NatsServer]]:
    try:
        for each in servers:
            each.start()
        yield servers
    finally:
        for each in servers:
            each.kill()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[NatsServer]]:
    with started(nats_cluster(tmp_path)) as found:
        yield found


async def leader(of: Node) -> str:
    """The name of the server that leads the stream."""
    answer = await of.connection.ask_jetstream("STREAM.INFO.FB_main")
    return str(answer.fields["cluster"]["leader"])


def test_the_leader_is_killed_and_the_writer_goes_on(servers: list[NatsServer]) -> None:
    async def run() -> None:
        urls = [each.url for each in servers]
        async with (
            node(*urls, replicas=3) as writer,
            node(*urls, replicas=3) as replica,
            replica.following() as task,
        ):
            for number in range(10):
                await writer.write(b"before %d" % number)
            leading = await leader(writer)
            killed = next(each for each in servers if each.folder.name == leading)
            appending = asyncio.create_task(writer.write(Random(5).randbytes(3_000_000)))
            await asyncio.sleep(0)
            killed.kill()
            await appending
            for number in range(10):
                await writer.write(b"after %d" % number)
            await replica.until_level(writer, task)
            killed.start()
            await poll_until(lambda: writer.connection.is_connected)
            async with node(*urls, replicas=3) as fresh:
                await fresh.catch_up()
                assert fresh.links == writer.links
                assert fresh.position == writer.position

    asyncio.run(run())


@pytest.mark.parametrize("size", [1, 3])
def test_servers_with_little_room_keep_less(tmp_path: Path, size: int) -> None:
    async def run(urls: list[str]) -> None:
        async with node(*urls, replicas=size) as writer:
            answer = await writer.connection.ask_jetstream("STREAM.INFO.FB_main")
            assert answer.fields["config"]["max_bytes"] == 1 << 30

    with started(nats_cluster(tmp_path, size, storage="2GB")) as servers:
        asyncio.run(run([each.url for each in servers]))
