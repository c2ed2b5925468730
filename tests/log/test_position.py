"""The meaning of messages and heads for a node, compared with a plain model of whole histories.

The model has no links: a commit is the tuple of all commits up to it. Streams lose their ends,
writers change, messages come twice, late and out of order; a node must apply exactly the messages
that continue its history at its position.
"""

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs

from foreblock.log.message import NO_LINK, LogMessage
from foreblock.log.position import HeadAnnouncement, LogPosition, Meaning
from support.each_case import each_case

LOG = b"l" * 16
History = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A commit at its position in the stream, with its whole history."""

    message: LogMessage
    history: History
    first: int
    last: int


@dataclass
class Node:
    """A store: its position, and its applied commits."""

    position: LogPosition = field(default_factory=LogPosition)
    history: History = ()

    def take(self, entry: Entry) -> None:
        self.position = self.position.after(entry.message, entry.last)
        self.history = entry.history


def expected(node: Node, entry: Entry) -> Meaning:
    """By histories, positions and epochs."""
    if entry.last < node.position.sequence:
        return Meaning.KNOWN
    if entry.last == node.position.sequence:
        return Meaning.KNOWN if entry.history == node.history else Meaning.FORK
    if entry.first > node.position.sequence + 1:
        return Meaning.GAP
    if entry.first <= node.position.sequence or entry.history[:-1] != node.history:
        return Meaning.FORK
    if entry.message.epoch < node.position.epoch:
        return Meaning.FORK
    is_new = entry.message.epoch > node.position.epoch
    return Meaning.NEWER_EPOCH if is_new else Meaning.APPLY


def head_of(entry: Entry) -> HeadAnnouncement:
    message = entry.message
    return HeadAnnouncement(message.epoch, message.after, entry.last, message.link, b"b" * 16, 5)


NODES = st.integers(0, 3)


class Streams(RuleBasedStateMachine):
    """A stream, its writers, and its followers."""

    def __init__(self) -> None:
        super().__init__()
        self.stream: list[Entry] = []
        self.everything: list[Entry] = []  # every published entry, acknowledged or not
        self.nodes = [Node() for _ in range(4)]
        self.commits = 0

    @property
    def end(self) -> int:
        return self.stream[-1].last if self.stream else 0

    def publish(self, node: Node, epoch: int, parts: int) -> Entry:
        self.commits += 1
        position = node.position
        body = b"commit %d" % self.commits
        message = LogMessage(epoch, position.commit, position.commit + 1, LOG, position.link, body)
        first = position.sequence + 1
        entry = Entry(message, (*node.history, self.commits), first, first + parts - 1)
        self.everything.append(entry)
        return entry

    @rule(number=NODES, parts=st.integers(1, 3), newer=st.integers(0, 1))
    def write(self, number: int, parts: int, newer: int) -> None:
        """A node appends; the stream accepts if its last sequence is the expected one."""
        node = self.nodes[number]
        entry = self.publish(node, max(1, node.position.epoch) + newer, parts)
        if self.end == node.position.sequence:
            self.stream.append(entry)
            node.take(entry)

    @rule(number=NODES, at=st.integers(0, 1000))
    def deliver(self, number: int, at: int) -> None:
        """Any published entry, in any order, any number of times."""
        if not self.everything:
            return
        entry = self.everything[at % len(self.everything)]
        node = self.nodes[number]
        meaning = node.position.meaning_of(entry.message, entry.first, entry.last)
        assert meaning is expected(node, entry)
        assert node.position.meaning_of_head(head_of(entry)) in Meaning

    @rule(number=NODES)
    def follow(self, number: int) -> None:
        """Apply the stream as far as it fits."""
        node = self.nodes[number]
        for entry in self.stream:
            meaning = node.position.meaning_of(entry.message, entry.first, entry.last)
            assert meaning is expected(node, entry)
            if meaning in {Meaning.APPLY, Meaning.NEWER_EPOCH}:
                node.take(entry)
        follows = node.history == self.stream[-1].history if self.stream else not node.history
        if follows and self.stream:
            assert node.position.meaning_of_head(head_of(self.stream[-1])) is Meaning.KNOWN

    @rule(number=NODES)
    def hear_the_head(self, number: int) -> None:
        """A head above a node's position means that there is more; it is never wrong."""
        if not self.stream:
            return
        node, entry = self.nodes[number], self.stream[-1]
        meaning = node.position.meaning_of_head(head_of(entry))
        level = entry.last == node.position.sequence and entry.history == node.history
        if level:
            assert meaning is Meaning.KNOWN
        elif entry.message.epoch < node.position.epoch:
            assert meaning is Meaning.OLDER_EPOCH
        elif entry.last > node.position.sequence:
            newer = entry.message.epoch > node.position.epoch
            assert meaning is (Meaning.NEWER_EPOCH if newer else Meaning.GAP)
        elif entry.last == node.position.sequence or entry.message.epoch > node.position.epoch:
            assert meaning is Meaning.FORK

    @rule(count=st.integers(1, 5))
    def lose_the_tail(self, count: int) -> None:
        del self.stream[-count:]

    @invariant()
    def nodes_hold_what_they_applied(self) -> None:
        for node in self.nodes:
            assert node.position.commit == len(node.history)


