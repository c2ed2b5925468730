"""A chain in bad weather: its sequencer with faults, and what was committed there, recorded."""

from pathlib import Path
from typing import NamedTuple

from checker.journal import Journal
from checker.rehearsal import PAYEES
from foreblock._engine import Block, Store, Transaction
from foreblock.clock import DrivenClock
from foreblock.feed.messages import encode
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_header
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.ledger.storage.partial_rows import transactions_key
from foreblock.ledger.storage.partials import sealed_number
from foreblock.ledger.storage.rows import decode_items
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.predeploys import TOKEN
from foreblock.sequencer.sequencer import Sequencer
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from foreblock.upstream.block_fetcher import CanonicalHead
from support.chains.dev_chain import ACCOUNTS, GWEI, send

TRANSFER = bytes.fromhex("a9059cbb")


class Published(NamedTuple):
    """A flashblock that was committed, and another that is said to have its place."""

    flashblock: Flashblock
    other: Flashblock | None


class SourceChain:
    """The chain as its sequencer knows it; others are told of it as a canonical source."""

    def __init__(
        self,
        folder: Path,
        clock: DrivenClock,
        faults: tuple[str, ...],
        seed: int,
        journal: Journal,
    ) -> None:
        self._clock = clock
        self._journal = journal
        self._sent = 0  # payments
        self._store = Store(str(folder), write=True)
        begin_chain(self._store, dev_genesis(ChainSettings()))
        self._writer = LedgerWriter(self._store, clock)
        self._published: list[Published] = []
        self._other: Flashblock | None = None  # for the place that is published next
        chain, state = ChainSettings(seed=seed), DevState(bytes(32), faults=faults)
        sink = FeedSink(self._publish, self._contradict)
        self._sequencer = Sequencer(self._writer, clock, chain, state, sink)

    def close(self) -> None:
        """Let go of the store."""
        self._writer.close()
        self._store.close()

    @property
    def next_due_ns(self) -> int:
        """When there is something to do."""
        return self._sequencer.next_due_ns

    def tick(self) -> list[Published]:
        """Do what is due; gives what was committed by that."""
        self._sequencer.tick()
        published, self._published = self._published, []
        return published

    def pay(self) -> None:
        """One more payment: ether and tokens in turn, fees of all sizes."""
        payment = self._payment(self._sent)
        self._sent += 1
        self._journal.senders[payment.hash] = payment.sender
        self._sequencer.submit(payment)

    def _payment(self, number: int) -> Transaction:
        account, payee = ACCOUNTS[number % 3], PAYEES[number % len(PAYEES)]
        nonce, tip = self._sequencer.next_nonce(account.address), (number % 5) * GWEI
        if not number % 2:
            return send(account, nonce, payee, 10**15 + number, tip=tip)
        data = TRANSFER + payee.rjust(32, b"\0") + (number + 1).to_bytes(32)
        return send(account, nonce, TOKEN, 0, data=data, gas=80_000, tip=tip)

    def _publish(self, flashblock: Flashblock) -> None:
        self._published.append(Published(flashblock, self._other))
        self._other = None
        self._journal.feed.append((self._clock.monotonic_ns(), encode(flashblock).decode()))

    def _contradict(self, other: Flashblock) -> None:
        self._other = other
        self._journal.heard.append(encode(other).decode())

    # --- As a canonical source -----------------------------------------------------------

    @property
    def tip(self) -> CanonicalHead:
        """The latest block."""
        return CanonicalHead(self._writer.latest.number, self._writer.latest.hash)

    def block(self, number: int) -> Block:
        """A sealed block."""
        with self._store.view() as view:
            header, _ = read_header(view, number)
            raws: list[bytes] = []
            for partial in partials_of_sealed(view, number):
                raws += decode_items(view.row(transactions_key(number, partial)) or b"")
        return Block(header, raws, withdrawals=())

    def block_of(self, block_hash: bytes) -> Block | None:
        """The sealed block of a hash, if it is one."""
        with self._store.view() as view:
            number = sealed_number(view, block_hash)
        return None if number is None else self.block(number)
