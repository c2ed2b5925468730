"""What a handler gives back for one HTTP body, known to the server and to JSON-RPC alike."""

from typing import NamedTuple


class Reply(NamedTuple):
    """An answer: its bytes, and header lines that go with them.

    An empty body is the answer to notifications, which have none.
    """

    body: bytes
    headers: bytes = b""  # whole lines, each ending in CRLF


def reply(body: bytes, headers: bytes) -> Reply:
    """The same as `Reply(body, headers)` in a third of its time, for every request makes one."""
    return tuple.__new__(Reply, (body, headers))
