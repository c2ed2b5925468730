"""Every relation of an incoming flashblock to the known ones, one row each.

The chain is sealed up to block 5. Job `p` builds block 6 and has indices 0 to 2; in some rows `q`
builds 6 as well, or 7 stands on 6.
"""

from msgspec.structs import replace

from foreblock.ledger.following.classification import (
    Ahead,
    BrokenLink,
    Candidate,
    Competing,
    DroppedJob,
    Duplicate,
    Equivocation,
    FirstOnPending,
    FirstOnSealed,
    FirstOnUnknown,
    FirstUnproven,
    FlashblockRef,
    Gap,
    JobStatus,
    Known,
    KnownStep,
    Next,
    Old,
    Orphan,
    Outcome,
    Restart,
    TooFar,
    classify,
)
from foreblock.types import Flashblock, FlashblockId
from support.each_case import each_case
from support.payloads.flashblocks import first, hash_of, job, later

SEALED = {number: hash_of(f"sealed {number}") for number in range(2, 6)}
UNKNOWN = hash_of("nobody knows")


def candidate(
    block: int,
    name: str,
    indices: int,
    status: JobStatus = JobStatus.OPEN,
    *,
    roots: int | None = None,
    parent: bytes | None = None,
) -> Candidate:
    """A job with this many executed indices, of which the first `roots` have a state root."""
    roots = indices if roots is None else roots
    parent = parent or SEALED.get(block - 1) or seal(block - 1, "p", 2)
    messages = [begin(block, name, parent)]
    messages += [nth(block, name, index) for index in range(1, indices)]
    prefix = tuple(
        KnownStep(each.content, seal(block, name, each.index) if each.index < roots else None)
        for each in messages
    )
    return Candidate(block, job(name), status, parent, prefix)


def partial(block: int, name: str, index: int) -> bytes:
    return hash_of(f"{block}{name}.{index}")


def seal(block: int, name: str, index: int) -> bytes:
    return hash_of(f"{block}{name}.{index} sealed")


def known(*candidates: Candidate, latest: int = 5) -> Known:
    return Known(latest, SEALED[latest], SEALED, candidates)


def nth(block: int, name: str, index: int, previous: FlashblockId | None = None) -> Flashblock:
    return later(block, name, index, partial(block, name, index), previous)


def begin(block: int, name: str, on: bytes, previous: FlashblockId | None = None) -> Flashblock:
    return first(block, name, on, partial(block, name, 0), previous)


def on(name: str, index: int) -> FlashblockRef:
    return FlashblockRef(job(name), index)


P = candidate(6, "p", 3)
P_WITHOUT_ROOT = candidate(6, "p", 3, roots=2)
Q = candidate(6, "q", 2)
SEVEN = candidate(7, "s", 2)
BUFFERED = replace(P, held=(nth(6, "p", 5).content,))
HEARD_OF = Candidate(6, job("p"), JobStatus.WAITING, held=(nth(6, "p", 3).content,))
WAITING = Candidate(7, job("s"), JobStatus.WAITING, UNKNOWN, held=(begin(7, "s", UNKNOWN).content,))


def with_status(of: Candidate, now: JobStatus) -> Candidate:
    return replace(of, status=now)


DUPLICATES: list[tuple[Known, Flashblock, Outcome]] = [
    (known(P), nth(6, "p", 2), Duplicate()),
    (known(P), nth(6, "p", 1), Duplicate()),  # an older index
    (known(P), begin(6, "p", SEALED[5]), Duplicate()),
    (known(BUFFERED), nth(6, "p", 5), Duplicate()),
    (known(HEARD_OF), nth(6, "p", 3), Duplicate()),
    (known(with_status(P, JobStatus.DROPPED)), nth(6, "p", 2), Duplicate()),
    (known(WAITING), begin(7, "s", UNKNOWN), Duplicate()),
    (known(candidate(5, "p", 3, JobStatus.CLOSED)), nth(5, "p", 1), Duplicate()),
    (known(P), nth(6, "p", 2).as_subblock(), Duplicate()),
    (known(BUFFERED), nth(6, "p", 5).as_subblock(), Duplicate()),
    (known(P), later(6, "p", 1, UNKNOWN).as_subblock(), Equivocation()),
    (known(BUFFERED), later(6, "p", 5, UNKNOWN).as_subblock(), Equivocation()),
    (known(P), later(6, "p", 1, UNKNOWN), Equivocation()),
    (known(P), first(6, "p", SEALED[5], UNKNOWN), Equivocation()),
    (known(BUFFERED), later(6, "p", 5, UNKNOWN), Equivocation()),
    (known(with_status(P, JobStatus.FROZEN)), later(6, "p", 2, UNKNOWN), Equivocation()),
]

