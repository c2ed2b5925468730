"""A development chain: from the settings of its network to a sequencer that runs."""

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import structlog
from msgspec import structs

from foreblock.bus.commands import (
    AddBalance,
    AnyCommand,
    ResetFork,
    SetAccount,
    SetForkUrl,
)
from foreblock.bus.messages import BusRequest, ToWorker
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import (
    BadGenesis,
    BadSetting,
    DifferentGenesis,
    EndpointError,
    InvalidTransaction,
    PoolRefusal,
    RefusedCommand,
)
from foreblock.ledger.building.ledger_writer import Distances, LedgerWriter
from foreblock.ledger.building.parent_state import StateFinder
from foreblock.ledger.genesis.genesis_file import (
    GENESIS_FILE,
    Genesis,
    genesis_text,
    read_allocation,
)
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage import dev_rows
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.dev_rows import DevState, ForkOrigin
from foreblock.ledger.storage.open_store import FetchedState, Store
from foreblock.ledger.storage.store_watch import SeenCommit, StoreWatch
from foreblock.ledger.tracing.chain_report import ReachedPosition
from foreblock.metrics.meters import NetworkMetrics
from foreblock.primitives import format_data
from foreblock.sequencer.commands import execute, is_short
from foreblock.sequencer.commands.state import execute_together
from foreblock.sequencer.dev_genesis import (
    dev_genesis,
    read_dev_genesis,
)
from foreblock.sequencer.faults.feed import FaultyFeed, FeedSink, Publisher
from foreblock.sequencer.faults.plan import Faults
from foreblock.sequencer.load import Load, first_of_load
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.sequencer.pool_snapshot import PoolReader
from foreblock.sequencer.rewriter import BlockToReplay
from foreblock.sequencer.saved_pool import save_pool, saved_pool
from foreblock.sequencer.sequencer import NO_FORK, Sequencer
from foreblock.settings import ChainSettings
from foreblock.settings.networks import Network
from foreblock.sources.console_output import NetworkPrinter, console_output_of
from foreblock.sources.network_store import StaleReaders, open_network_store
from foreblock.sources.network_writer import NetworkWriter
from foreblock.types import Allowance, Flashblock, Header, Transaction, decode_transactions

log = structlog.get_logger()

POOL_FILE: Final = "pool"  # in the store's folder, from a clean stop to the next start
SHORT_COUNT: Final = 4  # transactions, and gas, that run and are sealed in a millisecond
SHORT_GAS: Final = 500_000
SHORT_COMMIT_NS: Final = 10**6
LONG_COMMIT_NS: Final = 20 * 10**6  # of the last commit, after which each command is committed
HINTED_SENDERS: Final = 1_000  # whose nonces workers get after a command, in some milliseconds


T = TypeVar("T")


def _ignore(_: Flashblock) -> None:
    pass


def _drop(_: str) -> None:
    pass


class Watchers(NamedTuple):
    """The observers of a chain."""

    printer: NetworkPrinter | None = None  # prints it
    metrics: NetworkMetrics | None = None  # count it


NO_WATCHERS: Final = Watchers()


class ForkedBase(StateFinder, Protocol):
    """The block of another chain on which a chain begins (`foreblock.fork`)."""

    @property
    def header(self) -> Header:
        """The header of the block."""

    @property
    def learned(self) -> FetchedState:
        """Its state, as far as it is known."""

    def open_store(self, seen: SeenCommit | None) -> Store:
        """The store, which begins at the block. Raises `ForeblockError`."""

    @property
    def origin(self) -> ForkOrigin:
        """Where its state comes from."""

    @property
    def first_block(self) -> BlockToReplay | None:
        """The block of the other chain that is executed first; None without one."""

    def answer(self, request: BusRequest) -> None:
        """Reply to a worker that misses state, some time later."""

    def use(self, url: str) -> None:
        """Fetch from another endpoint. Raises `BadSetting`, `EndpointError`."""

    def another(self, url: str, block: str) -> "ForkedBase":
        """A fork of another block. Raises `BadSetting`, `EndpointError`."""

    def begin(self, writer: LedgerWriter) -> None:
        """Begin the first block of the chain, if that is not for the sequencer."""

    def restart(self, store: Store) -> None:
        """Restart the chain in a store on this block."""

    def close(self) -> None:
        """End its requests."""


