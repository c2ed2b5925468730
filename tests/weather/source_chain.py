"""A chain with faults: its sequencer, and a record of its commits."""

from pathlib import Path
from typing import NamedTuple

from checker.journal import Journal
from checker.rehearsal import PAYEES
from foreblock._engine import Block, Transaction
from foreblock.clock import DrivenClock
from foreblock.feed.messages import encode
from foreblock.ledger.storage.partials import sealed_number
from foreblock.sequencer.predeploys import TOKEN
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from foreblock.upstream.block_fetcher import CanonicalHead
from support.chains.dev_chain import ACCOUNTS, GWEI, DevChain, sealed_block, send

TRANSFER = bytes.fromhex("a9059cbb")


class Published(NamedTuple):
    """A committed flashblock, and a false one for the same position."""

    flashblock: Flashblock
    other: Flashblock | None


class SourceChain(DevChain):
    """The chain as known to its sequencer; followers use it as a canonical source."""

    def __init__(
        self,
        folder: Path,
        clock: DrivenClock,
        faults: tuple[str, ...],
        seed: int,
        journal: Journal,
    ) -> None:
        self._journal = journal
        self._sent = 0  # number of payments
        self._published: list[Published] = []
        self._other: Flashblock | None = None  # for the position that is published next
        super().__init__(folder, ChainSettings(seed=seed), clock=clock, faults=faults)

    def close(self) -> None:
        self.writer.close()
        self.store.close()

    @property
    def next_due_ns(self) -> int:
        """The time of the next due work."""
        return self.sequencer.next_due_ns

    def tick(self) -> list[Published]:
        """Do due work; return its commits."""
        self.sequencer.tick()
        published, self._published = self._published, []
        return published

    def pay(self) -> None:
        """Send a payment: ether and tokens in turn, fees of all sizes."""
        payment = self._payment(self._sent)
        self._sent += 1
        self._journal.senders[payment.hash] = payment.sender
        self.sequencer.submit(payment)

    def _payment(self, number: int) -> Transaction:
        account, payee = ACCOUNTS[number % 3], PAYEES[number % len(PAYEES)]
        nonce, tip = self.sequencer.next_nonce(account.address), (number % 5) * GWEI
        if not number % 2:
            return send(account, nonce, payee, 10**15 + number, tip=tip)
        data = TRANSFER + payee.rjust(32, b"\0") + (number + 1).to_bytes(32)
        return send(account, nonce, TOKEN, 0, data=data, gas=80_000, tip=tip)

    def publish(self, flashblock: Flashblock) -> None:
        self._published.append(Published(flashblock, self._other))
        self._other = None
        self._journal.feed.append((self.clock.monotonic_ns(), encode(flashblock).decode()))

    def contradict(self, other: Flashblock) -> None:
        self._other = other
        self._journal.heard.append(encode(other).decode())

    # --- As a canonical source -----------------------------------------------------------

    @property
    def tip(self) -> CanonicalHead:
        """The latest block."""
        return CanonicalHead(self.writer.latest.number, self.writer.latest.hash)

    def block(self, number: int) -> Block:
        """A sealed block."""
        with self.store.view() as view:
            return sealed_block(view, number)

    def block_of(self, block_hash: bytes) -> Block | None:
        """The sealed block of a hash, if there is one."""
        with self.store.view() as view:
            number = sealed_number(view, block_hash)
        return None if number is None else self.block(number)
