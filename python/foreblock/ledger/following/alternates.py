"""Find the messages of a job that can follow one another, without executing them.

If a sequencer or a feed sent two contents for one index, later messages follow only one of
them. A block hash commits to all transactions of the block so far, so it shows which one.
Without hashes only gas, blob gas and logs exclude a message, which never shrink; execution
decides among the rest, and what it has refused is not tried again.

Contradicting messages can follow one another in exponentially many ways, so a search is bounded.
The messages of each feed are searched by themselves first: a feed that contradicts itself cannot
use up the search of another.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from foreblock._engine import transactions_root
from foreblock.ledger.building.block_base import header_of
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.jobs import Job
from foreblock.ledger.following.verdict import check_growth, hash_holds, is_provided
from foreblock.ledger.rules.profile import ChainProfile

MOST_ALTERNATES: Final = 32  # of a job, that are tried at once, of one feed and of all together
MOST_CHECKS: Final = 256  # of messages, in the search for them


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
    messages = list(held)
    feeds = dict.fromkeys(each.feed for each in messages)
    of_feeds = [[each for each in messages if each.feed == feed] for feed in feeds]
    for some in [*of_feeds, messages] if len(feeds) > 1 else of_feeds:
        found = _Search(job, some, profile).alternates()
        yield from islice((each for each in found if each.end > beyond), MOST_ALTERNATES)


class _Search:
    """A search among some messages, which ends after a number of checks."""

    def __init__(self, job: Job, messages: Iterable[Received], profile: ChainProfile) -> None:
        self._job: Final = job
        self._profile: Final = profile
        self._left = MOST_CHECKS
        self._by_index: Final[dict[int, list[Received]]] = {}
        for each in messages:
            self._by_index.setdefault(each.message.index, []).append(each)

    def alternates(self) -> Iterator[Alternate]:
        executed = self._job.received
        for start in reversed(range(len(executed))):
            for other in self._by_index.get(start, ()):
                before = executed[:start]
                if not other.is_copy_of(executed[start]) and self._fits(before, other):
                    for path in self._paths([*before, other]):
                        yield Alternate(start, tuple(path[start:]))

    def _paths(self, messages: list[Received]) -> Iterator[list[Received]]:
        """The messages with all that may follow them; alone where nothing does."""
        is_last = True
        for following in self._by_index.get(len(messages), ()):
            if self._fits(messages, following):
                yield from self._paths([*messages, following])
                is_last = is_last and self._job.refuses(messages, following)
        if is_last and not self._job.refuses(messages[:-1], messages[-1]):
            yield messages

    def _fits(self, before: Sequence[Received], received: Received) -> bool:
        """Return True if a message may follow others from the first of its block on."""
        self._left -= 1
        if self._left < 0 or self._job.refuses(before, received):
            return False
        diff = received.message.diff
        base = (before[0] if before else received).message.base
        if base is None:
            return False
        if check_growth(diff, before[-1].message.diff if before else None, base.gas_limit):
            return False
        if not is_provided(diff.block_hash):
            return True
        rules = self._profile.rules(base.block_number, base.timestamp, merged=True)
        raws = [raw for each in (*before, received) for raw in each.message.diff.transactions]
        header = header_of(base, rules).replace(transactions_root=transactions_root(raws))
        if is_provided(diff.withdrawals_root):
            return hash_holds(header, diff, rules)
        return True  # the hash covers a root that only execution gives
