"""A dev chain and its service in one process, on a driven clock, with everything recorded.

The only part of the checker beside the driver of a real run that uses the product. The chain grows
by one flashblock after every single method call, within batches too, so that a response assembled
from two snapshots is detected.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Raw

from checker.chain import Chain
from checker.journal import Journal
from checker.served import Served
from foreblock._engine import Store, Transaction
from foreblock.clock import DrivenClock
from foreblock.feed.messages import encode
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Client, Text
from foreblock.sequencer.dev_genesis import TOKENS_EACH, dev_genesis
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.predeploys import TOKEN
from foreblock.sequencer.sequencer import Sequencer
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from support.chains.dev_chain import ACCOUNTS, GENESIS_TIME, GWEI, SECOND, send

INTERVAL_MS = 400
PAYEES = [bytes([0xA0 + at]) * 20 for at in range(4)]

Run = Callable[[MethodFunction, LedgerView, Raw], bytes | Awaitable[Text]]


class Rehearsal:
    """A chain, its service, and their records."""

    def __init__(self, folder: Path, runs: dict[str, Run] | None = None) -> None:
        """`runs` replaces the implementation of some methods, to break a service."""
        genesis = ChainSettings()
        self.clock = DrivenClock(GENESIS_TIME * SECOND, 5 * SECOND)
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, dev_genesis(genesis))
        self.journal = Journal(
            Chain(
                chain_id=genesis.chain_id,
                block_time=2,
                token=TOKEN,
                balances={each.address: genesis.balance * 10**18 for each in ACCOUNTS},
                tokens={each.address: TOKENS_EACH for each in ACCOUNTS},
            )
        )
        self.sent = 0  # transactions
        self.index = 0  # of the newest flashblock
        self._called = 0  # methods
        self._sequencer: Sequencer | None = None
        self.start_sequencer(seed=0)
        self.ledger = Ledger(self.store, clock=self.clock)
        self.served = Served(
            self.open_view,
            self.clock,
            self.journal,
            lambda name, method: partial(
                self._run, partial((runs or {}).get(name, _plainly), method)
            ),
        )

    def close(self) -> None:
        """Release all resources."""
        self.served.close()
        self.writer.close()
        self.store.close()

    def open_view(self, _: Client) -> LedgerView:
        """Open the view of a request; a broken service may choose another."""
        return self.ledger.view()

    # --- The chain -----------------------------------------------------------------------

    def extend(self, payments: int = 2) -> None:
        """Add a flashblock with this many transactions; occasionally it begins a block."""
        sequencer = self._sequencer
        if sequencer is None:
            return
        for _ in range(payments):
            sequencer.submit(self._payment(sequencer))
        seen = len(self.journal.feed)
        while len(self.journal.feed) == seen:
            due = sequencer.next_due_ns - self.clock.monotonic_ns()
            self.clock.advance(max(due, 0))
            sequencer.tick()
        while sequencer.next_due_ns <= self.clock.monotonic_ns():
            sequencer.tick()

    def drop_block(self) -> None:
        """Drop the block in progress; `begin_anew` replaces it."""
        block = self.writer.open_block()
        assert block is not None
        batch = self.store.batch()
        batch.drop(list(block.partials), "a test gives it up")
        self.store.commit(batch)
        self._sequencer = None
        self.writer.close()

    def stall(self, seconds: int) -> None:
        """Advance time without any work."""
        self.clock.advance(seconds * SECOND)

    def start_sequencer(self, *, seed: int) -> None:
        """Start a sequencer, which begins a block; another seed gives another block."""
        self.writer = LedgerWriter(self.store, self.clock)
        chain, state = ChainSettings(seed=seed), DevState(bytes(32), interval_ms=INTERVAL_MS)
        sink = FeedSink(self._publish)
        self._sequencer = Sequencer(self.writer, self.clock, chain, state, sink)
        self.extend(0)

    def _publish(self, flashblock: Flashblock) -> None:
        self.index = flashblock.index
        self.journal.feed.append((self.clock.monotonic_ns(), encode(flashblock).decode()))

    def _payment(self, sequencer: Sequencer) -> Transaction:
        """The next payment of the load: ether and tokens in turn, fees of all sizes."""
        number = self.sent
        self.sent += 1
        account, payee = ACCOUNTS[number % 3], PAYEES[number % len(PAYEES)]
        nonce = sequencer.next_nonce(account.address)
        tip = (number % 5) * GWEI
        if number % 2:
            data = bytes.fromhex("a9059cbb") + payee.rjust(32, b"\0") + (number + 1).to_bytes(32)
            payment = send(account, nonce, TOKEN, 0, data=data, gas=80_000, tip=tip)
        else:
            payment = send(account, nonce, payee, 10**15 + number, tip=tip)
        self.journal.senders[payment.hash] = account.address
        return payment

    # --- Requests ------------------------------------------------------------------------

    def ask(self, requests: list[tuple[str, list[Any]]]) -> list[Any]:
        """Send one batch, and record it."""
        return self.served.ask(requests)

    def ask_everything(self, block: Any) -> list[Any]:  # noqa: ANN401, it is JSON
        """A batch of every kind of request that the judge supports, about one block."""
        payer, payee = ACCOUNTS[self.sent % 3].address, PAYEES[self.sent % len(PAYEES)]
        return self.served.ask_everything(block, payer, payee)

    def _run(
        self, method: Callable[[LedgerView, Raw], bytes | Awaitable[Text]], view: LedgerView,
        raw: Raw,
    ) -> bytes | Awaitable[Text]:  # fmt: skip
        result = method(view, raw)
        self._called += 1
        if self._called % 2 == 0:
            return result
        if inspect.isawaitable(result):
            return self._go_on_after(result)
        self.extend()
        return result

    async def _go_on_after(self, result: Awaitable[Text]) -> Text:
        text = await result
        self.extend()
        return text


def _plainly(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
    return method(view, raw)