class DevChainSource:
    """A sequencer with its store, as `NetworkWriter` needs it."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        sink: FeedSink,
        seen: SeenCommit | None = None,
        watchers: Watchers = NO_WATCHERS,
        commits: Commits = TO_STORE,
        fork: ForkedBase | None = None,
    ) -> None:
        """Begin the chain, on a `fork` if there is one, or continue it; closes the fork.

        Raises `ForeblockError`.
        """
        chain = network.dev
        assert chain is not None, "a development chain has its settings"
        self._chain: Final = chain
        self._printer: Final = watchers.printer or NetworkPrinter(_drop)
        self._pool_file: Final = Path(network.data) / POOL_FILE
        self._waits: Final = network.sync or commits is not TO_STORE
        self._network: Final = network
        self._clock: Final = clock
        self._sink: Final = sink
        self._metrics: Final = watchers.metrics
        self._commits: Final = commits
        self.fork = fork
        self._rests_until_ns = 0  # after a failure to fetch state
        self.store: Final[Store] = _open_store(network, seen, commits, fork)
        try:
            self._begin()
            self._readers: Final = StaleReaders(self.store, clock)
            self._watch: Final = StoreWatch(self.store, seen or SeenCommit(), clock)
            with saved_pool(self._pool_file) as waited:
                self._restore_saved(waited)
            self._print()
        except BaseException:
            if fork is not None:
                fork.close()
            self.store.close()
            raise

    def _begin(self) -> None:
        """Begin the chain in the store, or continue it."""
        chain, fork = self._chain, self.fork
        self._writer = LedgerWriter(
            self.store,
            self._clock,
            keep_partials=self._network.keep.partials,
            distances=Distances(chain.epoch_blocks, 2 * chain.epoch_blocks),
            address_index=self._network.address_index,
            chooses_bases=True,
            refund_gas=chain.refund_gas,
            metrics=self._metrics,
            commits=self._commits,
            learned=None if fork is None else fork.learned,
            finder=fork,
        )
        if fork is not None:
            fork.begin(self._writer)
        load = _load(chain, self._writer.profile.chain_id)
        first_block = None if fork is None else fork.first_block
        first_state = self._first_state(fork)
        try:
            self._sequencer = Sequencer(
                self._writer, self._clock, chain, first_state, self._sink, load, first_block
            )
        except InvalidTransaction as invalid:
            why = f"transaction {invalid.index} of its block cannot be executed: {invalid.why}"
            raise BadSetting("fork_transaction_hash", why) from None
        self._sequencer.change_fork = self._change_fork

    def _first_state(self, fork: ForkedBase | None) -> DevState:
        shows_sealed = self._network.view == "sealed"
        return _first_state(self._chain, self._clock, fork, shows_sealed=shows_sealed)

    @property
    def next_due_ns(self) -> int:
        """When `tick` has something to do, in monotonic time."""
        return max(self._sequencer.next_due_ns, self._rests_until_ns)

    @property
    def last_commit(self) -> int:
        """The number of the last commit."""
        return self._writer.last_commit

    def tick(self) -> None:
        """Do what is due; without the state that it needs, another time."""
        with self._deferring():
            self._sequencer.tick()
        self._notify_printer()
        self._readers.clear_if_due()
        self._watch.check_if_due()

    def catch_up(self) -> None:
        """Do all work behind the head."""
        self._sequencer.catch_up()

    def submit(self, raw: bytes, sender: bytes) -> None:
        """Take a transaction whose sender is known; raises `PoolRefusal`."""
        (transaction,) = decode_transactions([raw], senders=[sender])
        self.take(transaction, may_replace=True)

    def submit_next(self, raw: bytes, sender: bytes) -> None:
        """Submit a transaction that may not replace another one with its nonce."""
        (transaction,) = decode_transactions([raw], senders=[sender])
        self.take(transaction, may_replace=False)

    def take(self, transaction: Transaction, *, may_replace: bool) -> None:
        """Submit a decoded transaction. On a fork, the state that it needs is fetched first."""
        if self.fork is not None:
            block = self._sequencer.builder.block
            while missing := block.unknown([transaction], Allowance()):
                self.fork.find(missing, [transaction])
        self._sequencer.submit(transaction, may_replace=may_replace)

    def is_short_transaction(self, transaction: Transaction) -> bool:
        """Return True if that and the work that follows take at most a millisecond."""
        is_short = self._commits_quickly and not self.waiting
        return is_short and transaction.gas_limit <= SHORT_GAS

    def run_immediate(self) -> None:
        """Do what must happen before the senders of transactions get their responses."""
        with self._deferring():
            self._sequencer.run_immediate()
        self._notify_printer()

    @contextmanager
    def _deferring(self) -> Iterator[None]:
        """Defer work whose state is not found, so that it is tried again in a second."""
        try:
            yield
        except EndpointError as why:
            log.warning("fork_state_missing", why=str(why))
            self._sequencer.discard_uncommitted()
            self._rests_until_ns = self._clock.monotonic_ns() + SECOND_NS

    def is_short(self, command: AnyCommand, *, lazily: bool = False) -> bool:
        """Return True if a command takes at most a millisecond and does not wait for a disk.

        Its commit does not count if that can be made later, `lazily`.
        """
        can_wait = lazily and command.commits_later and self._commits_lazily
        return (can_wait or self._commits_quickly) and is_short(self._sequencer, command)

    def are_short(self, raws: Sequence[bytes], senders: Sequence[bytes]) -> bool:
        """Return True for few transactions that use little gas, if none waits."""
        if not self._commits_quickly or self.waiting or len(raws) > SHORT_COUNT:
            return False
        decoded = decode_transactions(list(raws), senders=list(senders))
        return sum(each.gas_limit for each in decoded) <= SHORT_GAS

    @property
    def _commits_quickly(self) -> bool:
        """Return True if the next commit is probably short."""
        is_quick = self._writer.commit_took_ns < SHORT_COMMIT_NS
        return is_quick and not self._waits and self.fork is None

    @property
    def _commits_lazily(self) -> bool:
        """Return True if commits may be left to reads, which wait for them."""
        is_quick = self._writer.commit_took_ns < LONG_COMMIT_NS
        return is_quick and not self._waits and self.fork is None

    @property
    def has_uncommitted(self) -> bool:
        """Return True if a command has changed something that is not committed."""
        return self._sequencer.changes.are_uncommitted

    def flush(self) -> None:
        """Commit what commands have changed."""
        self._sequencer.changes.flush()
        self._notify_printer()

    def execute(self, command: AnyCommand, *, lazily: bool = False) -> Any:  # noqa: ANN401, its own
        """Carry out a command; raises `RefusedCommand`.

        It is committed when this returns or, `lazily`, by `flush`, unless commits take long.
        """
        if self._sequencer.builder.has_transactions or command.abandons_blocks:
            self._printer.catch_up()
        with self._refusing():
            result = execute(self._sequencer, command, lazily=lazily and self._commits_lazily)
        self._notify_printer()
        if command.changes_output:
            self._print()
        return result

    def execute_together(
        self, commands: Sequence[SetAccount | AddBalance]
    ) -> list[RefusedCommand | None]:
        """Carry out commands that set accounts, in one commit; return the refusals."""
        if self._sequencer.builder.has_transactions:
            self._printer.catch_up()
        with self._refusing():
            return execute_together(self._sequencer, commands)

    def _change_fork(self, command: ResetFork | SetForkUrl) -> None:
        """Execute a command about the fork. Raises `RefusedCommand`, `EndpointError`."""
        if self.fork is None:
            raise RefusedCommand(NO_FORK)
        try:
            if isinstance(command, SetForkUrl):
                self.fork.use(command.url)
                self._sequencer.mining.change(fork=self.fork.origin)
                self._writer.refresh()
            else:
                self._restart_on(self.fork.another(command.url, command.block), self.fork)
        except BadSetting as why:
            raise RefusedCommand(str(why)) from None

    def _restart_on(self, fork: ForkedBase, before: ForkedBase) -> None:
        """Restart the chain on another block; nothing waits, and there are no snapshots."""
        old = self._sequencer.mining.state
        first = structs.replace(
            self._first_state(fork),
            attempts=old.attempts,
            branches=old.branches + 1,
            next_snapshot=old.next_snapshot,
        )
        self._sequencer.rewriter.snapshots.forget_from(0)
        self._writer.put_extra_row(dev_rows.KEY, dev_rows.encode_dev_state(first))
        self._writer.refresh()
        self._writer.close()
        try:
            fork.restart(self.store)
        except BaseException:
            fork.close()
            raise
        self.fork = fork  # which workers are answered by from now on
        before.close()
        try:
            self._begin()
        except EndpointError as why:  # there is no way back: the network has to restart
            raise RuntimeError(f"the fork cannot continue: {why}") from why
        self.tick()
        self._print()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Refuse a command whose state is not found; nothing of it is left."""
        mining = self._sequencer.mining
        state = mining.state
        try:
            yield
        except EndpointError as why:
            mining.change(**structs.asdict(state))
            self._sequencer.discard_uncommitted()
            raise RefusedCommand(str(why)) from None

    @property
    def waiting(self) -> int:
        """How many transactions wait."""
        return self._sequencer.builder.waiting

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after a sender's transactions that wait."""
        return self._sequencer.next_nonce(sender)

    def next_nonces(self) -> dict[bytes, int]:
        """The next nonces of at most `HINTED_SENDERS` senders whose transactions wait."""
        return self._sequencer.next_nonces(HINTED_SENDERS)

    @property
    def window(self) -> PoolReader:
        """A reader of the transactions that wait."""
        return self._sequencer.window

    def _print(self) -> None:
        """Apply the console output that the state of the chain selects."""
        output = console_output_of(self._chain, self._sequencer.mining.state)
        self._printer.follow(Ledger(self.store), output)

    def _notify_printer(self) -> None:
        """Let what was committed be printed."""
        if self._printer.is_on:
            partials = self._sequencer.builder.block.partials
            latest, last = self._sequencer.builder.parent.number, partials[-1] if partials else 0
            self._printer.committed(ReachedPosition(latest, last))

    def _restore_saved(self, saved: Iterable[Transaction]) -> None:
        """Put back what waited when the chain was stopped, as far as it may still run."""
        for transaction in saved:
            with suppress(PoolRefusal):
                self._sequencer.submit(transaction)

    def close(self) -> None:
        """Close the store in any case, and save the transactions that wait, if that can be."""
        self._printer.stop()
        try:
            self._writer.close()
        finally:
            if self.fork is not None:
                self.fork.close()
            self.store.close()
            self._save_pool()

    def _save_pool(self) -> None:
        """A disk on which nothing can be committed may not take the pool either."""
        try:
            save_pool(self._pool_file, self._sequencer.builder.pooled())
        except OSError as why:
            waited = self._sequencer.builder.waiting
            log.warning("pool_not_saved", file=str(self._pool_file), count=waited, why=str(why))


