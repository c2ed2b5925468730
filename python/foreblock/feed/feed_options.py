"""Options of the feed's server and client."""

from msgspec import Struct, field

from foreblock.backoff import Waits
from foreblock.feed.wire import MessageLimits


class FeedServerOptions(Struct, frozen=True):
    """Options of a served feed; times in seconds, sizes in bytes.

    Numbers of clients, unsent messages and ping times are the defaults of the proxy in front
    of public feeds, so that its clients need no change.
    """

    clients: int = 100
    clients_per_address: int = 10
    # Input of a client in bytes per second, and at once, including its handshake. A read counts
    # as 64 more, a frame as 32 more.
    client_bytes: int = 1024
    client_burst: int = 8 * 1024
    # A client with more unsent data is closed; a single message is always allowed.
    unsent_messages: int = 20
    unsent_bytes: int = 4 * 1024 * 1024
    # The newest flashblocks of the current job, for clients that resume.
    replay_bytes: int = 4 * 1024 * 1024
    handshake_timeout: float = 5.0
    close_timeout: float = 5.0
    stop_timeout: float = 2.0  # to close all clients
    ping_interval: float = 15.0
    ping_timeout: float = 30.0
    # Quality 1 is within a few percent of quality 5 on hex texts, in a seventh of its time.
    brotli_quality: int = 1
    # HOST:PORT of the JSON-RPC of the same chain, for clients that expect it here.
    rpc: str = ""
    # Whether messages name their predecessor, as on feeds since June 2026.
    predecessor: bool = True
    # Whether the `Server` header names foreblock, so that our clients resume where they are.
    resumable: bool = True


class FeedClientOptions(Struct, frozen=True):
    """Options of a client; times in seconds, sizes in bytes."""

    open_timeout: float = 5.0
    close_timeout: float = 1.0
    # As the proxy of public feeds pings its upstream.
    ping_interval: float = 2.0
    ping_timeout: float = 4.0
    # A connection without messages for this long is replaced.
    silence: float = 30.0
    limits: MessageLimits = field(default_factory=MessageLimits)
    # Limits below the level of messages. A frame, a read and every 16 KiB count as one each,
    # per second with bursts of four times as many; beyond that the sender waits. Beyond the
    # other limits, of which control frames are per second too, the connection is closed.
    frames: int = 1_000
    control_frames: int = 20
    handshake_bytes: int = 64 * 1024
    unread_answers: int = 64 * 1024
    # Fragments of one message; feeds send one.
    fragments: int = 1024
    waits: Waits = field(default_factory=Waits)
