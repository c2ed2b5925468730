"""Dev chains whose stores are checked: one with every kind of row, one with the rows of a log."""

from hashlib import sha256
from pathlib import Path

from foreblock._engine import Batch, Heads, LogRow, Store
from foreblock.bus.commands import SetAccount
from foreblock.settings import ChainSettings
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.payloads.bytecode import code

CONTRACT = b"\xc0" * 20
# Writes its input to slot 1, and logs it as a topic.
WRITES = bytes.fromhex(code(0, "CALLDATALOAD", 1, "SSTORE", 0, "CALLDATALOAD", 0, 0, "LOG1")[2:])


def busy_chain(folder: Path) -> DevChain:
    """Build some twenty blocks with transfers, logs and state edits; keep the last ten states."""
    chain = DevChain(folder, keep_states=10, keep_partials=4)
    chain.execute(SetAccount(CONTRACT, code=WRITES, balance=(7).to_bytes(32)))
    run_blocks(chain, 20)
    return chain


def run_blocks(chain: DevChain, count: int) -> None:
    """Produce blocks, each with a transfer and a call that logs."""
    for _ in range(count):
        nonces = [chain.sequencer.next_nonce(each.address) for each in ACCOUNTS[:2]]
        word = (1 + nonces[1] % 3).to_bytes(32)
        call = send(ACCOUNTS[1], nonces[1], CONTRACT, 0, data=word, gas=100_000)
        chain.submit(send(ACCOUNTS[0], nonces[0]), call)
        chain.run(2_000)
    chain.execute(SetAccount(b"\xcc" * 20, balance=(count).to_bytes(32), storage={}))


class Chained:
    """Commits of epoch 3, each with a link to the previous ones."""

    def __init__(self) -> None:
        self.link = bytes(32)
        self.rows: dict[int, LogRow] = {}  # by commit

    def commit(self, store: Store, batch: Batch) -> Heads:
        self.link = sha256(self.link + batch.encode()).digest()
        row = LogRow(3, self.link, len(self.rows) + 1)
        self.rows[batch.after] = row
        return store.commit(batch, row, lambda: True)


def logged_chain(folder: Path) -> tuple[DevChain, Chained]:
    """A chain with a few blocks, and the positions of its commits in its log."""
    commits = Chained()
    chain = DevChain(folder, ChainSettings(seed=3), commits=commits)
    pay(chain, 6)
    return chain, commits


def pay(chain: DevChain, seconds: int) -> None:
    """Advance time, with payments."""
    for _ in range(seconds):
        for who in ACCOUNTS[:2]:
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        chain.run(1_000)
