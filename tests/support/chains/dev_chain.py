"""A dev chain in one process with a driven clock and the rules of any fork.

The last part has transactions that are valid only under Ethereum's rules.
"""

import gc
import hashlib
from pathlib import Path
from typing import Any

from foreblock._engine import Block, Message, Store, Transaction, View, keccak256, sign_transaction
from foreblock.bus.commands import AnyCommand
from foreblock.clock import DrivenClock
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.rules.execution import CONSOLIDATION_REQUESTS, WITHDRAWAL_REQUESTS
from foreblock.ledger.rules.transaction_rules import BLOB_BYTES
from foreblock.ledger.storage.chain_head import portions_of_sealed, read_header
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.dev_rows import DevState, Mining
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.ledger.storage.partial_rows import transactions_key
from foreblock.ledger.storage.rows import decode_items
from foreblock.sequencer.commands import execute
from foreblock.sequencer.dev_genesis import DEFAULT_TIMESTAMP, dev_genesis
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.faults.plan import Faults
from foreblock.sequencer.load import Load
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, DevAccount, dev_accounts
from foreblock.sequencer.sequencer import Sequencer
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from support.payloads.signing import rlp, sign

MS = 10**6
SECOND = 10**9
GWEI = 10**9
ETHER = 10**18
GENESIS_TIME = DEFAULT_TIMESTAMP
ACCOUNTS = dev_accounts(TEST_MNEMONIC, 10)
NOBODY = b"\xdd" * 20


def send(
    who: DevAccount,
    nonce: int,
    to: bytes | None = NOBODY,
    value: int = 1,
    *,
    data: bytes = b"",
    gas: int = 21_000,
    tip: int = GWEI,
    cap: int = 100 * GWEI,
) -> Transaction:
    """Sign a transaction of a dev account."""
    message = Message(
        sender=who.address,
        to=to,
        value=value,
        data=data,
        gas=gas,
        max_fee_per_gas=cap,
        max_priority_fee_per_gas=tip,
    )
    return sign_transaction(message, 2, 31337, nonce, who.secret)


