"""A dev chain whose commits are those of a log, for tests that need a store with a log row."""

from hashlib import sha256
from pathlib import Path

from foreblock._engine import Batch, Heads, LogRow, Store
from foreblock.sequencer.sequencer_options import SequencerOptions
from support.chains.dev_chain import ACCOUNTS, DevChain, send


class Chained:
    """Commits of epoch 3, each with a link that names those before it."""

    def __init__(self) -> None:
        self.link = bytes(32)
        self.rows: dict[int, LogRow] = {}  # by commit

    def commit(self, store: Store, batch: Batch) -> Heads:
        self.link = sha256(self.link + batch.encode()).digest()
        row = LogRow(3, self.link, len(self.rows) + 1)
        self.rows[batch.after] = row
        return store.commit(batch, row, lambda: True)


def logged_chain(folder: Path) -> tuple[DevChain, Chained]:
    """A chain with a few blocks, and where its commits are in its log."""
    commits = Chained()
    chain = DevChain(folder, SequencerOptions(seed=3), commits=commits)
    pay(chain, 6)
    return chain, commits


def pay(chain: DevChain, seconds: int) -> None:
    """Let time go by, with payments."""
    for _ in range(seconds):
        for who in ACCOUNTS[:2]:
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        chain.run(1_000)
