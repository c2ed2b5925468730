"""A chain with faults and its follower, in one process, on a driven clock.

The source is a real sequencer with faults; its feed has the same faults as that of `foreblock dev`.
The follower is the writer process's code for a followed network, without sockets and threads. All
commits of the source are recorded, and every response of the follower is judged by them.
"""

import heapq
import itertools
from pathlib import Path
from random import Random
from typing import Any

from checker.chain import Chain
from checker.journal import Journal
from checker.judge import Judge, Verdict, work_out
from checker.moment import find_moments, names_lie
from checker.rehearsal import PAYEES
from checker.served import Served
from foreblock.clock import DrivenClock
from foreblock.feed.messages import encode
from foreblock.ledger.genesis.genesis_file import genesis_text
from foreblock.ledger.reading.view import Ledger
from foreblock.sequencer.dev_genesis import TOKENS_EACH, dev_genesis
from foreblock.sequencer.faults.feed import FeedFaults
from foreblock.sequencer.faults.plan import Faults
from foreblock.sequencer.predeploys import TOKEN
from foreblock.settings import ChainSettings, SourceSettings
from foreblock.settings.networks import Network
from foreblock.sources.feed_source import Arrived, FeedSource
from foreblock.status.network_status import MessageStatus
from support.chains.dev_chain import ACCOUNTS, GENESIS_TIME, MS, SECOND
from weather.convergence import Lateness, lateness
from weather.polling_source import PollingSource
from weather.source_chain import Published, SourceChain

TRANSIT_NS = 2 * MS  # of a message, and of a response of the canonical source
PAY_NS = 70 * MS  # between two payments
ASK_NS = 90 * MS  # between two batches of requests
PINS = 12  # kept for later requests


class Weather:
    """A source, the channel, and its follower."""

    def __init__(
        self, folder: Path, faults: tuple[str, ...], seed: int, *, canonical: bool = True
    ) -> None:
        options = ChainSettings()
        self.clock = DrivenClock(GENESIS_TIME * SECOND, 5 * SECOND)
        self.journal = Journal(
            Chain(
                chain_id=options.chain_id,
                block_time=int(options.block_time),
                token=TOKEN,
                balances={each.address: options.balance * 10**18 for each in ACCOUNTS},
                tokens={each.address: TOKENS_EACH for each in ACCOUNTS},
                followed=True,
            )
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "genesis.json").write_bytes(genesis_text(dev_genesis(options)))
        self._source = SourceChain(folder / "source", self.clock, faults, seed, self.journal)
        self._feed = FeedFaults(Faults.parse(faults, seed))
        self._folder = folder
        self._chance = Random(seed)
        now = self.clock.monotonic_ns
        first_ns = now() + self._chance.randrange(SECOND)
        self._looking = PollingSource(self._source, now, first_ns) if canonical else None
        self._pins: list[str] = []
        # Messages in transit, by their time of arrival.
        self._order = itertools.count()
        self._arriving: list[tuple[int, int, bytes]] = []
        self._open()
        self.served = Served(
            self.ledger.view,
            self.clock,
            self.journal,
            lambda _, method: method,
        )

    def _open(self) -> None:
        feed, genesis = SourceSettings(feed=("feed",)), str(self._folder / "genesis.json")
        data = str(self._folder / "followed")
        network = Network(name="a", data=data, source="feed", feed=feed, genesis=genesis)
        self.followed = FeedSource(network, self.clock, lambda _: None, self._want)
        self.ledger = Ledger(self.followed.store, clock=self.clock)

    def close(self) -> None:
        """Release all resources."""
        self.served.close()
        self.followed.close()
        self._source.close()

    def messages(self) -> MessageStatus:
        """The outcomes of the messages so far."""
        return self.followed.messages()

    # --- Clock ---------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Advance time, and do due work in order."""
        now = self.clock.monotonic_ns()
        end, pay_ns, ask_ns = now + int(seconds * SECOND), now, now
        while True:
            due = min(self._next_due_ns, pay_ns, ask_ns)
            if due > end:
                break
            self.clock.advance(max(due - self.clock.monotonic_ns(), 0))
            now = self.clock.monotonic_ns()
            if now >= pay_ns:
                self._source.pay()
                pay_ns += PAY_NS
            if now >= ask_ns:
                self._ask()
                ask_ns += ASK_NS
            self._run_due(now)
        self.clock.advance(max(end - self.clock.monotonic_ns(), 0))

    @property
    def _next_due_ns(self) -> int:
        due = min(self._source.next_due_ns, self.followed.next_due_ns)
        if self._arriving:
            due = min(due, self._arriving[0][0])
        return due if self._looking is None else min(due, self._looking.next_due_ns)

    def _run_due(self, now: int) -> None:
        if self._source.next_due_ns <= now:
            for published in self._source.tick():
                self._send(published)
        came = []
        while self._arriving and self._arriving[0][0] <= now:
            came.append(Arrived("feed", heapq.heappop(self._arriving)[2]))
        if came:
            self.followed.receive(came)
        elif self._looking is not None and self._looking.next_due_ns <= now:
            self.followed.add(self._looking.poll(self.followed))
        elif self.followed.next_due_ns <= now:
            self.followed.tick()

    def _send(self, published: Published) -> None:
        flashblock, other = published
        for at_ns, content in self._feed.send(flashblock, self.clock.monotonic_ns(), other):
            data = content if isinstance(content, bytes) else encode(content)
            heapq.heappush(self._arriving, (at_ns + TRANSIT_NS, next(self._order), data))

    def _want(self, block_hash: bytes) -> None:
        if self._looking is not None:
            self._looking.want(block_hash)

    # --- Requests ------------------------------------------------------------------------

    def _ask(self) -> None:
        """Send a request about the heads, or about something seen earlier."""
        chance = self._chance
        payer, payee = chance.choice(ACCOUNTS[:3]).address, chance.choice(PAYEES)
        about: Any = chance.choice(
            ["pending", "pending", "latest", "pin", "pin", "place", "number"]
        )
        if about in ("pin", "place", "number") and not self._pins:
            about = "pending"
        if about == "pin":
            about = chance.choice(self._pins)
        elif about == "place":
            number = int(self._number(), 16) + chance.randrange(-3, 3)
            index = hex(chance.randrange(12))
            about = {"blockNumber": hex(max(number, 0)), "flashblockIndex": index}
        elif about == "number":
            about = hex(max(int(self._number(), 16) - chance.randrange(6), 0))
        block, *_ = self.served.ask_everything(about, payer, payee)
        if about == "pending":
            self._pins = [*self._pins, block["result"]["hash"]][-PINS:]

    def _number(self) -> str:
        (answer,) = self.served.ask([("eth_blockNumber", [])])
        number: str = answer["result"]
        return number

    # --- Results -------------------------------------------------------------------------

    def judge(self) -> tuple[Verdict, Lateness]:
        """Return whether all responses were true, and their delays."""
        truth = work_out(self.journal)
        judge = Judge(truth)
        judge.judge(self.journal.exchanges)
        judge.verdict.contradictions[:0] = truth.contradictions
        told = [each for each in self.journal.exchanges if not names_lie(truth, each)]
        moments, _ = find_moments(truth, told)
        return judge.verdict, lateness(truth.places, moments, self.clock.monotonic_ns())
