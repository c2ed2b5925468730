"""Who asks, where a test does not care, and what it is answered."""

from foreblock.scheduling.reply import Client, Reply

ANYBODY = Client("127.0.0.1", 0)


def body_of(reply: Reply) -> bytes:
    """The whole body of a reply, which is used up by it."""
    pieces = [reply.body]
    if isinstance(reply.rest, list):
        return b"".join((reply.body, *reply.rest))
    while reply.rest is not None and (taken := reply.rest.next_pieces()):
        pieces += taken
    return b"".join(pieces)
