"""What a client of feeds keeps to, in one value."""

from dataclasses import dataclass, field

from foreblock.backoff import Waits
from foreblock.feed.wire import MessageLimits


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Times in seconds, sizes in bytes."""

    open_timeout: float = 5.0
    close_timeout: float = 1.0
    # As the proxy of public feeds pings its own upstream.
    ping_interval: float = 2.0
    ping_timeout: float = 4.0
    # A connection that lives and says nothing for so long is given up for another one.
    silence: float = 30.0
    limits: MessageLimits = field(default_factory=MessageLimits)
    # Pieces of one message; feeds send one.
    fragments: int = 1024
    waits: Waits = field(default_factory=Waits)
