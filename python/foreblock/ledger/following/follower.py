"""A chain that others sequence: messages and canonical blocks in, commits out.

Synchronous, on one thread, without sockets and without waiting. Each message is classified
(`classification`), planned (`plan`), executed and judged (`actions`, `message_execution`), and
added to the served chain (`growth`, `sealing`) in one commit. A message that cannot be acted on
yet is buffered within bounds and classified again when something has changed. Nothing that a feed
sends raises: it is counted.

Only the store raises: a disk that is full, a file that is damaged. The next call continues
from the last commit.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import structlog

from foreblock._engine import Block
from foreblock.clock import Clock
from foreblock.errors import StoreError
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.actions import Actions, ChainParts, WaitingMessages
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds, Buffered, Received, memory_of
from foreblock.ledger.following.call_templates import CallTemplates
from foreblock.ledger.following.canonical import WAITS, Canonical
from foreblock.ledger.following.canonical_verifier import BoundedBlocks
from foreblock.ledger.following.classification import (
    DEFAULT_DEPTH,
    FirstOnUnknown,
    Next,
    Restart,
    TooFar,
)
from foreblock.ledger.following.growth import Growth, StatePrefetch
from foreblock.ledger.following.jobs import Jobs, bodies_named, read_jobs
from foreblock.ledger.following.message_execution import BoundedRuns
from foreblock.ledger.following.missing_state import MissingState, RetryBudget
from foreblock.ledger.following.prober import Prober
from foreblock.ledger.following.sealing import Sealing
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import (
    Applied,
    Verdict,
    Wanting,
    malformed,
)
from foreblock.types import Flashblock

NEVER_NS: Final = (1 << 63) - 1
_RUN_BOUNDS: Final = RunBounds()

log = structlog.get_logger()


class Follower:
    """Follows one network."""

    def __init__(  # noqa: PLR0913, all of it is needed
        self,
        writer: LedgerWriter,
        clock: Clock,
        bounds: BufferBounds,
        publish: Callable[[Flashblock], None],
        wanted: Callable[[bytes], None],
        *,
        depth: int = DEFAULT_DEPTH,
        run_bounds: RunBounds = _RUN_BOUNDS,
        templates: CallTemplates | None = None,
    ) -> None:
        """`wanted` requests a missing block; `templates` predict what calls will read."""
        self._accepts_edits: Final = run_bounds.accept_state_edits
        self._writer: Final = writer
        self._clock: Final = clock
        self._bounds: Final = bounds
        self._publish: Final = publish
        self._wanted: Final = wanted
        self._depth: Final = depth
        self._runs: Final = BoundedRuns(clock, run_bounds, templates)
        self._counters: Counter[str] = Counter()
        self.buffered: Final = Buffered(bounds)
        self._changed: Final[set[int]] = set()  # heights whose buffered messages are to be tried
        self._blocks: Final = BoundedBlocks(clock, run_bounds)
        self._is_behind = True
        self._is_broken = False  # what is in memory differs from the store
        self._requested: bytes | None = None
        self._rounds: Final = RetryBudget()
        self._prefetches = True
        self._far: bytes | None = None  # the parent of what was too far ahead to be kept
        self.last_error: str | None = None
        self.chain: ServedChain
        self._recover()

    # --- From outside ------------------------------------------------------------------

    @property
    def counters(self) -> Mapping[str, int]:
        """How often each outcome and each verdict occurred."""
        return self._counters | {"DrivenOut": self.buffered.evicted}

    @property
    def missing(self) -> bytes | None:
        """The hash of the block without which it cannot continue."""
        return self._missing_below_kept() or self._far

    def receive(self, message: Flashblock, feed: str) -> None:
        field = malformed(message, is_optimism=self._writer.profile.optimism is not None)
        if field is not None:
            self._counters["Malformed"] += 1
            self.last_error = f"{feed}: malformed {field}"
            return
        if message.edits and not self._accepts_edits:
            self._count_state_edits(feed)
            message = replace(message, edits=())
        received = Received(feed, memory_of(message), message, self._clock.monotonic_ns())
        with self._recovering():
            self._receive(received)

    def _count_state_edits(self, feed: str) -> None:
        """Count and log, once, that a chain has state edits."""
        if not self._counters["StateEdits"]:
            log.warning("state_edits_refused", feed=feed, setting="accept_state_edits")
        self._counters["StateEdits"] += 1

    def take_wanted(self) -> MissingState:
        """The state that messages and blocks have wanted since the last call, and that waits."""
        return self._runs.take_wanted()

    def try_again(self, *, learned: bool) -> None:
        """Retry what waits for state; `learned` is true if some was fetched since."""
        with self._recovering():
            if learned:
                self._rounds.learned()
            for each in self.buffered:
                self._changed.update((each.message.block_number - 1, each.message.block_number))
            if self._changed:
                self._finish()

    def fill(self, block_hash: bytes, nodes: Sequence[bytes]) -> None:
        """Take trie nodes that the root of a block needs, for when it comes again."""
        self._canonical.fill(block_hash, nodes)

    def prefetch_state(self, *, is_on: bool) -> None:
        """Enable or disable fetching state for the messages behind one that waits for its own."""
        self._prefetches = self._prefetch.is_on = is_on

    def bodies_named(self, block_hash: bytes) -> list[tuple[bytes, ...]]:
        """The transactions of each job that may be the block of this hash."""
        return list(bodies_named(block_hash, self.chain.jobs, self.buffered))

    def take_wasted(self) -> Mapping[str, int]:
        """The time spent in vain since the last call, in nanoseconds, by feed."""
        return self._runs.take_wasted()

    def canonical(self, block: Block, later: Sequence[Block] = ()) -> None:
        """Take in a sealed block of the canonical chain, with some of those that follow it."""
        with self._recovering():
            error = self._canonical.take_in(block, later)
            if error != WAITS:
                self.last_error = error or self.last_error
            self._far = None
            self._changed.add(block.header.number)
            self._finish()

    def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Accept the safe and the finalized block of the canonical source."""
        with self._recovering():
            self._writer.name_heads(safe, finalized)

    @property
    def next_due_ns(self) -> int:
        """When `tick` has something to do, in monotonic time; 0 for at once."""
        return 0 if self._is_behind else NEVER_NS

    def tick(self) -> None:
        """A slice of the work behind the head."""
        with self._recovering():
            if not self._compute_root():
                self._is_behind = self._writer.follow_up()

    def close(self) -> None:
        """Close all views; the store stays open."""
        self.chain.close()
        self._writer.close()

    # --- Receiving -------------------------------------------------------------------------

    def _receive(self, received: Received) -> None:
        if self.chain.jobs.is_forgotten(*received.job):
            self._tally("DroppedJob")
            return
        outcome = self._actions.classify(received)
        if self._actions.act(received, outcome):
            self._changed.add(received.message.block_number)
        elif self.chain.is_partial and not isinstance(outcome, Next) and received in self.buffered:
            self._prefetch.prefetch([received])
        self._finish()
        base = received.message.base
        if base is not None and isinstance(outcome, TooFar | Restart | FirstOnUnknown):
            is_far = isinstance(outcome, TooFar)
            if is_far:
                self._far = base.parent_hash
            waits = is_far or received in self.buffered
            if waits and base.parent_hash != self._requested:
                self._request_block(base.parent_hash)

    def _finish(self) -> None:
        """Act on all messages that may have waited for the last step, and commit."""
        while (self._changed or self.chain.to_reclassify) and self._actions.act_on_waiting():
            pass
        self._changed.clear()
        self.chain.flush()
        self._is_behind = True
        missing = self._missing_below_kept()
        if missing is not None and missing != self._requested:
            self._request_block(missing)

    # --- Behind the head ---------------------------------------------------------------

    def _compute_root(self) -> bool:
        chain = self.chain
        for job in chain.jobs.above(chain.latest.number):
            if self._growth.compute_root(job):
                proven = self._sealing.seal_if_proven()
                if proven or any(self._prober.firsts_at(job.block + 1)):
                    self._changed.add(job.block)
                    self._finish()
                return True
        return False

    @contextmanager
    def _recovering(self) -> Iterator[None]:
        """Start again from the store after any failure; only failures of the store are raised."""
        if self._is_broken:
            self._recover()
        try:
            yield
        except StoreError:
            self._is_broken = True
            raise
        except Exception as failed:
            self._is_broken = True
            self._counters["Failed"] += 1
            self.last_error = f"{type(failed).__name__}: {failed}"
            log.exception("following_failed")

    def _recover(self) -> None:
        """Read the served chain from the store."""
        if self._is_broken:
            self.chain.close()
        jobs = Jobs(self._bounds.jobs_per_height)
        self.chain = chain = ServedChain(
            self._writer,
            self._clock,
            jobs,
            self._runs,
            self._publish,
            self._tally,
            self._depth,
        )
        with chain.store.view() as view:
            for job in read_jobs(view, self._depth):
                jobs.add(job)
        self._sealing = sealing = Sealing(chain)
        self._growth = growth = Growth(chain, sealing)
        self._prober = prober = Prober(chain, growth, self.buffered, self._count)
        self._prefetch = StatePrefetch(chain, self.buffered, is_on=self._prefetches)
        self._actions = Actions(
            ChainParts(chain, sealing, growth, prober, self._prefetch),
            WaitingMessages(self.buffered, self._rounds, self._changed),
            self._count,
            self._tally,
            self._request_block,
            self._depth,
        )
        self._canonical = Canonical(
            chain, sealing, self._blocks, prober.find_job_sealing_as, self._wanted
        )
        self._is_broken = False

    # --- Counting ------------------------------------------------------------------

    def _count(self, received: Received, verdict: Verdict) -> bool:
        self._tally(type(verdict).__name__)
        if isinstance(verdict, Wanting):
            return False
        if isinstance(verdict, Applied):
            self._far = None  # it continues, so nothing is missed
            return True
        message = received.message
        where = f"{message.block_number}.{message.index}"
        self.last_error = f"{received.feed}: {where}: {verdict}"
        log.warning("flashblock_refused", feed=received.feed, place=where, why=str(verdict))
        return False

    def _tally(self, what: str) -> None:
        self._counters[what] += 1

    def _request_block(self, block_hash: bytes) -> None:
        self._requested = block_hash
        self._wanted(block_hash)

    def _missing_below_kept(self) -> bytes | None:
        """The parent of the lowest block that waits."""
        latest = self.chain.latest.number
        tip = latest + len(self.chain.jobs.above(latest))
        firsts = [each.message for each in self.buffered if each.message.base is not None]
        waiting = [each for each in firsts if each.block_number > tip]
        if not waiting:
            return None
        base = min(waiting, key=lambda each: each.block_number).base
        return None if base is None else base.parent_hash
