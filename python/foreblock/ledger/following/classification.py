"""Classify an incoming flashblock: one pure function, one named outcome.

    classify(message, known) -> Outcome

`known` is the only other input: the sealed chain, and the candidates, which are the build
jobs received: all messages of one payload id for one block. A message is identified by its
content, because not every feed provides hashes. Hashes of sealed blocks decide which block
follows which, and the link to the predecessor only where no hash can yet: what a block will
seal as is known once its state root is computed, and the next block's `base.parent_hash`
found among these says which prefix was sealed.

Nothing is executed, kept or dropped here; an outcome states the facts, and its docstring the
consequences. Execution verifies the message later.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from foreblock.types import Content, Flashblock, FlashblockId

# How many blocks may be stacked on the sealed chain.
DEFAULT_DEPTH: Final = 4


class JobStatus(Enum):
    """The status of a build job."""

    WAITING = auto()  # nothing of it is executed: index 0 or the parent is missing
    OPEN = auto()  # served, and growing
    FROZEN = auto()  # served up to its last good flashblock; the next one was refused
    CLOSED = auto()  # served or sealed; its successor began where more of it is missing
    DROPPED = auto()  # lost to another job of its height
    UNSERVED = auto()  # executed beside a sealed block of its height, and not served


SERVED: Final = frozenset({JobStatus.OPEN, JobStatus.FROZEN, JobStatus.CLOSED})


class KnownStep(Struct, frozen=True):
    """An executed flashblock of a candidate."""

    content: Content
    seals_as: bytes | None = None  # the block's hash if it ends here; none until it is computed


class Candidate(Struct, frozen=True):
    """A build job that was received."""

    block: int
    payload_id: bytes
    status: JobStatus
    parent_hash: bytes | None = None  # of the sealed parent; none while index 0 is missing
    prefix: tuple[KnownStep, ...] = ()  # what is executed, from index 0 on without a gap
    # Messages that are kept and not executed: buffered, alternates, refused.
    held: tuple[Content, ...] = ()

    def at(self, index: int) -> list[Content]:
        """The messages of this index, the executed one first."""
        executed = (step.content for step in self.prefix[index : index + 1])
        return [*executed, *(each for each in self.held if each.index == index)]


class FlashblockRef(Struct, frozen=True):
    """A flashblock of a known job."""

    payload_id: bytes
    index: int


class Known(Struct, frozen=True):
    """The chain and the jobs, at the moment in which a message arrives."""

    latest_number: int
    latest_hash: bytes
    sealed: Mapping[int, bytes] = field(default_factory=dict)  # hashes of retained blocks
    candidates: tuple[Candidate, ...] = ()
    depth: int = DEFAULT_DEPTH

    def job(self, block: int, payload_id: bytes) -> Candidate | None:
        """The job of this height and payload id."""
        for candidate in self.candidates:
            if candidate.block == block and candidate.payload_id == payload_id:
                return candidate
        return None

    def served(self, block: int) -> Candidate | None:
        """The job that is served at this height, if the height is not sealed."""
        if block <= self.latest_number:
            return None
        for candidate in self.candidates:
            if candidate.block == block and candidate.prefix and candidate.status in SERVED:
                return candidate
        return None

    @property
    def tip(self) -> int:
        """The height of the newest block that is served, sealed or not."""
        number = self.latest_number
        while self.served(number + 1) is not None:
            number += 1
        return number

    def sealing_as(self, block: int, block_hash: bytes) -> FlashblockRef | None:
        """The partial of this height that seals as this hash, of any job."""
        for candidate in self.candidates:
            if candidate.block == block:
                for index, step in enumerate(candidate.prefix):
                    if step.seals_as == block_hash:
                        return FlashblockRef(candidate.payload_id, index)
        return None


class Duplicate(Struct, frozen=True):
    """Known by its content: count it, publish nothing."""


class Equivocation(Struct, frozen=True):
    """It contradicts what is known of its place: keep the first, and this as an alternate."""


class Next(Struct, frozen=True):
    """It follows the last one executed of its job: execute it, then what is buffered."""


class FirstOnSealed(Struct, frozen=True):
    """It begins a block on the latest sealed one."""


class FirstOnPending(Struct, frozen=True):
    """It begins a block and proves that the one before ended at this partial: seal that.

    The partial may be of a job that was dropped or is not served; then that one was right.
    """

    parent: FlashblockRef


class FirstUnproven(Struct, frozen=True):
    """It claims to begin on our last partial, whose root is not computed: stack, do not seal."""

    parent: FlashblockRef


class FirstOnUnknown(Struct, frozen=True):
    """It begins on a block that we cannot name: buffer the job, ask for the parent by hash.

    `missing` is the last flashblock of the parent where the message names one that we lack.
    `undecided` says that a root which is not computed yet may still name the parent: then
    classify it again before asking.
    """

    parent_hash: bytes
    missing: FlashblockId | None = None
    undecided: bool = False


class Restart(Struct, frozen=True):
    """A new job for a height that is being served by another one.

    It takes over at once if it stands on the same parent or on another one of ours; the
    other one and all above it are dropped, and kept until the height is sealed.
    """

    replaces: bytes
    takes_over: bool


class Competing(Struct, frozen=True):
    """A new job for a sealed height, on a known parent: execute it, do not serve it."""


class Gap(Struct, frozen=True):
    """It cannot be joined to its job now: buffer it; it makes nothing fresher."""

    expected: int  # the index that the job would continue with


class BrokenLink(Struct, frozen=True):
    """It has the next index and names another predecessor: as with a gap."""

    named: FlashblockId


class Orphan(Struct, frozen=True):
    """Index 0 of its job was not received: buffer it."""


class Ahead(Struct, frozen=True):
    """It begins a block whose parent has not begun: buffer it."""


class TooFar(Struct, frozen=True):
    """Higher than blocks may be stacked: count it, ignore it."""


class Old(Struct, frozen=True):
    """Its height is sealed: count it, ignore it."""


class DroppedJob(Struct, frozen=True):
    """Of a job that lost: count it, and buffer it until its height is sealed.

    If a block waits for its parent, this may be the missing part: the dropped job was right
    if, with its buffered messages executed, one of its partials seals as that parent.
    """


Outcome = (
    Duplicate
    | Equivocation
    | Next
    | FirstOnSealed
    | FirstOnPending
    | FirstUnproven
    | FirstOnUnknown
    | Restart
    | Competing
    | Gap
    | BrokenLink
    | Orphan
    | Ahead
    | TooFar
    | Old
    | DroppedJob
)


def classify(message: Flashblock, known: Known) -> Outcome:
    """Classify a message; one that is tried again must have left its job's `held`."""
    job = known.job(message.block_number, message.payload_id)
    if job is not None:
        known_here = job.at(message.index)
        if known_here:
            return Duplicate() if message.content in known_here else Equivocation()
    if message.block_number > known.latest_number + known.depth:
        return TooFar()
    if message.base is not None:
        return _classify_first(message, message.base.parent_hash, known)
    return _classify_later(message, job, known)


