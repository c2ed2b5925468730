"""What the server is given, by its own name."""

from foreblock.scheduling.reply import (
    NO_EXPRESS,
    Client,
    Express,
    Handler,
    Readiness,
    Reply,
    Served,
)

__all__ = ["NO_EXPRESS", "Client", "Express", "Handler", "Readiness", "Reply", "Served"]
