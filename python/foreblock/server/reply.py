"""What the server is given, by its own name."""

from foreblock.reply import Handler, Readiness, Reply, Served

__all__ = ["Handler", "Readiness", "Reply", "Served"]