def _classify_first(message: Flashblock, parent_hash: bytes, known: Known) -> Outcome:
    """Index 0 of a job whose index 0 was not known."""
    number = message.block_number
    ours = known.sealing_as(number - 1, parent_hash)
    if number <= known.latest_number:
        on_sealed = known.sealed.get(number - 1) == parent_hash
        return Competing() if on_sealed or ours is not None else Old()
    on_latest = number == known.latest_number + 1 and parent_hash == known.latest_hash
    other = known.served(number)
    if other is not None:
        same = parent_hash == other.parent_hash
        return Restart(other.payload_id, takes_over=same or on_latest or ours is not None)
    if on_latest:
        return FirstOnSealed()
    if ours is not None:
        return FirstOnPending(ours)
    if number > known.tip + 1:
        return Ahead()
    return _classify_unproven(message, parent_hash, known.served(number - 1))


def _classify_unproven(
    message: Flashblock, parent_hash: bytes, below: Candidate | None
) -> FirstUnproven | FirstOnUnknown:
    """Index 0 right above the tip, on a parent that no hash of ours names."""
    if below is None:
        return FirstOnUnknown(parent_hash)
    last = len(below.prefix) - 1
    named = message.previous
    if named is not None and (named.block_number, named.index) > (below.block, last):
        return FirstOnUnknown(parent_hash, missing=named)
    follows = named == FlashblockId(below.block, last) and below.status is JobStatus.OPEN
    if follows and below.prefix[last].seals_as is None:
        return FirstUnproven(FlashblockRef(below.payload_id, last))
    undecided = any(step.seals_as is None for step in below.prefix)
    return FirstOnUnknown(parent_hash, undecided=undecided)


def _classify_later(message: Flashblock, job: Candidate | None, known: Known) -> Outcome:
    """An index above 0 that was not known."""
    unserved = job is not None and job.status is JobStatus.UNSERVED
    if message.block_number <= known.latest_number and not unserved:
        return Old()
    if job is None or not job.at(0):
        return Orphan()
    if job.status is JobStatus.DROPPED:
        return DroppedJob()
    expected = len(job.prefix)
    # What stands on the job says that it has ended; only the parent's hash can contradict.
    ended = not unserved and known.served(job.block + 1) is not None
    joins = job.status not in {JobStatus.WAITING, JobStatus.FROZEN} and not ended
    if message.index > expected or not joins:
        return Gap(expected)
    if message.previous not in {None, FlashblockId(job.block, expected - 1)}:
        return BrokenLink(message.previous)
    return Next()
