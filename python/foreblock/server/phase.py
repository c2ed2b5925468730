"""What a connection is doing, which decides how long it may go on doing it."""

from enum import IntEnum


class Phase(IntEnum):
    """The phases of a connection."""

    IDLE = 0  # between requests, with nothing left to look at
    HEAD = 1  # a head has begun
    BODY = 2  # a body is due
    ANSWERING = 3  # the handler has a request, or a turn has been passed to others
    WRITING = 4  # the client does not read
    LINGERING = 5  # the last answer is out; what still comes is thrown away
