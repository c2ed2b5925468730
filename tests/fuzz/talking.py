r"""A connection that begins with a head and continues with frames, as any client may send them.

An input is the head of a request up to its empty line, then frames: each has a byte for its opcode
(the lowest four bits), its end (0x10) and a missing mask (0x80), two for its length, and its
payload. A byte of 0xff is followed by raw bytes.

`Talking.broken` is the fuzzing oracle: bytes that a client's library cannot parse, an internal
error, a close code for a server error, or a connection that never ends.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.admission import WorkerBudget
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import ServerLimits, WebSocketLimits
from fuzz.answering import INTERNAL, TIMEOUT_MS
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.asking import settings_with
from support.servers.in_loop import turns, until
from support.servers.waiting import PATIENCE
from support.servers.websocket_wire import ACCESS, masked
from support.servers.wire import Wire, endpoint_for

LIMITS = ServerLimits(body_limit=5_000, connections=10)
END, BARE, RAW = 0x10, 0x80, 0xFF
EVENTS_EVERY = 3  # frames after which the chain grows
FLASHBLOCKS = 5  # of a block
FOR_EVER = 400  # seconds
OUR_FAULT = 1011
SWITCHED = b"HTTP/1.1 101 "


class Talking:
    """A growing chain, and a service for connections."""

    def __init__(self, folder: Path) -> None:
        self._chain = PreconfirmingChain(folder)
        self._chain.begin()
        self._grown = 0
        options = settings_with("ethereum", call_timeout=TIMEOUT_MS / 1_000, subscriptions=4)
        self._ledger = Ledger(self._chain.store, clock=self._chain.clock)
        self._scheduler = make_scheduler(options)
        self._service = Service(self._ledger, options, self._scheduler)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.close()
        self._scheduler.close()
        self._chain.close()

    def broken(self, data: bytes) -> str | None:
        """Return the error in this conversation, if any."""
        return self._runner.run(self._talk(data))

    async def _talk(self, data: bytes) -> str | None:
        head, end, rest = data.partition(b"\r\n\r\n")
        service = self._service
        budget = WorkerBudget(LIMITS.waiting_requests, LIMITS.unsent_bytes)
        endpoint = endpoint_for(
            service.answer, LIMITS, ACCESS, budget=budget, open_session=service.open_session,
            websocket=WebSocketLimits(requests=4, unsent_bytes=1 << 16),
        )  # fmt: skip
        wire = Wire(service.answer, endpoint=endpoint)
        wire.send(head + end)
        for number, frame in enumerate(frames(rest)):
            wire.send(frame)
            await turns()
            if number % EVENTS_EVERY == EVENTS_EVERY - 1 and not wire.over():
                self._grow()
        await _settled(budget)
        why = _wrong(wire.out)
        for _ in range(FOR_EVER):
            if wire.over():
                break
            wire.advance_seconds(1)
            await turns()
        else:
            why = why or "the connection stays for ever"
        wire.transport.close()
        await _settled(budget)
        if why is None and (endpoint.ticker.count, budget.held) != (0, 0):
            why = f"{budget.held} requests are held after the end"
        return why

    def _grow(self) -> None:
        """Add a flashblock with a log, of the same block or the next."""
        self._grown += 1
        if self._grown % FLASHBLOCKS == 0:
            self._chain.begin()
            self._chain.run_until_idle()
        self._chain.extend([self._chain.pay(COUNTER, 1)])
        self._ledger.view().close()


async def _settled(budget: WorkerBudget) -> None:
    """Wait until no request is pending."""
    async with asyncio.timeout(PATIENCE):
        await until(lambda: not budget.held)
    await turns()


def frames(data: bytes) -> Iterator[bytes]:
    """The frames of an input as they are sent."""
    while data:
        kind = data[0]
        if kind == RAW:
            yield data[1:]
            return
        length = int.from_bytes(data[1:3])
        payload, data = data[3 : 3 + length], data[3 + length :]
        frame = masked(payload, kind & 0xF, final=bool(kind & END))
        yield bytes([frame[0], frame[1] & 0x7F]) + payload if kind & BARE else frame


def _wrong(out: bytes) -> str | None:
    """Return the error from a client's point of view."""
    if not out.startswith(SWITCHED):
        return None if not out or out.startswith(b"HTTP/1.1 ") else "not an HTTP response"
    library = ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN, max_size=None)
    library.receive_data(out.partition(b"\r\n\r\n")[2])
    if library.parser_exc is not None:
        return f"the library cannot read it: {library.parser_exc!r}"
    if library.close_rcvd is not None and library.close_rcvd.code == OUR_FAULT:
        return f"closed with {OUR_FAULT}: {library.close_rcvd.reason}"
    parts: list[bytes] = []
    for frame in library.events_received():
        if not isinstance(frame, Frame) or frame.opcode not in (Opcode.TEXT, Opcode.CONT):
            continue
        parts.append(bytes(frame.data))
        if frame.fin:
            message = json.loads(b"".join(parts))
            parts.clear()
            for each in message if isinstance(message, list) else [message]:
                if each.get("error", {}).get("code") == INTERNAL:
                    return f"an internal error: {each}"
    return None


def write_frames(head: bytes, *texts: bytes, kind: int = 1 | END) -> bytes:
    """An input with these text messages after a head."""
    return head + b"".join(bytes([kind]) + len(text).to_bytes(2) + text for text in texts)
