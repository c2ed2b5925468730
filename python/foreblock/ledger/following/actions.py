"""Carry out the plans of messages (`plan`): execute, begin, compete, replace, or buffer.

An action may make others possible. It marks the heights that have changed, and the follower goes
through the buffered messages until no height is marked.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec.structs import replace

from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.classification import (
    Duplicate,
    Equivocation,
    FirstOnPending,
    FirstOnSealed,
    FirstOnUnknown,
    FirstUnproven,
    FlashblockRef,
    JobStatus,
    Known,
    Outcome,
    Restart,
    classify,
)
from foreblock.ledger.following.growth import Growth, StatePrefetch
from foreblock.ledger.following.jobs import Job, StepRef
from foreblock.ledger.following.missing_state import RetryBudget
from foreblock.ledger.following.plan import (
    Begin,
    Beginning,
    Buffer,
    BufferedTurn,
    Compete,
    Drop,
    Extend,
    FindParent,
    is_frozen,
    plan,
    turn_at_frozen,
    turn_of,
)
from foreblock.ledger.following.prober import Alternate, Prober, alternates
from foreblock.ledger.following.sealing import Sealing
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Applied, Overrun, Verdict, Wanting, judge
from foreblock.types import Flashblock


class WaitingMessages(NamedTuple):
    """Messages that wait; they outlive a failure of the store."""

    buffered: Buffered
    rounds: RetryBudget  # of messages that wait for state
    changed: set[int]  # heights whose buffered messages are to be tried


class ChainParts(NamedTuple):
    """The machine that messages act on, as it was read from the store."""

    chain: ServedChain
    sealing: Sealing
    growth: Growth
    prober: Prober
    prefetch: StatePrefetch


class Actions:
    """Classifies messages and carries out what is planned for them."""

    def __init__(
        self,
        parts: ChainParts,
        waiting: WaitingMessages,
        count: Callable[[Received, Verdict], bool],
        tally: Callable[[str], None],
        request_block: Callable[[bytes], None],
        depth: int,
    ) -> None:
        """`count` counts a verdict, and returns whether something was executed."""
        self._chain, self._sealing, self._growth, self._prober, self._prefetch = parts
        self._buffered, self._rounds, self._changed = waiting
        self._count: Final = count
        self._tally: Final = tally
        self._request_block: Final = request_block
        self._depth: Final = depth

    # --- Classifying ---------------------------------------------------------------------

    def classify(self, received: Received) -> Outcome:
        """Classify a message that has just been received, and count the outcome."""
        if received.message.base is not None:
            self._prove()
        outcome = Duplicate() if received in self._buffered else self._classify_new(received)
        is_contradiction = isinstance(outcome, Duplicate) and not self._agrees(received)
        self._tally(Equivocation.__name__ if is_contradiction else type(outcome).__name__)
        return outcome

    def _classify_new(self, received: Received) -> Outcome:
        """Classify a message that is not buffered.

        A buffered copy may claim other hashes or another predecessor, falsely, and must not
        stand in the way.
        """
        return classify(received.message, self._known(received.is_copy_of))

    def _known(self, leave_out: Callable[[Received], bool]) -> Known:
        """All that classifies a message, but for buffered messages that are to be left out."""
        chain = self._chain
        held = self._buffered.held_by_job(leave_out)
        return chain.jobs.known(chain.latest, chain.sealed, held, self._depth)

    def _agrees(self, received: Received) -> bool:
        """True if a copy of an executed message claims nothing that differs from the execution."""
        job, index = self._chain.jobs.get(*received.job), received.message.index
        step = job.steps[index] if job is not None and index < len(job.steps) else None
        if job is None or step is None or not received.is_copy_of(step.received):
            return True  # only buffered
        rules = self._chain.writer.profile.rules(job.block, step.header.timestamp, merged=True)
        sealed = step.sealed
        root = None if sealed is None else lambda: sealed.state_root
        return isinstance(judge(received.message, step.header, rules, root), Applied)

    def _copy_waits_for_state(self, received: Received) -> bool:
        """True if this would be executed twice, once state is fetched for its copy."""
        at = self._buffered.at(*received.job, received.message.index)
        return any(each.identity in self._rounds and each.is_copy_of(received) for each in at)

    def _prove(self) -> None:
        """Leave no block unproven that another one stands on."""
        chain = self._chain
        while len(served := chain.jobs.above(chain.latest.number)) > 1:
            self._prober.compute_roots(served[0])
            if not self._sealing.seal_if_proven():
                return

    # --- Acting --------------------------------------------------------------------------

    def act(self, received: Received, outcome: Outcome) -> bool:
        """Carry out the plan of a message that is not buffered; True if something was executed."""
        match plan(outcome, copy_waits=self._copy_waits_for_state(received)):
            case Drop():
                return False
            case Extend():
                return self._extend(received)
            case Begin(beginning):
                return self._begin(received, beginning)
            case FindParent():
                return self._find_parent(received)
            case Compete():
                return self._compete(received)
            case Buffer(revisits):
                return self._buffer(received, revisits=revisits)

    def act_on_waiting(self) -> bool:
        """Act on the first buffered message that can be acted on; False if none can."""
        for received in self._chain.to_reclassify:
            self._changed.add(received.message.block_number - 1)
            self._buffered.keep(received)
        self._chain.to_reclassify.clear()
        self._forget()
        return any(self._act_on_buffered(received) for received in self._buffered)

    def _act_on_buffered(self, received: Received) -> bool:
        job = self._chain.jobs.get(*received.job)
        if job is not None and is_frozen(job):
            if turn_at_frozen(job, received) is not BufferedTurn.ACT:
                return False
            self._buffered.remove(received)
            return self._extend(received)
        if received.message.base is not None:
            self._prove()
        outcome = classify(received.message, self._known(received.has_position_of))
        parent_changed = received.message.block_number - 1 in self._changed
        turn = turn_of(outcome, parent_changed=parent_changed)
        if turn is BufferedTurn.STAY:
            return False
        self._buffered.remove(received)
        if turn is BufferedTurn.ACT:
            return self.act(received, outcome)
        if not self._agrees(received):
            self._tally(Equivocation.__name__)
        return False

    def _forget(self) -> None:
        """Drop buffered messages that can change nothing any more."""
        latest, jobs = self._chain.latest.number, self._chain.jobs
        for received in self._buffered:
            if received.message.block_number <= latest:
                job = jobs.get(*received.job)
                if job is None or job.status is not JobStatus.UNSERVED:
                    self._buffered.remove(received)

    def _buffer(self, received: Received, *, revisits: bool) -> bool:
        self._buffered.keep(received)
        job = self._chain.jobs.get(*received.job)
        if revisits or is_frozen(job):
            self._changed.add(received.message.block_number)
        return job is not None and self._try_alternates(job)

    def _extend(self, received: Received) -> bool:
        job = self._chain.jobs.get(*received.job)
        assert job is not None, "it follows its job"
        if not job.is_served:
            self._changed.add(job.block)
            return self._count_or_wait(received, self._prober.probe(job, [received]))
        verdict = self._growth.extend(job, received)
        if isinstance(verdict, Wanting):
            self._prefetch.prefetch_after(received)
            return self._count_or_wait(received, verdict)
        if self._count(received, verdict):
            if any(self._prober.firsts_at(job.block + 1)):
                self._prober.compute_roots(job)  # what waits may follow in the same commit
                self._changed.add(job.block)
            return True
        self._buffered.keep(received)
        return self._try_alternates(job)

    def _begin(self, received: Received, outcome: Beginning) -> bool:
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
                        return self._find_parent(received)  # it stands elsewhere
            case _:
                verdict = self._begin_on_known(received, base.parent_hash)
        if not self._count_or_wait(received, verdict):
            return False
        self._changed.add(message.block_number)
        if self._chain.is_partial and isinstance(outcome, FirstUnproven):
            self._request_block(base.parent_hash)  # only its header can seal it
        return True

    def _begin_on_known(self, received: Received, parent_hash: bytes) -> Verdict:
        """Begin a block on the latest, or where the job stands that it replaces."""
        chain, number = self._chain, received.message.block_number
        if (number - 1, parent_hash) == (chain.latest.number, chain.latest.hash):
            return self._growth.begin(received)
        proven = chain.step_sealing_as(number - 1, parent_hash)
        if proven is not None:
            return self._growth.begin_proven(received, proven)
        other = chain.jobs.served(number)
        assert other is not None, "it replaces another job"
        assert other.stacked_on is not None, "the parent of that one is not proven"
        return self._growth.begin_unproven(
            received, self._step_ref(received.message, other.stacked_on)
        )

    def _find_parent(self, received: Received) -> bool:
        """Find out whether one of ours is the parent; if none is, wait."""
        message = received.message
        assert message.base is not None, "a block begins with its base"
        below = message.block_number - 1
        if self._prober.find_job_sealing_as(below, message.base.parent_hash):
            outcome = self._classify_new(received)
            stands_aside = isinstance(outcome, Restart) and not outcome.takes_over
            if not isinstance(outcome, FirstOnUnknown) and not stands_aside:
                return self.act(received, outcome)
        tip = self._chain.jobs.served(below)
        if tip is not None and tip.status is JobStatus.OPEN:
            tip.status = JobStatus.CLOSED
        self._buffered.keep(received)
        return False

    def _compete(self, received: Received) -> bool:
        """Execute the first message of a job beside a sealed block."""
        message, jobs = received.message, self._chain.jobs
        assert message.base is not None, "a block begins with its base"
        job = Job(*received.job, JobStatus.UNSERVED, message.base.parent_hash, received.feed)
        jobs.add(job)
        self._changed.add(job.block)
        if self._count_or_wait(received, self._prober.probe(job, [received])):
            return True
        jobs.remove(job)
        return False

    # --- Another prefix --------------------------------------------------------------------

    def _try_alternates(self, job: Job) -> bool:
        """Replace the end of a job if messages beyond its last follow another prefix."""
        chain, held = self._chain, self._prober.held(job)
        ended = chain.jobs.served(job.block + 1) is not None
        is_open = job.is_served and job.block > chain.latest.number and not ended
        if not is_open or not any(each.message.index >= len(job.steps) for each in held):
            return False
        for alternate in alternates(job, held, chain.writer.profile, beyond=len(job.steps)):
            if self._replace(job, alternate):
                for each in alternate.messages:
                    self._buffered.remove(each)
                self._tally("Replaced")
                return True
        return False

    def _replace(self, job: Job, alternate: Alternate) -> bool:
        if alternate.start > 0:
            return self._growth.replace(job, alternate.start, alternate.messages)
        first, *later = alternate.messages
        known = self._known(first.has_position_of)
        others = tuple(each for each in known.candidates if each.payload_id != job.payload_id)
        outcome = classify(first.message, replace(known, candidates=others))
        if not isinstance(outcome, FirstOnSealed | FirstOnPending | FirstUnproven):
            return False
        before = job.received
        if not self._begin(first, outcome):
            return False
        self._chain.to_reclassify += before
        return all(self._extend(each) for each in later)

    # --- Small parts -----------------------------------------------------------------------

    def _count_or_wait(self, received: Received, verdict: Verdict) -> bool:
        """Count a verdict; a message that wants state is kept, but not for ever."""
        if isinstance(verdict, Wanting):
            if self._rounds.is_over(received.identity):
                verdict = Overrun("its state is not known after too many rounds")
            else:
                self._buffered.keep(received)
                return self._count(received, verdict)
        self._rounds.done(received.identity)
        return self._count(received, verdict)

    def _step_ref(self, message: Flashblock, parent: FlashblockRef) -> StepRef:
        job = self._chain.jobs.get(message.block_number - 1, parent.payload_id)
        assert job is not None, "a classification names a job that it was shown"
        return StepRef(job, parent.index)
