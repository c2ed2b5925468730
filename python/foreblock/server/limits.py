"""What a client may ask of the server before it is refused, and who may ask.

Defaults follow geth's where it has them (`node/defaults.go`).
"""

from dataclasses import dataclass
from enum import IntEnum

from foreblock.scheduling.room import DEFAULT_BYTES, DEFAULT_PLACES, DEFAULT_RECEIVED
from foreblock.setting import setting


@dataclass(frozen=True)
class ServerLimits:
    """Limits of one worker, times in seconds, sizes in bytes."""

    body_limit: int = setting(5 * 1024 * 1024, "bytes of a request body", least=1)
    header_limit: int = setting(16 * 1024, "bytes of a request line and its headers", least=256)
    header_timeout: float = setting(30.0, "seconds for a request's head to arrive", least=1)
    body_timeout: float = setting(30.0, "seconds for a request's body to arrive", least=1)
    idle_timeout: float = setting(120.0, "seconds a connection may rest between requests", least=1)
    write_timeout: float = setting(
        30.0, "seconds for a client to read 128 KiB of its answers, or what is left", least=1
    )
    connections: int = setting(16384, "open connections of one worker", least=1)
    waiting_requests: int = setting(
        DEFAULT_PLACES, "requests that cannot be answered at once, before more are refused", least=1
    )
    unsent_bytes: int = setting(
        DEFAULT_BYTES,
        "bytes of answers that are made or unread, before more long ones are refused",
        least=1 << 20,
    )
    received_bytes: int = setting(
        DEFAULT_RECEIVED,
        "bytes of long requests that come in or wait for their answers, before more are refused",
        least=1 << 20,
    )
    drain_grace: float = setting(5.0, "seconds to finish what was accepted when told to stop")


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    hosts: tuple[str, ...] = setting(
        ("localhost",), "names a Host header may give, beside any IP address; * allows all"
    )
    cors_origins: tuple[str, ...] = setting(
        (), "origins whose pages a browser lets read answers; * allows all"
    )


class Phase(IntEnum):
    """The phases of a connection."""

    IDLE = 0  # between requests, with nothing left to look at
    HEAD = 1  # a head has begun
    BODY = 2  # a body is due
    ANSWERING = 3  # the handler has a request, or a turn has been passed to others
    WRITING = 4  # the client does not read
    LINGERING = 5  # the last answer is out; what still comes is thrown away
