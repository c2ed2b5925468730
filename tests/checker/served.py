"""A service in one process, on a driven clock, whose responses are recorded in a journal."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw

from checker import probes
from checker.journal import Exchange, Journal
from foreblock.clock import DrivenClock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import make_table
from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher
from foreblock.rpc.error_codes import fault_of
from foreblock.scheduling.reply import Client, Reply, Text
from foreblock.sequencer.predeploys import TOKEN
from foreblock.settings import Settings
from support.servers.asking import ANYBODY, body_of
from support.servers.long_work import scheduler

TIMEOUT_MS = 5_000

Method = Callable[[LedgerView, Raw], bytes | Awaitable[Text]]
Wrap = Callable[[str, Method], Method]


class Served:
    """Responds to requests and records them. The chain is driven elsewhere."""

    def __init__(
        self,
        open_view: Callable[[Client], LedgerView],
        clock: DrivenClock,
        journal: Journal,
        wrap: Wrap,
    ) -> None:
        """`wrap` wraps the implementation of each method, by name."""
        self._clock = clock
        self._journal = journal
        self._loop = asyncio.new_event_loop()  # one, because long calls return to it
        self._scheduler = scheduler(TIMEOUT_MS)
        methods = make_table(Settings(pending_nonce="state"), self._scheduler).functions
        self.dispatcher = Dispatcher(
            {name: wrap(name, method) for name, method in methods.items()},
            open_view,
            partial(fault_of, dialect="preconf"),
            Limits(),
        )

    def close(self) -> None:
        """Release all resources."""
        self._scheduler.close()
        self._loop.close()

    def ask(self, requests: list[tuple[str, list[Any]]]) -> list[Any]:
        """Send one batch, and record it."""
        body = [
            {"jsonrpc": "2.0", "id": at, "method": method, "params": params}
            for at, (method, params) in enumerate(requests)
        ]
        text = json.dumps(body)
        sent_ns = self._moment()
        reply = self._loop.run_until_complete(self._answer(text.encode()))
        answer = body_of(reply)
        name, _, snapshot = reply.headers.decode().strip().partition(": ")
        assert name == "Foreblock-Snapshot"
        self._journal.exchanges.append(
            Exchange("rehearsal", sent_ns, self._moment(), text, answer.decode(), snapshot)
        )
        answers: list[Any] = json.loads(answer)
        return answers

    def ask_everything(self, block: Any, payer: bytes, payee: bytes) -> list[Any]:  # noqa: ANN401, it is JSON
        """A batch of every kind of request that the judge supports, about one block."""
        sent = f"0x{[*self._journal.senders, bytes(32)][-2].hex()}"
        return self.ask(
            [
                ("eth_getBlockByNumber", [block, False]),
                ("eth_getBalance", [f"0x{payer.hex()}", block]),
                ("eth_getTransactionCount", [f"0x{payer.hex()}", block]),
                ("eth_call", probes.surroundings_call(block)),
                ("eth_call", probes.token_call(TOKEN, payee, block)),
                ("eth_call", probes.balance_call(payee, block)),
                ("eth_simulateV1", probes.simulation(payer, payee, 10**18, block)),
                ("eth_getBlockByNumber", [block, True]),
                ("eth_getTransactionByHash", [sent]),
                ("eth_getTransactionReceipt", [sent]),
            ]
        )

    def _moment(self) -> int:
        """The time, which advances so that no two readings are equal."""
        self._clock.advance(1_000)
        now = self._clock.monotonic_ns()
        self._clock.advance(1_000)
        return now

    async def _answer(self, body: bytes) -> Reply:
        reply = self.dispatcher.answer(body, ANYBODY)
        return reply if isinstance(reply, Reply) else await reply
