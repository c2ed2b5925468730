"""Who asks, where a test does not care."""

from foreblock.reply import Client

ANYBODY = Client("127.0.0.1", 0)
