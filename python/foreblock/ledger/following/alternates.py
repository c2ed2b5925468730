"""Find the messages of a job that can follow one another, without executing them.

If a sequencer or a feed sent two contents for one index, later messages follow only one of
them. A block hash commits to all transactions of the block so far, so it shows which one.
Without hashes only gas, blob gas and logs exclude a message, which never shrink; execution
decides among the rest, and what it has refused is not tried again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from foreblock._engine import transactions_root
from foreblock.ledger.building.block_base import header_of
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.jobs import Job
from foreblock.ledger.following.verdict import check_growth, hash_holds, is_provided
from foreblock.ledger.rules.profile import ChainProfile

MOST_ALTERNATES: Final = 64  # of a job, that are tried at once


class Alternate(NamedTuple):
    """Messages that follow one another from an index on, other than those executed."""

    start: int
    messages: tuple[Received, ...]

    @property
    def end(self) -> int:
        """The index after its last."""
        return self.start + len(self.messages)


def alternates(
    job: Job, held: Iterable[Received], profile: ChainProfile, beyond: int = 0
) -> Iterator[Alternate]:
    """The alternates of what was executed of a job, those that leave it last first.

    Only those that end after the index `beyond`. A shorter alternate follows after a longer one
    that the job has refused meanwhile.
    """
    by_index: dict[int, list[Received]] = {}
    for received in held:
        by_index.setdefault(received.message.index, []).append(received)
    found = _alternates(job, by_index, profile)
    return islice((each for each in found if each.end > beyond), MOST_ALTERNATES)


def _alternates(
    job: Job, by_index: Mapping[int, Sequence[Received]], profile: ChainProfile
) -> Iterator[Alternate]:
    executed = job.received
    for start in reversed(range(len(executed))):
        for other in by_index.get(start, ()):
            before = executed[:start]
            if not other.is_copy_of(executed[start]) and _fits(job, before, other, profile):
                for path in _paths(job, [*before, other], by_index, profile):
                    yield Alternate(start, tuple(path[start:]))


def _paths(
    job: Job,
    messages: list[Received],
    by_index: Mapping[int, Sequence[Received]],
    profile: ChainProfile,
) -> Iterator[list[Received]]:
    """The messages with all that may follow them; alone where nothing does."""
    is_last = True
    for following in by_index.get(len(messages), ()):
        if _fits(job, messages, following, profile):
            yield from _paths(job, [*messages, following], by_index, profile)
            is_last = is_last and job.refuses(messages, following)
    if is_last and not job.refuses(messages[:-1], messages[-1]):
        yield messages


def _fits(job: Job, before: Sequence[Received], received: Received, profile: ChainProfile) -> bool:
    """Whether a message may follow others from the first of its block on."""
    if job.refuses(before, received):
        return False
    diff = received.message.diff
    base = (before[0] if before else received).message.base
    if base is None:
        return False
    if check_growth(diff, before[-1].message.diff if before else None, base.gas_limit):
        return False
    if not is_provided(diff.block_hash):
        return True
    rules = profile.rules(base.block_number, base.timestamp, merged=True)
    raws = [raw for each in (*before, received) for raw in each.message.diff.transactions]
    header = header_of(base, rules).replace(transactions_root=transactions_root(raws))
    if is_provided(diff.withdrawals_root):
        return hash_holds(header, diff, rules)
    return True  # the hash covers a root that only execution gives