async def open_dev_network(  # noqa: PLR0913, keywords
    network: Network,
    clock: Clock,
    feed: Publisher | None,
    broadcast: Callable[[ToWorker], None],
    seen: SeenCommit | None = None,
    announce_change: Callable[[str], Awaitable[None]] | None = None,
    watchers: Watchers = NO_WATCHERS,
    *,
    commits: Commits = TO_STORE,
    fork: ForkedBase | None = None,
) -> NetworkWriter:
    """The writer of a development chain; it does not run yet.

    `broadcast` and `announce_change` are called on the running loop; `seen` is the last served
    commit of the network.
    Raises `ForeblockError`.
    """
    executor = ThreadPoolExecutor(1, f"foreblock-{network.name}")
    source = await open_dev_source(network, clock, feed, executor, seen, watchers, commits, fork)
    bus = (broadcast, announce_change, watchers.metrics)
    return NetworkWriter(network.name, source, clock, executor, *bus)


async def open_dev_source(  # noqa: PLR0913, PLR0917, all of it is needed
    network: Network,
    clock: Clock,
    feed: Publisher | None,
    executor: ThreadPoolExecutor,
    seen: SeenCommit | None = None,
    watchers: Watchers = NO_WATCHERS,
    commits: Commits = TO_STORE,
    fork: ForkedBase | None = None,
) -> DevChainSource:
    """The source of a development chain, opened on its thread; raises `ForeblockError`.

    Its first flashblock is committed, unless that may have to wait for a log: from the first
    request on, clients see the mining mode and a pending block.
    """
    loop, sink = asyncio.get_running_loop(), _feed_sink(network, clock, feed)

    def opened() -> DevChainSource:
        source = DevChainSource(network, clock, sink, seen, watchers, commits, fork)
        try:
            if commits is TO_STORE:
                source.tick()
        except BaseException:
            source.close()
            raise
        return source

    try:
        return await loop.run_in_executor(executor, opened)
    except BaseException:
        executor.shutdown()
        raise


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[T], None]) -> Callable[[T], None]:
    """Make a callback callable on any thread; on the thread of the loop it needs no waking."""
    thread = threading.get_ident()

    def call_soon(argument: T) -> None:
        if threading.get_ident() == thread:
            loop.call_soon(call, argument)
        else:
            loop.call_soon_threadsafe(call, argument)

    return call_soon


