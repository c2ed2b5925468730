"""Who is meant by a hash: the search among jobs for what seals as it.

What was never executed is executed for that, and state roots that are missing are computed.
"""

from collections.abc import Callable, Iterator
from typing import Final

from foreblock.ledger.following.alternates import alternates
from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.jobs import Job
from foreblock.ledger.following.prober import Trials
from foreblock.ledger.following.served_chain import Branches
from foreblock.ledger.following.verdict import Verdict
from foreblock.ledger.rules.profile import ChainProfile

Count = Callable[[Received, Verdict], bool]


class Search:
    """Looks among the jobs and what is buffered of them."""

    def __init__(
        self,
        branches: Branches,
        trials: Trials,
        buffered: Buffered,
        profile: ChainProfile,
        count: Count,
    ) -> None:
        """`count` is told each verdict, and says whether it is the good one."""
        self._branches: Final = branches
        self._trials: Final = trials
        self._buffered: Final = buffered
        self._profile: Final = profile
        self._count: Final = count

    def learn(self, block: int, block_hash: bytes) -> bool:
        """Whether a partial of this height seals as this hash, of whatever job."""
        branches = self._branches
        for job in branches.jobs.at(block):
            if not job.is_served:
                self._try_out_buffered(job)
            if job.steps:
                self._trials.learn_roots(job)
        if branches.sealing_as(block, block_hash) is not None:
            return True
        return any(
            self._trials.try_alternate(job, branch, block_hash)
            for job in branches.jobs.at(block)
            for branch in alternates(job.received, self.held(job), self._profile)
        )

    def held(self, job: Job) -> list[Received]:
        """What is buffered of a job."""
        return [each for each in self._buffered if each.job == job.key]

    def firsts_at(self, block: int) -> Iterator[Received]:
        """The buffered messages that begin a block of this height."""
        for each in self._buffered:
            if each.message.base is not None and each.message.block_number == block:
                yield each

    def _try_out_buffered(self, job: Job) -> None:
        """Execute what is buffered of a job that is not served."""
        while True:
            held = self._buffered.at(*job.key, len(job.steps))
            untried = [each for each in held if each.identity not in job.refused]
            if not untried:
                return
            self._buffered.remove(untried[0])
            if not self._count(untried[0], self._trials.try_out(job, untried[:1])):
                self._buffered.keep(untried[0])
                if untried[0].identity not in job.refused:
                    return  # not the message, but what the job stands on
