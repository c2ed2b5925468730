"""A chain that can be followed ends correctly, for any order of its messages.

A plain follower acts on outcomes according to their docstrings, with names instead of execution.
Messages come late, early and twice; jobs are restarted; tails are dropped from the sealed block. No
block may be sealed wrongly, and in the end all of them are sealed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foreblock.ledger.following.buffer import Buffered
from foreblock.ledger.following.classification import (
    DEFAULT_DEPTH,
    Candidate,
    Duplicate,
    FirstOnPending,
    FirstOnSealed,
    FirstOnUnknown,
    FlashblockRef,
    JobStatus,
    Known,
    KnownStep,
    Next,
    Old,
    Restart,
    TooFar,
    classify,
)
from foreblock.types import Flashblock, FlashblockId
from support.chains.following import add, forget_through, held, take
from support.payloads.flashblocks import first, hash_of, job, later

START = 5
START_HASH = hash_of("start")


def seals_as(block_hash: bytes) -> bytes:
    """The sealed hash of a partial block, for a known state root."""
    return hash_of(block_hash.decode().strip(".") + " sealed")


@dataclass
class Follower:
    """The known jobs, and their sealed parts."""

    latest: int = START
    sealed: dict[int, bytes] = field(default_factory=lambda: {START: START_HASH})
    jobs: dict[tuple[int, bytes], Candidate] = field(default_factory=dict)
    buffered: Buffered = field(default_factory=Buffered)

    def receive(self, message: Flashblock) -> None:
        """Process a message, then all messages that may have waited for it."""
        self.act(message)
        while any(self.act(again) for again in self.waiting()):
            pass

    def waiting(self) -> Iterator[Flashblock]:
        """Buffered messages, each removed from the buffer while it is processed."""
        for block in range(self.latest, self.latest + 5):
            for payload_id in self.buffered.jobs(block):
                indices = {each.index for each in held(self.buffered, block, payload_id)}
                for index in sorted(indices):
                    yield from take(self.buffered, block, payload_id, index)

    def known(self) -> Known:
        heard_of = {
            (block, payload_id): Candidate(block, payload_id, JobStatus.WAITING)
            for block in range(self.latest, self.latest + 5)
            for payload_id in self.buffered.jobs(block)
        }
        jobs = heard_of | self.jobs
        return Known(
            self.latest,
            self.sealed[self.latest],
            self.sealed,
            tuple(replace(at, held=held(self.buffered, *key)) for key, at in jobs.items()),
        )

    def act(self, message: Flashblock) -> bool:
        """Process one message; return whether it caused an execution."""
        match classify(message, self.known()):
            case Duplicate() | Old() | TooFar():
                return False
            case Next():
                self.extend(message)
            case FirstOnSealed():
                self.begin(message)
            case FirstOnPending(parent):
                self.seal(message.block_number - 1, parent)
                self.begin(message)
            case Restart(takes_over=True):
                self.drop_from(message.block_number)
                self.begin(message)
            case FirstOnUnknown() if self.try_dropped(message.block_number - 1):
                return self.act(message)
            case _:
                add(self.buffered, "feed", message, 1_000)
                return False
        return True

    def begin(self, message: Flashblock) -> None:
        assert message.base is not None
        key = (message.block_number, message.payload_id)
        self.jobs[key] = Candidate(*key, JobStatus.OPEN, message.base.parent_hash)
        self.extend(message)

    def extend(self, message: Flashblock) -> None:
        key = (message.block_number, message.payload_id)
        step = KnownStep(message.content, seals_as(message.diff.receipts_root))
        self.jobs[key] = replace(self.jobs[key], prefix=(*self.jobs[key].prefix, step))

    def seal(self, block: int, partial: FlashblockRef) -> None:
        self.latest = block
        step = self.jobs[block, partial.payload_id].prefix[partial.index]
        assert step.seals_as is not None
        self.sealed[block] = step.seals_as
        forget_through(self.buffered, block)

    def drop_from(self, block: int) -> None:
        for key, candidate in self.jobs.items():
            if candidate.block >= block:
                self.jobs[key] = replace(candidate, status=JobStatus.DROPPED)

    def try_dropped(self, block: int) -> bool:
        """Execute buffered messages of dropped jobs, in case one of the jobs was correct."""
        found = False
        for key, candidate in list(self.jobs.items()):
            if candidate.block == block and candidate.status is JobStatus.DROPPED:
                while more := take(self.buffered, *key, len(self.jobs[key].prefix)):
                    self.extend(more[0])
                    found = True
        return found


class Delivery:
    """Messages in order of arrival, and the chain of its sequencer."""

    def __init__(
        self, messages: list[Flashblock], sealed: dict[int, bytes], last: tuple[bytes, ...]
    ) -> None:
        self.messages = messages
        self.sealed = sealed
        self.last = last  # the partial hashes of the unsealed block

    def __repr__(self) -> str:
        names = [at.diff.receipts_root.decode().strip(".") for at in self.messages]
        ends = [at.decode().strip(".") for at in self.sealed.values()]
        return f"{' '.join(names)} ({', '.join(ends)})"


def partial(block: int, name: str, index: int) -> bytes:
    return hash_of(f"{block}{name}.{index}")


@st.composite
def built_chains(draw: st.DrawFn) -> Delivery:
    linked = draw(st.booleans())
    messages: list[Flashblock] = []
    sealed = {START: START_HASH}
    previous: FlashblockId | None = None
    hashes: tuple[bytes, ...] = ()
    for block in range(START + 1, START + 1 + draw(st.integers(1, DEFAULT_DEPTH))):
        parent = sealed[block - 1]
        jobs = draw(st.sampled_from(["p", "p", "p", "pq", "qp"]))
        for name in jobs:
            right = name == "p"
            count = draw(st.integers(1, 5))
            hashes = tuple(partial(block, name, index) for index in range(count))
            link = previous if linked else None
            messages.append(first(block, f"{block}{name}", parent, hashes[0], link))
            for index in range(1, count):
                link = FlashblockId(block, index - 1) if linked else None
                messages.append(later(block, f"{block}{name}", index, hashes[index], link))
            if right:
                # Some of the last flashblocks may be missing in the block.
                end = draw(st.just(count) | st.integers(1, count)) - 1
                sealed[block] = seals_as(hashes[end])
                ended = FlashblockId(block, end)
                kept = hashes
        previous = ended
    del sealed[block]
    return Delivery(messages, sealed, kept)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """A chain, its messages up to four positions late, some twice, each copy in either form."""
    built = draw(built_chains())
    count = len(built.messages)
    late = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    twice = draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    arrivals = [(at + late[at], at) for at in range(count)]
    arrivals += [(at + twice[at], at) for at in range(count) if twice[at] % 3 == 0]
    forms = draw(st.lists(st.booleans(), min_size=len(arrivals), max_size=len(arrivals)))
    messages = [
        built.messages[at].as_subblock() if form else built.messages[at]
        for (_, at), form in zip(sorted(arrivals), forms, strict=True)
    ]
    return Delivery(messages, built.sealed, built.last)


@given(deliveries())
def test_every_order_ends_in_the_chain_that_was_built(built: Delivery) -> None:
    follower = Follower()
    for message in built.messages:
        follower.receive(message)
        assert follower.sealed.items() <= built.sealed.items()
    assert follower.sealed == built.sealed
    served = [
        candidate
        for candidate in follower.jobs.values()
        if candidate.block == follower.latest + 1
        and candidate.payload_id == job(f"{candidate.block}p")
    ]
    assert len(served) == 1
    if served[0].status is JobStatus.OPEN:
        assert tuple(step.content.receipts_root for step in served[0].prefix) == built.last