class DevChain:
    """A sequencer over a store in a folder; `run` advances time and does due work."""

    def __init__(
        self,
        folder: Path,
        options: ChainSettings | None = None,
        *,
        genesis: Genesis | None = None,
        load: Load | None = None,
        clock: DrivenClock | None = None,
        begins_ms: int = 0,
        max_readers: int | None = None,
        faults: tuple[str, ...] = (),
        mining: Mining = "clock",
        shows_sealed: bool = False,
        keep_states: int | None = None,
        keep_partials: int = 64,
        commits: Commits = TO_STORE,
    ) -> None:
        self.folder = folder
        self.keep_states = keep_states
        self.keep_partials = keep_partials
        self.commits = commits
        self.options = options or ChainSettings()
        self.genesis = genesis or dev_genesis(ChainSettings())
        self.load = load
        self.max_readers = max_readers
        self.state = DevState(
            instance=bytes(32),
            mining=mining,
            block_time=self.options.block_time,
            interval_ms=self.options.interval_ms,
            faults=faults,
            shows_sealed=shows_sealed,
        )
        self.clock = clock or DrivenClock(GENESIS_TIME * SECOND + begins_ms * MS, 5 * SECOND)
        self.published: list[Flashblock] = []
        self.others: list[Flashblock] = []  # flashblocks that contradict committed ones
        self.struck: list[Faults] = []  # faults injected into the feed
        self.open()

    def open(self) -> None:
        """Start, as a process does."""
        self.store = Store(
            str(self.folder),
            write=True,
            max_readers=self.max_readers,
            keep_states=self.keep_states,
            keep_partials=self.keep_partials,
        )
        begin_chain(self.store, self.genesis, self.commits)
        self.writer = LedgerWriter(
            self.store,
            self.clock,
            keep_partials=self.keep_partials,
            chooses_bases=True,
            refund_gas=self.options.refund_gas,
            commits=self.commits,
        )
        self.sequencer = Sequencer(
            self.writer,
            self.clock,
            self.options,
            self.state,
            FeedSink(self.publish, self.contradict, self.struck.append),
            self.load,
        )
        self.run_until_idle()

    def publish(self, flashblock: Flashblock) -> None:
        """Called with each committed flashblock."""
        self.published.append(flashblock)

    def contradict(self, other: Flashblock) -> None:
        """Called with each flashblock that contradicts the next committed one."""
        self.others.append(other)

    def kill(self) -> None:
        """End without cleanup, as a killed process does."""
        del self.sequencer, self.writer
        gc.collect()  # views are freed with their holders, which form reference cycles
        self.store.close()

    def run_until_idle(self) -> None:
        """Do all due work, including work behind the head."""
        while self._is_due or self.sequencer.is_behind:
            self.sequencer.tick()

    @property
    def _is_due(self) -> bool:
        return self.sequencer.next_due_ns <= self.clock.monotonic_ns()

    def run(self, milliseconds: int) -> list[Flashblock]:
        """Advance time; return the flashblocks published meanwhile."""
        before = len(self.published)
        end = self.clock.monotonic_ns() + milliseconds * MS
        while (due := self.sequencer.next_due_ns) <= end:
            self.clock.advance(max(due - self.clock.monotonic_ns(), 0))
            self.sequencer.tick()
        self.clock.advance(end - self.clock.monotonic_ns())
        return self.published[before:]

    def stall(self, milliseconds: int) -> list[Flashblock]:
        """Advance time without doing any work, as on a suspended machine; then continue."""
        before = len(self.published)
        self.clock.advance(milliseconds * MS)
        self.run_until_idle()
        return self.published[before:]

    def submit(self, *transactions: Transaction) -> None:
        for transaction in transactions:
            self.sequencer.submit(transaction)
        self.sequencer.run_immediate()

    def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command."""
        return execute(self.sequencer, command)

    def pending_balance(self, address: bytes) -> int:
        with self.store.view() as view:
            assert view.heads.pending is not None
            return view.state_of_partial(view.heads.pending).balance(address)

    def latest_balance(self, address: bytes) -> int:
        with self.store.view() as view:
            assert view.heads.latest is not None
            return view.state(view.heads.latest[0]).balance(address)

    def sealed(self) -> list[Block]:
        """The sealed blocks, block 1 first."""
        return sealed_blocks(self.store)


def sealed_blocks(store: Store) -> list[Block]:
    """The sealed blocks, block 1 first."""
    with store.view() as view:
        assert view.heads.latest is not None
        return [sealed_block(view, number) for number in range(1, view.heads.latest[0] + 1)]


def sealed_block(view: View, number: int) -> Block:
    """A sealed block, built from the rows of its indices."""
    header, _ = read_header(view, number)
    raws: list[bytes] = []
    for partial in portions_of_sealed(view, number):
        raws += decode_items(view.row(transactions_key(number, partial)) or b"")
    return Block(header, raws, withdrawals=None if header.withdrawals_root is None else ())


def indices(flashblocks: list[Flashblock]) -> list[tuple[int, int]]:
    """The block and index of each flashblock."""
    return [(each.block_number, each.index) for each in flashblocks]


def places(flashblocks: list[Flashblock]) -> dict[bytes, tuple[int, int]]:
    """The block and index of each transaction."""
    return {
        raw: (each.block_number, each.index)
        for each in flashblocks
        for raw in each.diff.transactions
    }


ALICE = ACCOUNTS[0]


def genesis_of(rules: str, fork: str = "newest") -> Genesis:
    return dev_genesis(ChainSettings(rules=rules, fork=fork))  # type: ignore[arg-type]


def withdraw(nonce: int, amount: int) -> Transaction:
    """A request to the contract of EIP-7002: the key of a validator, and an amount."""
    data = bytes([nonce]) * 48 + amount.to_bytes(8)
    return send(ALICE, nonce, WITHDRAWAL_REQUESTS, 1_000, data=data, gas=300_000)


def consolidate(nonce: int) -> Transaction:
    """A request to the contract of EIP-7251: the keys of two validators."""
    data = bytes([nonce]) * 96
    return send(ALICE, nonce, CONSOLIDATION_REQUESTS, 1_000, data=data, gas=300_000)


def blob_transaction(
    who: int,
    nonce: int,
    blobs: int,
    *,
    blob_fee: int = 100,
    sidecar: bool = True,
    commits: bool = True,
) -> str:
    """A transaction of type 3 with this many blobs, in network form."""
    commitments = [bytes([nonce, at]) * 24 for at in range(blobs)]
    hashes = [b"\1" + hashlib.sha256(each).digest()[1:] for each in commitments]
    fields: list[Any] = [31337, nonce, GWEI, 100 * GWEI, 21_000, NOBODY, 1, b"", []]
    fields += [blob_fee, hashes]
    secret = int.from_bytes(ACCOUNTS[who].secret)
    body = [*fields, *sign(secret, keccak256(b"\3" + rlp(fields)))]
    if not sidecar:
        return "0x" + (b"\3" + rlp(body)).hex()
    contents = [bytes(BLOB_BYTES)] * blobs
    if not commits:
        commitments = [b"\xff" * 48] * blobs
    return "0x" + (b"\3" + rlp([body, contents, commitments, [bytes(48)] * blobs])).hex()
