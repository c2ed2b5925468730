"""What the server is given, by its own name."""

from foreblock.scheduling.reply import (
    NO_FAST_PATH,
    Client,
    FastPath,
    Handler,
    Readiness,
    Reply,
    Served,
)

__all__ = ["NO_FAST_PATH", "Client", "FastPath", "Handler", "Readiness", "Reply", "Served"]
