"""Limits of HTTP and WebSocket, access to them, and the phases that timeouts apply to.

Defaults follow geth's where it has them (`node/defaults.go`).
"""

from dataclasses import dataclass
from enum import IntEnum

from foreblock.scheduling.admission import DEFAULT_BYTES, DEFAULT_RECEIVED, DEFAULT_WAITS
from foreblock.setting import setting


@dataclass(frozen=True)
class ServerLimits:
    """Limits of one worker; times in seconds, sizes in bytes."""

    body_limit: int = setting(5 * 1024 * 1024, "largest request body", "BYTES", least=1)
    header_limit: int = setting(
        16 * 1024, "largest request line with its headers", "BYTES", least=256
    )
    header_timeout: float = setting(
        30.0, "time to receive the headers of a request", "SECONDS", least=1
    )
    body_timeout: float = setting(30.0, "time to receive the body of a request", "SECONDS", least=1)
    idle_timeout: float = setting(
        120.0, "time a connection may be idle between requests", "SECONDS", least=1
    )
    write_timeout: float = setting(
        30.0, "time for a client to read 128 KiB of its answers, or the rest", "SECONDS", least=1
    )
    connections: int = setting(16384, "open connections per worker", least=1)
    waiting_requests: int = setting(
        DEFAULT_WAITS, "waiting requests per worker before further ones are refused", least=1
    )
    unsent_bytes: int = setting(
        DEFAULT_BYTES,
        "answers held in memory per worker before further long ones are refused",
        "BYTES",
        least=1 << 20,
    )
    received_bytes: int = setting(
        DEFAULT_RECEIVED,
        "long requests held in memory per worker before further ones are refused",
        "BYTES",
        least=1 << 20,
    )
    min_commit_wait: float = setting(
        0.25,
        "time a request may wait for the commit of its Foreblock-Min-Commit",
        "SECONDS",
        most=10,
    )
    drain_grace: float = setting(5.0, "time to finish accepted requests on shutdown", "SECONDS")


@dataclass(frozen=True)
class WebSocketLimits:
    """Limits of one WebSocket connection, beside those of HTTP; times in seconds."""

    requests: int = setting(
        16, "requests of a connection that may wait at once; then it is not read from", least=1
    )
    unsent_bytes: int = setting(
        4 * 1024 * 1024,
        "messages that may wait for a client to read; beyond that it is disconnected",
        "BYTES",
        least=1024,
    )
    control_frames: int = setting(
        20, "pings and pongs per second above which a client is disconnected", least=1
    )
    ping_interval: float = setting(
        30.0, "time without a byte from a client after which it gets a ping", "SECONDS", least=1
    )
    ping_timeout: float = setting(
        30.0, "time to answer a ping before the client is disconnected", "SECONDS", least=1
    )
    idle_timeout: float = setting(
        3600.0,
        "time a connection may be without messages; 0 disables the limit",
        "SECONDS",
    )


@dataclass(frozen=True)
class Access:
    """Hosts and origins that may use the service."""

    hosts: tuple[str, ...] = setting(
        ("localhost",),
        "names allowed in the Host header, besides IP addresses; * allows all",
        "NAME",
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        "origins whose web pages may read answers, as in http://localhost:*; * allows all",
        "ORIGIN",
    )


class Phase(IntEnum):
    """The activity of a connection, which decides its timeout."""

    IDLE = 0  # between requests, with no input left
    HEAD = 1  # receiving a head
    BODY = 2  # receiving a body
    ANSWERING = 3  # with the handler, or yielding to other connections
    WRITING = 4  # the client does not read
    LINGERING = 5  # the last answer is sent; input is discarded
    OPEN = 6  # a WebSocket, which has its own time limits
