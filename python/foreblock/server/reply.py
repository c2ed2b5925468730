"""What the server is given, by its own name."""

from foreblock.reply import NO_EXPRESS, Client, Express, Handler, Readiness, Reply, Served
from foreblock.room import LongText

__all__ = [
    "NO_EXPRESS", "Client", "Express", "Handler", "LongText", "Readiness", "Reply", "Served",
]  # fmt: skip
