"""Send requests to a service in this process, as a client does over HTTP."""

import asyncio
import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from foreblock.ledger.reading.view import Ledger
from foreblock.methods.blocks import block_text, receipts
from foreblock.methods.sequencing import Sequencing
from foreblock.scheduling.reply import Client, Reply
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Dialect, Settings
from foreblock.settings.declare import build, flat

ANYBODY = Client("127.0.0.1", 0)


def body_of(reply: Reply) -> bytes:
    """The whole body of a reply, which is consumed."""
    return b"".join(reply.take_pieces())


UNHURRIED = 600.0  # seconds, for calls that take seconds at most: none ends by preemption


class Asker:
    """A client of a service, with an event loop for slow responses."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings | None = None,
        sequencing: Sequencing | None = None,
    ) -> None:
        chosen = settings or Settings()
        self._scheduler = make_scheduler(chosen)
        self._service = Service(ledger, chosen, self._scheduler, sequencing)
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._scheduler.close()
        self._loop.close()

    def reply(self, body: bytes) -> Reply:
        """Return the reply to a body."""
        return self._loop.run_until_complete(self._reply(body))

    def replies(self, bodies: list[bytes]) -> list[Reply]:
        """Return the replies to concurrent requests."""

        async def all_at_once() -> list[Reply]:
            return await asyncio.gather(*map(self._reply, bodies))

        return self._loop.run_until_complete(all_at_once())

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        """Return the result, or the error object."""
        answer = json.loads(self.reply(request(method, *params)).body)
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == 1
        return answer["result"] if "result" in answer else answer["error"]

    async def _reply(self, body: bytes) -> Reply:
        answer = self._service.answer(body, ANYBODY)
        reply = await answer if inspect.isawaitable(answer) else answer
        return Reply(body_of(reply), reply.headers)


def request(method: str, *params: object) -> bytes:
    """The body of one request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def error(code: int, message: str, **data: str) -> dict[str, object]:
    """An error object."""
    return {"code": code, "message": message, **data}


def settings_with(dialect: Dialect = "preconf", **given: object) -> Settings:
    """Settings by name, with long time limits for calls."""
    chosen = {"dialect": dialect, "call_timeout": UNHURRIED} | given
    defaults = flat(Settings())
    assert chosen.keys() <= defaults.keys()
    return build(Settings, defaults | chosen)


@contextmanager
def _caches_of(size: int) -> Iterator[None]:
    kept = block_text.KeptBytes(size, size)
    with patch.object(block_text, "KEPT", kept), patch.object(receipts, "RECEIPT_BYTES", size):
        yield


@contextmanager
def asker(ledger: Ledger, dialect: Dialect = "preconf", **options: Any) -> Iterator[Asker]:  # noqa: ANN401, by their names
    """A client of a service with these settings and this sequencer.

    `cached_bytes` is the size of each cache of rendered texts.
    """
    ways = {name: options.pop(name) for name in Sequencing._fields if name in options}
    cached_bytes = options.pop("cached_bytes", None)
    with _caches_of(cached_bytes) if cached_bytes is not None else nullcontext():
        client = Asker(ledger, settings_with(dialect, **options), Sequencing(**ways))
    try:
        yield client
    finally:
        client.close()


A0, A1, A2, A3 = ("0x" + f"c{i}" + "00" * 19 for i in range(4))
ETHER = 10**18


def simulate(client: Asker, *blocks: dict[str, Any], at: str = "latest", **options: bool) -> Any:  # noqa: ANN401, it is JSON
    """Return the blocks, or the error object."""
    return client.ask("eth_simulateV1", {"blockStateCalls": list(blocks), **options}, at)


def block(
    *calls: dict[str, Any],
    accounts: dict[str, dict[str, Any]] | None = None,
    **overrides: Any,  # noqa: ANN401, fields of any type
) -> dict[str, Any]:
    """A block with these calls and overrides."""
    return {"calls": list(calls), "stateOverrides": accounts or {}, "blockOverrides": overrides}


def funded(*addresses: str) -> dict[str, dict[str, Any]]:
    """State overrides that give each account an ether."""
    return {address: {"balance": hex(ETHER)} for address in addresses}


def word(number: int) -> str:
    """A number as 32 bytes."""
    return f"0x{number:064x}"


Json = Any


def witness_file(client: Asker, config: Json, number: int) -> dict[str, Json]:
    """The witness file of a sealed block: the results of two methods, and the chain's
    configuration.
    """
    return {
        "chain": config,
        "block": client.ask("debug_getRawBlock", hex(number)),
        "witness": client.ask("debug_executionWitness", hex(number)),
    }


def text_of(file: dict[str, Json]) -> bytes:
    return json.dumps(file).encode()
