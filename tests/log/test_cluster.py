"""A log on three servers, of which one at a time is killed: nothing is lost, doubled or forked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.servers.log_nodes import Node, looked_until, node
from support.servers.nats_servers import NatsServer, nats_cluster


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[NatsServer]]:
    found = nats_cluster(tmp_path)
    for each in found:
        each.start()
    yield found
    for each in found:
        each.kill()


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
            await looked_until(lambda: writer.connection.is_connected)
            async with node(*urls, replicas=3) as fresh:
                await fresh.catch_up()
                assert fresh.links == writer.links
                assert fresh.position == writer.position

    asyncio.run(run())


def test_a_cluster_with_little_room_keeps_less(tmp_path: Path) -> None:
    servers = nats_cluster(tmp_path, storage="2GB")
    for each in servers:
        each.start()

    async def run() -> None:
        async with node(*(each.url for each in servers), replicas=3) as writer:
            answer = await writer.connection.ask_jetstream("STREAM.INFO.FB_main")
            assert answer.fields["config"]["max_bytes"] == 1 << 30

    try:
        asyncio.run(run())
    finally:
        for each in servers:
            each.kill()