Streams.TestCase.settings = settings(stateful_step_count=40)
test_streams = Streams.TestCase

FIRST = LogMessage(1, 0, 1, LOG, NO_LINK, b"first")
HERE = LogPosition().after(FIRST, 1)
NEXT = LogMessage(1, 1, 2, LOG, FIRST.link, b"second")
TABLE = [
    (LogPosition(), FIRST, 1, Meaning.NEWER_EPOCH),
    (LogPosition(epoch=1), FIRST, 1, Meaning.APPLY),
    (HERE, FIRST, 1, Meaning.KNOWN),
    (HERE, NEXT, 2, Meaning.APPLY),
    (HERE, NEXT, 3, Meaning.GAP),
    (HERE, NEXT, 1, Meaning.FORK),
    (HERE, replace(NEXT, epoch=2), 2, Meaning.NEWER_EPOCH),
    (HERE, replace(NEXT, epoch=0), 2, Meaning.FORK),
    (HERE, replace(NEXT, previous=bytes(32)), 2, Meaning.FORK),
    (HERE, replace(NEXT, before=0), 2, Meaning.FORK),
    (HERE, replace(NEXT, log_id=b"f" * 16), 2, Meaning.FOREIGN_LOG),
    (structs.replace(HERE, log_id=None), replace(NEXT, log_id=b"f" * 16), 2, Meaning.APPLY),
    # A log begun by another store at its commit 5.
    (LogPosition(), replace(FIRST, before=5, after=6), 1, Meaning.SNAPSHOT),
    (LogPosition(commit=5), replace(FIRST, before=5, after=6), 1, Meaning.SNAPSHOT),
    (LogPosition(commit=5, log_id=b"f" * 16), replace(FIRST, before=5, after=6), 1,
     Meaning.SNAPSHOT),
    (LogPosition(commit=5, log_id=LOG), replace(FIRST, before=5, after=6), 1,
     Meaning.NEWER_EPOCH),
    (LogPosition(log_id=b"f" * 16), FIRST, 1, Meaning.NEWER_EPOCH),
]  # fmt: skip


@each_case(("position", "message", "sequence", "meaning"), TABLE)
def test_meanings(
    position: LogPosition, message: LogMessage, sequence: int, meaning: Meaning
) -> None:
    assert position.meaning_of(message, sequence, sequence) is meaning


def test_the_place_of_a_commit_may_change() -> None:
    moved = HERE.at(40)
    assert moved.meaning_of(NEXT, 41, 41) is Meaning.APPLY
    assert structs.replace(moved, sequence=1) == HERE