LATER: list[tuple[Known, Flashblock, Outcome]] = [
    (known(P), nth(6, "p", 3), Next()),
    (known(P), nth(6, "p", 3, FlashblockId(6, 2)), Next()),
    # An empty flashblock has the hash of its predecessor.
    (known(P), later(6, "p", 3, partial(6, "p", 2)), Next()),
    (known(BUFFERED), nth(6, "p", 3), Next()),
    (known(with_status(P, JobStatus.CLOSED)), nth(6, "p", 3), Next()),  # the tail, late
    (known(with_status(P, JobStatus.CLOSED), WAITING), nth(6, "p", 3), Next()),
    (known(P, SEVEN), nth(7, "s", 2), Next()),
    (known(with_status(P, JobStatus.DROPPED), Q), nth(6, "q", 2), Next()),
    (known(candidate(5, "x", 1, JobStatus.UNSERVED), P), nth(5, "x", 1), Next()),
    (known(P), nth(6, "p", 3, FlashblockId(6, 1)), BrokenLink(FlashblockId(6, 1))),
    (known(P), nth(6, "p", 3, FlashblockId(6, 3)), BrokenLink(FlashblockId(6, 3))),
    (known(P), nth(6, "p", 3, FlashblockId(5, 2)), BrokenLink(FlashblockId(5, 2))),
    (known(P), nth(6, "p", 4), Gap(3)),
    (known(P), nth(6, "p", 9, FlashblockId(6, 8)), Gap(3)),
    (known(BUFFERED), nth(6, "p", 4), Gap(3)),
    (known(with_status(P, JobStatus.FROZEN)), nth(6, "p", 3), Gap(3)),
    (known(P, WAITING), nth(7, "s", 1), Gap(0)),
    (known(P, SEVEN), nth(6, "p", 3), Gap(3)),  # 7 has shown that 6 ended before
    (known(candidate(5, "x", 1, JobStatus.UNSERVED), P), nth(5, "x", 2), Gap(1)),
    (known(), nth(6, "p", 1), Orphan()),
    (known(P), nth(6, "q", 1), Orphan()),
    (known(P), nth(7, "s", 4), Orphan()),
    (known(HEARD_OF), nth(6, "p", 4), Orphan()),
    (known(with_status(P, JobStatus.DROPPED), Q), nth(6, "p", 3), DroppedJob()),
    (known(with_status(P, JobStatus.DROPPED), Q), nth(6, "p", 7), DroppedJob()),
    (known(P), nth(5, "x", 3), Old()),
    (known(candidate(5, "p", 3, JobStatus.CLOSED)), nth(5, "p", 3), Old()),
    (known(candidate(5, "x", 3, JobStatus.DROPPED)), nth(5, "x", 3), Old()),
]

