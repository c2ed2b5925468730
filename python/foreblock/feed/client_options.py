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
    # What comes below the level of messages. Frames, reads and every 16 KiB count as one each,
    # so many a second and four times as many at once; beyond that the sender waits. Beyond
    # the others, of which control frames are by the second, too, the connection is given up.
    frames: int = 1_000
    control_frames: int = 20
    handshake_bytes: int = 64 * 1024
    unread_answers: int = 64 * 1024
    # Pieces of one message; feeds send one.
    fragments: int = 1024
    waits: Waits = field(default_factory=Waits)
