"""Commands over a real socket: answered when every worker has been notified of the change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.commands import Mine, SetAccount
from foreblock.bus.frames import LONGEST, MOST_BYTES
from foreblock.bus.messages import BusCall, BusRequest, NextNonce
from foreblock.errors import (
    BusMessageTooLong,
    CommandUnknown,
    RefusedCommand,
    SequencerUnavailable,
)
from support.servers.in_loop import closed, listening
from support.servers.waiting import PATIENCE

ALICE = b"\1" * 20


class Chain:
    """Executes commands, and notifies all workers before it replies."""

    def __init__(self) -> None:
        self.calls: list[BusCall] = []
        self.silent = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.exchange = BusServer(self.on_call, lambda: [NextNonce("main", ALICE, 7)])

    def on_call(self, request: BusRequest) -> None:
        self.calls.append(request.call)
        if not self.silent:
            self.tasks.add(asyncio.create_task(self.execute(request)))

    async def execute(self, request: BusRequest) -> None:
        if request.call.body == Mine(0):
            request.fail(RefusedCommand("nothing to mine"))
            return
        await self.exchange.announce_change(request.call.network)
        request.finish([1, b"two"])


@asynccontextmanager
async def connected(path: str, chain: Chain, workers: int = 2) -> AsyncIterator[list[BusClient]]:
    await chain.exchange.listen(listening(path))
    links = [BusClient(path) for _ in range(workers)]
    try:
        async with asyncio.timeout(PATIENCE):
            for link in links:
                link.start()
                while link.next_nonce("main", ALICE) != 7:  # noqa: ASYNC110, it has no event
                    await asyncio.sleep(0)
            yield links
    finally:
        for link in links:
            link.close()
        chain.exchange.close()
        await closed()


def test_answer_comes_when_all_workers_have_forgotten_their_hints(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain) as (one, other):
            balance = (2**256 - 1).to_bytes(32)
            result = await one.command("main", SetAccount(ALICE, balance, storage={b"\1": b"\2"}))
            assert result == [1, b"two"]
            assert [link.next_nonce("main", ALICE) for link in (one, other)] == [0, 0]
        (call,) = chain.calls
        assert call.body == SetAccount(ALICE, balance, storage={b"\1": b"\2"})

    asyncio.run(scene())


def test_hints_about_other_networks_stay(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain) as (one, _):
            await one.command("test", Mine())
            assert one.next_nonce("main", ALICE) == 7

    asyncio.run(scene())


def test_refusal_has_its_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(str(tmp_path / "bus"), Chain()) as (one, _):
            with pytest.raises(RefusedCommand, match="nothing to mine"):
                await one.command("main", Mine(0))

    asyncio.run(scene())


def test_worker_that_leaves_is_not_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain) as (one, other):
            asked = asyncio.create_task(one.command("main", Mine()))
            other.close()
            assert await asked == [1, b"two"]

    asyncio.run(scene())


def test_nobody_knows_what_became_of_a_command_when_the_writer_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        chain.silent = True
        async with connected(str(tmp_path / "bus"), chain) as (one, _):
            asked = asyncio.create_task(one.command("main", Mine()))
            while not chain.calls:  # noqa: ASYNC110, it has no event
                await asyncio.sleep(0)
            chain.exchange.close()
            with pytest.raises(CommandUnknown):
                await asked
            with pytest.raises(SequencerUnavailable):
                await one.command("main", Mine())

    asyncio.run(scene())


LONG = SetAccount(ALICE, code=bytes(3 * LONGEST))


def test_a_long_command_is_carried_out_and_holds_up_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain, workers=1) as (link,):
            long = [asyncio.create_task(link.command("main", LONG)) for _ in range(2)]
            await asyncio.sleep(0)
            await link.command("main", Mine())
            await asyncio.gather(*long)
            assert [each.body for each in chain.calls] == [Mine(), LONG, LONG]

    asyncio.run(scene())


def test_a_long_command_that_is_given_up_leaves_the_next_one_whole(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain, workers=1) as (link,):
            given_up = asyncio.create_task(link.command("main", LONG))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            await link.command("main", LONG)
            assert [each.body for each in chain.calls] == [LONG]

    asyncio.run(scene())


def test_a_command_that_is_too_long_is_refused_and_others_go_on(tmp_path: Path) -> None:
    async def scene() -> None:
        chain = Chain()
        async with connected(str(tmp_path / "bus"), chain, workers=1) as (link,):
            with pytest.raises(BusMessageTooLong):
                await link.command("main", SetAccount(ALICE, code=bytes(MOST_BYTES)))
            await link.command("main", Mine())
            assert [each.body for each in chain.calls] == [Mine()]

    asyncio.run(scene())
