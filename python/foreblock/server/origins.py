"""Origins whose pages may use the service: each by its text, with any port, or all. No I/O.

https://app.example        this origin
http://localhost:*         this host at any port
*                          all
"""

from typing import Final

ALL: Final = b"*"
ANY_PORT: Final = b":*"
# Pages that are served by programs of the same machine.
LOOPBACK: Final = tuple(
    f"{scheme}://{host}:*"
    for scheme in ("http", "https")
    for host in ("localhost", "127.0.0.1", "[::1]")
)


def origin_allowed(origin: bytes, allowed: frozenset[bytes]) -> bool:
    """Whether an origin is one of those that are allowed, which are in lower case."""
    name = origin.lower()
    return ALL in allowed or name in allowed or _at_any_port(name) in allowed


def _at_any_port(origin: bytes) -> bytes:
    """The origin with `:*` for its port, also for that of its scheme."""
    host, _, port = origin.rpartition(b":")
    return (host if port.isdigit() else origin) + ANY_PORT