def _feed_sink(network: Network, clock: Clock, feed: Publisher | None) -> FeedSink:
    """The calls that publish and contradict on the feed, through its faults."""
    if feed is None:
        return FeedSink(_ignore, _ignore)
    assert network.dev is not None, "a development chain has its settings"
    subblocks = network.dev.feed_form == "subblocks"
    faulty = FaultyFeed(feed, Faults({}, network.dev.seed), clock, subblocks=subblocks)
    loop = asyncio.get_running_loop()
    return FeedSink(
        _on(loop, faulty.publish), _on(loop, faulty.contradict), _on(loop, faulty.set_faults)
    )


def _open_store(
    network: Network, seen: SeenCommit | None, commits: Commits, fork: ForkedBase | None
) -> Store:
    """The store of a development chain, which begins at its genesis or on a fork."""
    if fork is not None:
        return fork.open_store(seen)
    genesis = genesis_of(network)
    store = open_network_store(network, genesis, seen, commits)
    try:
        _refuse_fork(store)
        # For followers of the chain.
        (Path(network.data) / GENESIS_FILE).write_bytes(genesis_text(genesis))
    except BaseException:
        store.close()
        raise
    return store


def _refuse_fork(store: Store) -> None:
    """Raise `DifferentGenesis` for the store of a fork, whose state is known in part."""
    with store.view() as view:
        base = view.heads.base
    if not base.is_complete:
        raise DifferentGenesis("fork block", format_data(base.hash), "none")