FIRSTS: list[tuple[Known, Flashblock, Outcome]] = [
    (known(), begin(6, "p", SEALED[5]), FirstOnSealed()),
    (known(), begin(6, "p", SEALED[5], FlashblockId(5, 9)), FirstOnSealed()),
    (known(HEARD_OF), begin(6, "p", SEALED[5]), FirstOnSealed()),  # an orphan's index 0
    (known(with_status(P, JobStatus.DROPPED)), begin(6, "q", SEALED[5]), FirstOnSealed()),
    (known(candidate(5, "p", 3, JobStatus.CLOSED)), begin(6, "q", SEALED[5]), FirstOnSealed()),
    (known(P), begin(7, "s", seal(6, "p", 2)), FirstOnPending(on("p", 2))),
    (known(P), begin(7, "s", seal(6, "p", 1), FlashblockId(6, 1)), FirstOnPending(on("p", 1))),
    (known(P, SEVEN), begin(8, "t", seal(7, "s", 1)), FirstOnPending(on("s", 1))),
    (
        known(with_status(P, JobStatus.FROZEN)),
        begin(7, "s", seal(6, "p", 2)),
        FirstOnPending(on("p", 2)),
    ),
    (
        # The dropped job was the correct one.
        known(with_status(P, JobStatus.DROPPED), Q),
        begin(7, "s", seal(6, "p", 2)),
        FirstOnPending(on("p", 2)),
    ),
    (
        # The job beside the sealed block was the correct one.
        known(candidate(5, "x", 2, JobStatus.UNSERVED)),
        begin(6, "q", seal(5, "x", 1)),
        FirstOnPending(on("x", 1)),
    ),
    (known(P_WITHOUT_ROOT), begin(7, "s", UNKNOWN, FlashblockId(6, 2)), FirstUnproven(on("p", 2))),
    (
        # The hash proves a relation that the link cannot.
        known(P_WITHOUT_ROOT),
        begin(7, "s", seal(6, "p", 1), FlashblockId(6, 2)),
        FirstOnPending(on("p", 1)),
    ),
    (known(P_WITHOUT_ROOT), begin(7, "s", UNKNOWN), FirstOnUnknown(UNKNOWN, undecided=True)),
    (
        known(P_WITHOUT_ROOT),
        begin(7, "s", UNKNOWN, FlashblockId(6, 1)),
        FirstOnUnknown(UNKNOWN, undecided=True),
    ),
    (
        known(with_status(P_WITHOUT_ROOT, JobStatus.FROZEN)),
        begin(7, "s", UNKNOWN, FlashblockId(6, 2)),
        FirstOnUnknown(UNKNOWN, undecided=True),
    ),
    (
        # The tail was missed.
        known(P_WITHOUT_ROOT),
        begin(7, "s", UNKNOWN, FlashblockId(6, 3)),
        FirstOnUnknown(UNKNOWN, missing=FlashblockId(6, 3)),
    ),
    (known(P), begin(7, "s", UNKNOWN, FlashblockId(6, 2)), FirstOnUnknown(UNKNOWN)),
    (known(P), begin(7, "s", UNKNOWN), FirstOnUnknown(UNKNOWN)),
    (known(), begin(6, "p", UNKNOWN), FirstOnUnknown(UNKNOWN)),
    (known(), begin(6, "p", UNKNOWN, FlashblockId(5, 9)), FirstOnUnknown(UNKNOWN)),
    (known(P), begin(6, "q", SEALED[5]), Restart(job("p"), takes_over=True)),
    (known(P, SEVEN), begin(6, "q", SEALED[5]), Restart(job("p"), takes_over=True)),
    (known(P, SEVEN), begin(7, "t", seal(6, "p", 1)), Restart(job("s"), takes_over=True)),
    (
        known(P_WITHOUT_ROOT, SEVEN),
        begin(7, "t", seal(6, "p", 2)),
        Restart(job("s"), takes_over=True),
    ),
    (known(P), begin(6, "q", UNKNOWN), Restart(job("p"), takes_over=False)),
    (known(P, SEVEN), begin(7, "t", UNKNOWN), Restart(job("s"), takes_over=False)),
    (
        known(with_status(P, JobStatus.DROPPED), Q),
        begin(6, "r", SEALED[5]),
        Restart(job("q"), True),
    ),
    # A job that waits for its parent is not served, so there is nothing to restart.
    (known(P, WAITING), begin(7, "t", seal(6, "p", 2)), FirstOnPending(on("p", 2))),
    (known(P), begin(5, "x", SEALED[4]), Competing()),
    (known(), begin(3, "x", SEALED[2]), Competing()),
    (known(candidate(4, "x", 2, JobStatus.UNSERVED)), begin(5, "y", seal(4, "x", 1)), Competing()),
    (known(), begin(5, "x", UNKNOWN), Old()),
    (known(), begin(2, "x", hash_of("sealed 1")), Old()),  # its parent is no longer retained
    (known(), begin(0, "x", SEALED[5]), Old()),
    (known(), begin(7, "s", UNKNOWN), Ahead()),
    (known(P), begin(8, "t", UNKNOWN), Ahead()),
    (known(P), begin(9, "t", UNKNOWN), Ahead()),
    (known(P), begin(10, "t", UNKNOWN), TooFar()),
    (known(), nth(10, "t", 1), TooFar()),
    (known(), nth(2**64 - 1, "t", 1), TooFar()),
]


@each_case(("what_is_known", "message", "outcome"), DUPLICATES + LATER + FIRSTS)
def test_placement(what_is_known: Known, message: Flashblock, outcome: Outcome) -> None:
    assert classify(message, what_is_known) == outcome


def test_every_outcome_has_its_rows() -> None:
    found = {type(outcome) for _, _, outcome in DUPLICATES + LATER + FIRSTS}
    assert found == set(Outcome.__args__)


def test_a_known_payload_id_never_restarts() -> None:
    """Two feeds with different jobs of one height do not replace each other with every message."""
    both = known(with_status(P, JobStatus.DROPPED), Q)
    for message in (begin(6, "p", SEALED[5]), begin(6, "q", SEALED[5])):
        assert classify(message, both) == Duplicate()
    for message in (first(6, "p", SEALED[5], UNKNOWN), first(6, "q", SEALED[5], UNKNOWN)):
        assert classify(message, both) == Equivocation()


def test_the_depth_is_counted_from_the_sealed_block() -> None:
    stack = replace(known(P, SEVEN), depth=2)
    assert classify(begin(8, "t", seal(7, "s", 1)), stack) == TooFar()
    assert classify(nth(7, "s", 2), stack) == Next()


def test_the_same_payload_id_at_another_height_is_another_job() -> None:
    assert classify(nth(7, "p", 1), known(P)) == Orphan()
