"""Messages put into a buffer and taken out of it, as tests of the buffer need it."""

from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.types import Content, Flashblock


def add(buffered: Buffered, feed: str, message: Flashblock, size: int) -> None:
    """Keep a message that takes this many bytes of memory."""
    buffered.keep(Received(feed, size, message))


def take(buffered: Buffered, block: int, payload_id: bytes, index: int) -> list[Flashblock]:
    """The messages of one place, which are no longer kept; several if they differ."""
    taken = buffered.at(block, payload_id, index)
    for each in taken:
        buffered.remove(each)
    return [each.message for each in taken]


def held(buffered: Buffered, block: int, payload_id: bytes) -> tuple[Content, ...]:
    """What is kept of a job."""
    return buffered.held_by_job(lambda _: False).get((block, payload_id), ())


def forget_through(buffered: Buffered, block: int) -> None:
    """Keep nothing of this height and those below."""
    for each in buffered:
        if each.message.block_number <= block:
            buffered.remove(each)