def genesis_of(network: Network) -> Genesis:
    """The genesis of a development chain. Raises `BadGenesis`."""
    chain = network.dev
    assert chain is not None, "a development chain has its settings"
    if chain.genesis:
        return read_dev_genesis(_read(chain.genesis))
    preset = read_allocation(_read(chain.alloc)) if chain.alloc else None
    return dev_genesis(chain, network.began, preset)


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as why:
        raise BadGenesis(file, why.strerror or str(why)) from None


def _first_state(
    chain: ChainSettings, clock: Clock, fork: ForkedBase | None, *, shows_sealed: bool
) -> DevState:
    """The state of a chain that begins; the time of a fork continues from its block."""
    now = clock.wall_ns() // SECOND_NS
    began = chain.timestamp
    if not began and fork is not None:
        first = fork.first_block
        began = (fork.header if first is None else first.header).timestamp
    return DevState(
        instance=secrets.token_bytes(32),
        mining="automine" if chain.mining == "mixed" else chain.mining,
        also_clock=chain.mining == "mixed",
        block_time=chain.block_time,
        interval_ms=chain.interval_ms,
        offset=began - now if began else 0,
        fork=None if fork is None else fork.origin,
        faults=chain.faults,
        impersonates_all=chain.auto_impersonate,
        shows_sealed=shows_sealed,
    )


def _load(chain: ChainSettings, chain_id: int) -> Load | None:
    """Load from the later accounts; transactions that users send from these find nonces taken."""
    if not chain.load:
        return None
    accounts = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
    return Load(chain.load, accounts[first_of_load(chain.accounts) :], chain_id)
