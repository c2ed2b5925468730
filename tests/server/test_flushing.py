"""Notifications of many connections are written in slices, each connection once."""

import asyncio

from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.endpoint import Flusher
from support.servers.in_loop import in_loop, turns, until
from support.servers.websocket_wire import WebSocketWire


class Costly:
    """Connections with slow writes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1
        self.now += THRESHOLDS.flush_seconds * 0.4


@in_loop
async def test_others_have_a_turn_after_every_slice() -> None:
    costly = Costly()
    flusher = Flusher(lambda: costly.now)
    for _ in range(10):
        flusher.add(costly)
    seen = []
    while costly.flushed < 10:
        await asyncio.sleep(0)
        seen.append(costly.flushed)
    assert seen == [3, 6, 9, 10]
    flusher.add(costly)
    await until(lambda: costly.flushed == 11)


@in_loop
async def test_notifications_of_one_round_are_written_at_once() -> None:
    wire = WebSocketWire()
    before = len(wire.transport.written)
    for number in range(50):
        assert wire.session.channel.send(b"%d" % number)
    assert len(wire.transport.written) == before
    await turns()
    assert len(wire.transport.written) == before + 1
    assert wire.texts() == [str(number) for number in range(50)]
