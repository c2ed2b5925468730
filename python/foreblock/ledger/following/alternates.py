"""Which messages of a job can follow one another, told by their hashes alone.

A block hash commits to all transactions of the block so far. So where a sequencer or a feed
has said two things for one place, the messages that come after it tell which one they
follow, and nothing has to be executed to see it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from foreblock._engine import Header, transactions_root
from foreblock.ledger.building.block_base import header_of
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.verdict import claimed_header
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.types import Base, Flashblock


class Alternate(NamedTuple):
    """Messages that follow one another from an index on, other than those executed."""

    start: int
    messages: tuple[Received, ...]

    @property
    def end(self) -> int:
        """The index after its last."""
        return self.start + len(self.messages)


def alternates(
    executed: Sequence[Received], held: Iterable[Received], profile: ChainProfile
) -> Iterator[Alternate]:
    """The alternates of what was executed of a job, those that leave it last first."""
    by_index: dict[int, list[Received]] = {}
    for received in held:
        by_index.setdefault(received.message.index, []).append(received)
    for start in reversed(range(len(executed))):
        for other in by_index.get(start, ()):
            found = _follow([*executed[:start], other], by_index, profile)
            if found is not None:
                yield Alternate(start, tuple(found[start:]))


def _follow(
    messages: list[Received], by_index: dict[int, list[Received]], profile: ChainProfile
) -> list[Received] | None:
    """The messages and all that is known to follow them, unless they do not fit themselves."""
    base = messages[0].message.base
    if base is None:
        return None
    header = _first_header(base, profile)
    raws = [raw for each in messages[:-1] for raw in each.message.diff.transactions]
    if not _fits(header, raws, messages[-1].message, profile):
        return None
    following = [*messages]
    raws += following[-1].message.diff.transactions
    while True:
        candidates = by_index.get(len(following), ())
        fitting = (each for each in candidates if _fits(header, raws, each.message, profile))
        following_one = next(fitting, None)
        if following_one is None:
            return following
        following.append(following_one)
        raws += following_one.message.diff.transactions


def _first_header(base: Base, profile: ChainProfile) -> Header:
    return header_of(base, profile.rules(base.block_number, base.timestamp, merged=True))


def _fits(header: Header, before: list[bytes], message: Flashblock, profile: ChainProfile) -> bool:
    rules = profile.rules(header.number, header.timestamp, merged=True)
    root = transactions_root([*before, *message.diff.transactions])
    claimed = claimed_header(header.replace(transactions_root=root), message.diff, rules)
    return claimed.hash == message.diff.block_hash
