"""What the feed's server allows, in one value."""

from dataclasses import dataclass, field

from foreblock.backoff import Waits
from foreblock.feed.wire import MessageLimits


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """Limits and form of the feed; times in seconds, sizes in bytes.

    Numbers of clients, the count of unsent messages and the times of pings are the defaults
    of the proxy that public feeds stand behind, so that its clients need no change.
    """

    clients: int = 100
    clients_per_address: int = 10
    # What a client may send: bytes a second, and at once, its handshake among them. Each read
    # counts as 64 more, and each frame as 32.
    client_bytes: int = 1024
    client_burst: int = 8 * 1024
    # A client with more than this unsent is closed; one message alone is never too much.
    unsent_messages: int = 20
    unsent_bytes: int = 4 * 1024 * 1024
    # The newest flashblocks of the current job, kept for clients that ask where to begin.
    replay_bytes: int = 4 * 1024 * 1024
    handshake_timeout: float = 5.0
    close_timeout: float = 5.0
    ping_interval: float = 15.0
    ping_timeout: float = 30.0
    # On hex texts quality 1 comes within a few percent of quality 5 at a seventh of its time.
    brotli_quality: int = 1
    # Whether messages name their predecessor, as feeds do since June 2026.
    predecessor: bool = True
    # Whether it says whose it is, so that clients of ours ask it to go on where they are.
    resumable: bool = True


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
