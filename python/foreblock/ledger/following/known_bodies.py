"""The transactions of blocks whose messages have come. No I/O.

Of a block that a feed has brought only the header is missing, by which it is sealed: asking for
its transactions again, hundreds of them, would cost more than executing them. Whether they are all
of it, the root in the header says.
"""

from collections.abc import Iterable, Iterator

from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.jobs import Job
from foreblock.types import Flashblock


def bodies_named(
    block_hash: bytes, jobs: Iterable[Job], buffered: Iterable[Received]
) -> Iterator[tuple[bytes, ...]]:
    """The transactions of each job that may be the block of this hash.

    That is one of the height below a block that begins on this hash.
    """
    jobs, waiting = list(jobs), [each.message for each in buffered]
    above = {job.block for job in jobs if job.parent_hash == block_hash}
    above |= {
        each.block_number
        for each in waiting
        if each.base is not None and each.base.parent_hash == block_hash
    }
    executed = [each.message for job in jobs for each in job.received]
    found: dict[tuple[int, bytes], dict[int, Flashblock]] = {}
    for each in (*executed, *waiting):
        if each.block_number + 1 in above:
            messages = found.setdefault((each.block_number, each.payload_id), {})
            messages.setdefault(each.index, each)
    for messages in found.values():
        if sorted(messages) == list(range(len(messages))):
            yield tuple(
                raw for index in range(len(messages)) for raw in messages[index].diff.transactions
            )
