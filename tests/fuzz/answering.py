"""Bodies of requests to a service: every response is one that clients can parse.

`Answering.broken` is the fuzzing oracle: a body without a response, invalid JSON-RPC, an internal
error, or a result that violates the schema of `rpc.discover`.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foreblock.ledger.reading.view import Ledger
from foreblock.methods import make_families
from foreblock.methods.openrpc import read_signature
from foreblock.methods.openrpc.schemas import SCHEMAS
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Dialect
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.json_schema import Validator
from support.servers.asking import ANYBODY, body_of, settings_with

INTERNAL = -32603
DIALECTS: tuple[Dialect, ...] = ("preconf", "ethereum")
TIMEOUT_MS = 100  # a call may be endless


class Answering:
    """A chain with logs, sealed and in progress, and a service of it in each dialect."""

    def __init__(self, folder: Path) -> None:
        self._chain = PreconfirmingChain(folder)
        for value in (1, 2, 3):
            self._chain.begin()
            self._chain.extend([self._chain.pay(COUNTER, value), self._chain.pay(value=10)])
        ledger = Ledger(self._chain.store, clock=self._chain.clock)
        self._services = []
        for dialect in DIALECTS:
            options = settings_with(dialect, call_timeout=TIMEOUT_MS / 1_000)
            scheduler = make_scheduler(options)
            families = make_families(options, scheduler)
            shapes = {
                method.name: read_signature(method.signature).result.schema
                for family in families
                for method in family.methods
            }
            self._services.append((Service(ledger, options, scheduler), scheduler, shapes))
        self._runner = asyncio.Runner()
        self._validator = Validator()

    def close(self) -> None:
        self._runner.close()
        for _, scheduler, _ in self._services:
            scheduler.close()
        self._chain.close()

    def broken(self, body: bytes) -> str | None:
        """Return the error in the response to this body, if any."""
        for service, _, shapes in self._services:
            answered = self._runner.run(self._answer(service, body))
            for why in self._failures(body, answered, shapes):
                return f"{why} in {answered[:1000]!r}"
        return None

    @staticmethod
    async def _answer(service: Service, body: bytes) -> bytes:
        reply = service.answer(body, ANYBODY)
        return body_of(reply if isinstance(reply, Reply) else await reply)

    def _failures(self, body: bytes, answered: bytes, shapes: dict[str, Any]) -> Iterator[str]:
        if not answered:
            return  # only notifications
        answers = json.loads(answered)
        asked = _requests(body)
        for answer in answers if isinstance(answers, list) else [answers]:
            if answer.get("jsonrpc") != "2.0" or "id" not in answer:
                yield "not a JSON-RPC response"
            if "error" in answer:
                if answer["error"]["code"] == INTERNAL:
                    yield "an internal error"
                continue
            shape = shapes.get(asked.get(json.dumps(answer["id"]), ""))
            if shape is not None:
                components = {"components": {"schemas": SCHEMAS}}
                yield from self._validator.failures(answer["result"], shape, components)


def _requests(body: bytes) -> dict[str, str]:
    """Methods by the id of their request, if it is unique."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str] = {}
    requests = given if isinstance(given, list) else [given]
    for each in requests:
        if isinstance(each, dict) and isinstance(each.get("method"), str):
            key = json.dumps(each.get("id"))
            found[key] = "" if key in found else each["method"]
    return found
