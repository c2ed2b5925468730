"""Printed output of workers, over a real socket: in order, dropped and counted."""

import asyncio
from pathlib import Path

from foreblock.bus.bus_client import PRINT_LIMIT, BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import BusCall, BusRequest, Print
from support.servers.in_loop import closed, listening
from support.servers.waiting import PATIENCE


class Writer:
    """Records what it receives, in order."""

    def __init__(self) -> None:
        self.heard: list[Print | BusCall] = []
        self.exchange = BusServer(self._on_call, tuple, self.heard.append)

    def _on_call(self, request: BusRequest) -> None:
        self.heard.append(request.call)
        request.finish()


def test_a_request_is_printed_before_its_transaction_is_submitted(tmp_path: Path) -> None:
    async def scene() -> None:
        path, writer = str(tmp_path / "bus"), Writer()
        await writer.exchange.listen(listening(path))
        link = BusClient(path)
        link.print("main", "lost")
        link.start()
        await link.tried()
        try:
            async with asyncio.timeout(PATIENCE):
                link.print("main", "eth_sendRawTransaction", is_request=True)
                await link.submit("main", b"raw", b"\1" * 20)
        finally:
            link.close()
            writer.exchange.close()
            await closed()
        first, second = writer.heard
        assert first == Print("main", "eth_sendRawTransaction", is_request=True, missed=1)
        assert isinstance(second, BusCall)

    asyncio.run(scene())


def test_a_writer_that_does_not_read_misses_what_is_too_much(tmp_path: Path) -> None:
    async def scene() -> None:
        path, writer = str(tmp_path / "bus"), Writer()
        await writer.exchange.listen(listening(path))
        link = BusClient(path)
        link.start()
        await link.tried()
        text = "\ud800" + "x" * 10_000  # and invalid text does not break the bus
        count = 4 * PRINT_LIMIT // len(text)
        for _ in range(count):
            link.print("main", text)  # the loop has no turn in which it could read
        try:
            async with asyncio.timeout(PATIENCE):
                while not any(each.missed for each in writer.heard if isinstance(each, Print)):
                    link.print("main", "the last")
                    await asyncio.sleep(0)
        finally:
            link.close()
            writer.exchange.close()
            await closed()
        prints = [each for each in writer.heard if isinstance(each, Print)]
        assert all(each.text in {"?" + text[1:], "the last"} for each in prints)
        assert len(prints) + sum(each.missed for each in prints) >= count

    asyncio.run(scene())
