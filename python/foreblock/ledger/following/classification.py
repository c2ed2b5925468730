"""Where an incoming flashblock stands: one pure function, one named outcome.

    place(message, known) -> Outcome

`known` is all that is looked at: the sealed chain, and the candidates, which are the build
jobs heard of. Hashes decide, and the link to the predecessor only where no hash can yet:
what a block will seal as is known once its state root is computed, and the next block's
`base.parent_hash` found among these says which prefix was sealed.

Nothing is executed, kept or dropped here; an outcome says what the facts are, and its
docstring what they ask for. Whether the message is true is for execution.
"""

from dataclasses import dataclass

from foreblock.ledger.following.candidates import Candidate, Known, PartialPlace, Standing
from foreblock.types import Flashblock, FlashblockId


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Known, by payload id, index and hash: count it, tell nobody."""


@dataclass(frozen=True, slots=True)
class Equivocation:
    """Another content for a known place: keep the first, and this one as an alternate."""


@dataclass(frozen=True, slots=True)
class Next:
    """It follows the last one executed of its job: execute it, then what is buffered."""


@dataclass(frozen=True, slots=True)
class FirstOnSealed:
    """It begins a block on the latest sealed one."""


@dataclass(frozen=True, slots=True)
class FirstOnPending:
    """It begins a block and proves that the one before ended at this partial: seal that.

    The partial may be of a job that was dropped or stands aside; then that one was right.
    """

    parent: PartialPlace


@dataclass(frozen=True, slots=True)
class FirstUnproven:
    """It says it begins on our last partial, whose root is not computed: stack, do not seal."""

    parent: PartialPlace


@dataclass(frozen=True, slots=True)
class FirstOnUnknown:
    """It begins on a block that we cannot name: buffer the job, ask for the parent by hash.

    `missing` is the last flashblock of the parent where the message names one that we lack.
    `undecided` says that a root which is not computed yet may still name the parent: then
    place it again before anybody is asked.
    """

    parent_hash: bytes
    missing: FlashblockId | None = None
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """A new job for a height that is being served by another one.

    It takes over at once if it stands on the same parent or on another one of ours; the
    other one and all above it are dropped, and kept until the height is sealed.
    """

    replaces: bytes
    takes_over: bool


@dataclass(frozen=True, slots=True)
class Competing:
    """A new job for a sealed height, on a known parent: execute it aside, do not serve it."""


@dataclass(frozen=True, slots=True)
class Gap:
    """It cannot be joined to its job now: buffer it; it makes nothing fresher."""

    expected: int  # the index that the job would go on with


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """It has the next index and names another predecessor: as with a gap."""

    named: FlashblockId


@dataclass(frozen=True, slots=True)
class Orphan:
    """Index 0 of its job was not heard of: buffer it."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """It begins a block whose parent has not begun: buffer it."""


@dataclass(frozen=True, slots=True)
class TooFar:
    """Higher than blocks may be stacked: count it, ignore it."""


@dataclass(frozen=True, slots=True)
class Old:
    """Its height is sealed: count it, ignore it."""


@dataclass(frozen=True, slots=True)
class DroppedJob:
    """Of a job that lost: count it, and buffer it until its height is sealed.

    Where a block waits for its parent, this may be what was missing of it: the job that lost
    was right if, with its buffered messages executed, one of its partials seals as that.
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


def place(message: Flashblock, known: Known) -> Outcome:
    """Where the message stands; one that is tried again must have left its job's `held`."""
    job = known.job(message.block_number, message.payload_id)
    if job is not None:
        hashes = tuple(job.hashes_at(message.index))
        if hashes:
            return Duplicate() if message.diff.block_hash in hashes else Equivocation()
    if message.block_number > known.latest_number + known.depth:
        return TooFar()
    if message.base is not None:
        return _place_first(message, message.base.parent_hash, known)
    return _place_later(message, job, known)


def _place_first(message: Flashblock, parent_hash: bytes, known: Known) -> Outcome:
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
    return _place_unproven(message, parent_hash, known.served(number - 1))


def _place_unproven(
    message: Flashblock, parent_hash: bytes, below: Candidate | None
) -> FirstUnproven | FirstOnUnknown:
    """Index 0 right above the tip, on a parent that no hash of ours names."""
    if below is None:
        return FirstOnUnknown(parent_hash)
    last = len(below.prefix) - 1
    named = message.previous
    if named is not None and (named.block_number, named.index) > (below.block, last):
        return FirstOnUnknown(parent_hash, missing=named)
    follows = named == FlashblockId(below.block, last) and below.standing is Standing.OPEN
    if follows and below.prefix[last].seals_as is None:
        return FirstUnproven(PartialPlace(below.payload_id, last))
    undecided = any(step.seals_as is None for step in below.prefix)
    return FirstOnUnknown(parent_hash, undecided=undecided)


def _place_later(message: Flashblock, job: Candidate | None, known: Known) -> Outcome:
    """An index above 0 that was not known."""
    aside = job is not None and job.standing is Standing.ASIDE
    if message.block_number <= known.latest_number and not aside:
        return Old()
    if job is None or not job.has_first:
        return Orphan()
    if job.standing is Standing.DROPPED:
        return DroppedJob()
    expected = len(job.prefix)
    # What stands on the job says that it has ended; only the parent's hash can contradict.
    ended = not aside and known.served(job.block + 1) is not None
    joins = job.standing not in {Standing.WAITING, Standing.FROZEN} and not ended
    if message.index > expected or not joins:
        return Gap(expected)
    if message.previous not in {None, FlashblockId(job.block, expected - 1)}:
        return BrokenLink(message.previous)
    return Next()
