"""A chain that others sequence: messages and canonical blocks in, commits out.

Synchronous, on one thread, without sockets and without waiting. Each message is classified
(`classification`), executed and judged (`message_execution`), and added to the served chain
(`growth`, `sealing`) in one commit. A message that cannot be acted on yet is buffered within
bounds and classified again when something has changed. Nothing that a feed sends raises: it
is counted.

Only the store raises: a disk that is full, a file that is damaged. The next call continues
from the last commit.

Over 500 lines: it is one machine, whose steps call each other and share what waits.
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
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds, Buffered, Received, memory_of
from foreblock.ledger.following.call_templates import CallTemplates
from foreblock.ledger.following.canonical import WAITS, Canonical
from foreblock.ledger.following.canonical_verifier import BoundedBlocks
from foreblock.ledger.following.classification import (
    DEFAULT_DEPTH,
    Competing,
    DroppedJob,
    Duplicate,
    Equivocation,
    FirstOnPending,
    FirstOnSealed,
    FirstOnUnknown,
    FirstUnproven,
    FlashblockRef,
    Known,
    Next,
    Old,
    Outcome,
    Restart,
    Standing,
    TooFar,
    classify,
)
from foreblock.ledger.following.growth import Growth, Lookahead
from foreblock.ledger.following.jobs import Job, Jobs, StepRef, bodies_named, read_jobs
from foreblock.ledger.following.message_execution import BoundedRuns
from foreblock.ledger.following.missing_state import MissingState, RetryBudget
from foreblock.ledger.following.prober import Alternate, Prober, alternates
from foreblock.ledger.following.sealing import Sealing
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import (
    Applied,
    Overrun,
    Verdict,
    Wanting,
    judge,
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
        """`wanted` asks for a missing block by its hash; `templates` say what calls will read."""
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
        self._dirty_heights: set[int] = set()  # heights with news
        self._blocks: Final = BoundedBlocks(clock, run_bounds)
        self._is_behind = True
        self._is_broken = False  # what is in memory differs from the store
        self._asked: bytes | None = None
        self._rounds: Final = RetryBudget()
        self._looks_ahead = True
        self._far: bytes | None = None  # the parent of what was too far ahead to be kept
        self.last_error: str | None = None
        self.chain: ServedChain
        self._recover()

    # --- From outside ------------------------------------------------------------------

    @property
    def counters(self) -> Mapping[str, int]:
        """How often each outcome and each verdict occurred."""
        return self._counters | {"DrivenOut": self.buffered.driven_out}

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
            self._disbelieve(feed)
            message = replace(message, edits=())
        received = Received(feed, memory_of(message), message, self._clock.monotonic_ns())
        with self._recovering():
            self._receive(received)

    def _disbelieve(self, feed: str) -> None:
        """Count and log, once, that a chain has state edits."""
        if not self._counters["StateEdits"]:
            log.warning("state_edits_refused", feed=feed, setting="accept_state_edits")
        self._counters["StateEdits"] += 1

    def take_wanted(self) -> MissingState:
        """The state that messages and blocks have wanted since the last call, and that waits."""
        return self._runs.take_wanted()

    def try_again(self, *, learned: bool) -> None:
        """Try again what waits for state, of which some was `learned` or not."""
        with self._recovering():
            if learned:
                self._rounds.learned()
            for each in self.buffered:
                self._dirty_heights.update(
                    (each.message.block_number - 1, each.message.block_number)
                )
            if self._dirty_heights:
                self._finish()

    def fill(self, block_hash: bytes, nodes: Sequence[bytes]) -> None:
        """Take trie nodes that the root of a block needs, for when it comes again."""
        self._canonical.fill(block_hash, nodes)

    def look_ahead(self, *, is_on: bool) -> None:
        """True if messages behind one that waits for state are tried meanwhile."""
        self._looks_ahead = self._ahead.is_on = is_on

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
            self._dirty_heights.add(block.header.number)
            self._finish()

    def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Take in which blocks are safe and final, as the canonical source says."""
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

    # --- Classifying -----------------------------------------------------------------------

    def _receive(self, received: Received) -> None:
        if self.chain.jobs.is_forgotten(*received.job):
            self._tally("DroppedJob")
            return
        if received.message.base is not None:
            self._prove()
        outcome = Duplicate() if received in self.buffered else self._classify_new(received)
        is_contradiction = isinstance(outcome, Duplicate) and not self._agrees(received)
        self._tally(Equivocation.__name__ if is_contradiction else type(outcome).__name__)
        if self._act(received, outcome):
            self._dirty_heights.add(received.message.block_number)
        elif self.chain.is_partial and not isinstance(outcome, Next) and received in self.buffered:
            self._ahead.try_ahead([received])
        self._finish()
        base = received.message.base
        if base is not None and isinstance(outcome, TooFar | Restart | FirstOnUnknown):
            is_far = isinstance(outcome, TooFar)
            if is_far:
                self._far = base.parent_hash
            waits = is_far or received in self.buffered
            if waits and base.parent_hash != self._asked:
                self._ask(base.parent_hash)

    def _finish(self) -> None:
        """Act on all messages that may have waited for the last step, and commit."""
        while (self._dirty_heights or self.chain.to_reclassify) and self._act_on_waiting():
            pass
        self._dirty_heights.clear()
        self.chain.flush()
        self._is_behind = True
        missing = self._missing_below_kept()
        if missing is not None and missing != self._asked:
            self._ask(missing)

    def _act(self, received: Received, outcome: Outcome) -> bool:
        """Do what an outcome asks for; whether something was executed."""
        match outcome:
            case Duplicate() | Old() | TooFar():
                return False
            case _ if self._copy_waits_for_state(received):
                pass
            case Next():
                return self._extend(received)
            case FirstOnSealed() | FirstOnPending() | FirstUnproven() | Restart(takes_over=True):
                return self._begin(received, outcome)
            case FirstOnUnknown() | Restart():
                return self._decide(received)
            case Competing():
                return self._compete(received)
            case Equivocation() | DroppedJob():
                self._dirty_heights.add(received.message.block_number)
            case _:
                pass
        self.buffered.keep(received)
        job = self.chain.jobs.get(*received.job)
        if job is not None and job.standing is Standing.FROZEN:
            self._dirty_heights.add(job.block)
        return job is not None and self._try_alternates(job)

    def _act_on_waiting(self) -> bool:
        """Act on the first buffered message that can be acted on; false when none can."""
        for received in self.chain.to_reclassify:
            self._dirty_heights.add(received.message.block_number - 1)
            self.buffered.keep(received)
        self.chain.to_reclassify.clear()
        self._forget()
        return any(self._act_on(received) for received in self.buffered)

    def _act_on(self, received: Received) -> bool:
        job = self.chain.jobs.get(*received.job)
        if job is not None and job.standing is Standing.FROZEN:
            fits = received.message.index == len(job.steps)
            if not fits or job.refuses(job.received, received):
                return False
            self.buffered.remove(received)
            return self._extend(received)
        if received.message.base is not None:
            self._prove()
        outcome = classify(received.message, self._known(received.is_for_place_of))
        match outcome:
            case Next() | FirstOnSealed() | FirstOnPending() | Restart(takes_over=True):
                pass
            case FirstOnUnknown() | Restart() | FirstUnproven():
                if received.message.block_number - 1 not in self._dirty_heights:
                    return False
            case Duplicate():  # a copy was executed meanwhile
                self.buffered.remove(received)
                if not self._agrees(received):
                    self._tally(Equivocation.__name__)
                return False
            case _:
                return False
        self.buffered.remove(received)
        return self._act(received, outcome)

    # --- Acting ------------------------------------------------------------------------

    def _extend(self, received: Received) -> bool:
        job = self.chain.jobs.get(*received.job)
        assert job is not None, "it follows its job"
        if not job.is_served:
            self._dirty_heights.add(job.block)
            return self._count_or_wait(received, self._prober.probe(job, [received]))
        verdict = self._growth.extend(job, received)
        if isinstance(verdict, Wanting):
            self._ahead.look_beyond(received)
            return self._count_or_wait(received, verdict)
        if self._count(received, verdict):
            if any(self._prober.firsts_at(job.block + 1)):
                self._prober.compute_roots(job)  # what waits may follow in the same commit
                self._dirty_heights.add(job.block)
            return True
        self.buffered.keep(received)
        return self._try_alternates(job)

    def _begin(self, received: Received, outcome: Outcome) -> bool:
        message, base = received.message, received.message.base
        assert base is not None, "a block begins with its base"
        match outcome:
            case FirstOnPending(parent):
                verdict = self._growth.begin_proven(received, self._step_ref(message, parent))
            case FirstUnproven(parent):
                at = self._step_ref(message, parent)
                verdict = self._growth.begin_unproven(received, at)
                if not isinstance(verdict, Applied | Wanting):
                    self._prober.compute_roots(at.job)
                    if at.step.sealed is None or at.step.sealed.hash != base.parent_hash:
                        return self._decide(received)  # it stands elsewhere
            case _:
                verdict = self._begin_on_known(received, base.parent_hash)
        if not self._count_or_wait(received, verdict):
            return False
        self._dirty_heights.add(message.block_number)
        if self.chain.is_partial and isinstance(outcome, FirstUnproven):
            self._ask(base.parent_hash)  # only its header can seal it
        return True

    def _begin_on_known(self, received: Received, parent_hash: bytes) -> Verdict:
        """Begin a block on the latest, or where the job stands that it replaces."""
        chain, number = self.chain, received.message.block_number
        if (number - 1, parent_hash) == (chain.latest.number, chain.latest.hash):
            return self._growth.begin(received)
        proven = self.chain.step_sealing_as(number - 1, parent_hash)
        if proven is not None:
            return self._growth.begin_proven(received, proven)
        other = chain.jobs.served(number)
        assert other is not None, "it replaces another job"
        assert other.stacked_on is not None, "the parent of that one is not proven"
        return self._growth.begin_unproven(
            received, self._step_ref(received.message, other.stacked_on)
        )

    def _decide(self, received: Received) -> bool:
        """Find out whether one of ours is the parent; if none is, wait."""
        message = received.message
        assert message.base is not None, "a block begins with its base"
        below = message.block_number - 1
        if self._prober.find_job_sealing_as(below, message.base.parent_hash):
            outcome = self._classify_new(received)
            stands_aside = isinstance(outcome, Restart) and not outcome.takes_over
            if not isinstance(outcome, FirstOnUnknown) and not stands_aside:
                return self._act(received, outcome)
        tip = self.chain.jobs.served(below)
        if tip is not None and tip.standing is Standing.OPEN:
            tip.standing = Standing.CLOSED
        self.buffered.keep(received)
        return False

    def _compete(self, received: Received) -> bool:
        """Execute the first message of a job beside a sealed block."""
        message, jobs = received.message, self.chain.jobs
        assert message.base is not None, "a block begins with its base"
        job = Job(*received.job, Standing.ASIDE, message.base.parent_hash, received.feed)
        jobs.add(job)
        self._dirty_heights.add(job.block)
        if self._count_or_wait(received, self._prober.probe(job, [received])):
            return True
        jobs.remove(job)
        return False

    def _try_alternates(self, job: Job) -> bool:
        """Go on otherwise with a job, if messages beyond its last follow another prefix."""
        chain, held = self.chain, self._prober.held(job)
        ended = chain.jobs.served(job.block + 1) is not None
        is_open = job.is_served and job.block > chain.latest.number and not ended
        if not is_open or not any(each.message.index >= len(job.steps) for each in held):
            return False
        for alternate in alternates(job, held, self._writer.profile, beyond=len(job.steps)):
            if self._replace(job, alternate):
                for each in alternate.messages:
                    self.buffered.remove(each)
                self._counters["Replaced"] += 1
                return True
        return False

    def _replace(self, job: Job, alternate: Alternate) -> bool:
        if alternate.start > 0:
            return self._growth.replace(job, alternate.start, alternate.messages)
        first, *later = alternate.messages
        known = self._known(first.is_for_place_of)
        others = tuple(each for each in known.candidates if each.payload_id != job.payload_id)
        outcome = classify(first.message, replace(known, candidates=others))
        if not isinstance(outcome, FirstOnSealed | FirstOnPending | FirstUnproven):
            return False
        before = job.received
        if not self._begin(first, outcome):
            return False
        self.chain.to_reclassify += before
        return all(self._extend(each) for each in later)

    # --- Behind the head ---------------------------------------------------------------

    def _compute_root(self) -> bool:
        chain = self.chain
        for job in chain.jobs.above(chain.latest.number):
            if self._growth.compute_root(job):
                proven = self._sealing.seal_if_proven()
                if proven or any(self._prober.firsts_at(job.block + 1)):
                    self._dirty_heights.add(job.block)
                    self._finish()
                return True
        return False

    def _prove(self) -> None:
        """Leave no block unproven that another one stands on."""
        chain = self.chain
        while len(served := chain.jobs.above(chain.latest.number)) > 1:
            self._prober.compute_roots(served[0])
            if not self._sealing.seal_if_proven():
                return

    def _forget(self) -> None:
        """Keep no message that can change nothing any more."""
        latest, jobs = self.chain.latest.number, self.chain.jobs
        for received in self.buffered:
            if received.message.block_number <= latest:
                job = jobs.get(*received.job)
                if job is None or job.standing is not Standing.ASIDE:
                    self.buffered.remove(received)

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
        """Take up what the store has."""
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
        self._growth = Growth(chain, sealing)
        self._prober = prober = Prober(chain, self._growth, self.buffered, self._count)
        self._ahead = Lookahead(chain, self.buffered, is_on=self._looks_ahead)
        self._canonical = Canonical(
            chain, sealing, self._blocks, prober.find_job_sealing_as, self._wanted
        )
        self._is_broken = False

    # --- Small things ------------------------------------------------------------------

    def _count_or_wait(self, received: Received, verdict: Verdict) -> bool:
        """Count a verdict; a message that wants state is kept, but not for ever."""
        if isinstance(verdict, Wanting):
            if self._rounds.is_over(received.identity):
                verdict = Overrun("its state is not known after too many rounds")
            else:
                self.buffered.keep(received)
                return self._count(received, verdict)
        self._rounds.done(received.identity)
        return self._count(received, verdict)

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

    def _ask(self, block_hash: bytes) -> None:
        self._asked = block_hash
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

    def _step_ref(self, message: Flashblock, parent: FlashblockRef) -> StepRef:
        job = self.chain.jobs.get(message.block_number - 1, parent.payload_id)
        assert job is not None, "a classification names a job that it was shown"
        return StepRef(job, parent.index)

    def _classify_new(self, received: Received) -> Outcome:
        """Where a message stands that is not buffered.

        A buffered copy may claim other hashes or another predecessor, falsely, and must not
        stand in the way.
        """
        return classify(received.message, self._known(received.is_copy_of))

    def _agrees(self, received: Received) -> bool:
        """True if a copy of an executed message claims nothing that differs from the execution."""
        job, index = self.chain.jobs.get(*received.job), received.message.index
        step = job.steps[index] if job is not None and index < len(job.steps) else None
        if job is None or step is None or not received.is_copy_of(step.received):
            return True  # only buffered
        rules = self._writer.profile.rules(job.block, step.header.timestamp, merged=True)
        sealed = step.sealed
        root = None if sealed is None else lambda: sealed.state_root
        return isinstance(judge(received.message, step.header, rules, root), Applied)

    def _copy_waits_for_state(self, received: Received) -> bool:
        """True if this would be executed twice, once state is fetched for its copy."""
        at = self.buffered.at(*received.job, received.message.index)
        return any(each.identity in self._rounds and each.is_copy_of(received) for each in at)

    def _known(self, leave_out: Callable[[Received], bool]) -> Known:
        """All that classifies a message, but for buffered messages that are to be left out."""
        chain = self.chain
        held = self.buffered.held_by_job(leave_out)
        return chain.jobs.known(chain.latest, chain.sealed, held, self._depth)
