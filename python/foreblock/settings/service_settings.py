"""The settings of the service, whatever its chains are: addresses, answers and limits.

Defaults of limits follow geth's where it has them (`node/defaults.go`).
"""

from dataclasses import dataclass
from typing import Final, Literal

from foreblock.scheduling.admission import DEFAULT_BYTES, DEFAULT_RECEIVED, DEFAULT_WAITS
from foreblock.settings.declare import setting, settings_of

Dialect = Literal["preconf", "ethereum"]
ViewKind = Literal["preconfirmed", "sealed"]

MOST_NICE: Final = 19  # of the system

# Sections of help and docs/settings.md, in their order.
SOURCE: Final = "Source"
FOLLOWING: Final = "Following a public chain"
SERVICE: Final = "Service"
OBSERVING: Final = "Metrics and logs"
NETWORKS: Final = "Development networks"
CHAIN: Final = "Development chains"
FORKING: Final = "Forking another chain"
HISTORY: Final = "History"
REPLICATION: Final = "Replication"
RESPONSES: Final = "Responses"
ACCESS: Final = "Access"
HTTP: Final = "HTTP limits"
WEBSOCKET: Final = "WebSocket limits"
BATCHES: Final = "Batch limits"
CALLS: Final = "Call limits"
SIMULATIONS: Final = "Simulation limits"
LOGS: Final = "Log limits"
TRACES: Final = "Trace limits"
SENDING: Final = "Sending limits"
THREADS: Final = "Threads for slow calls"
SUBSCRIPTIONS: Final = "Subscriptions and filters"
FEEDS: Final = "Feed limits"
STORES: Final = "Stores"
SECTIONS: Final = (
    SOURCE, FOLLOWING, SERVICE, OBSERVING, NETWORKS, CHAIN, FORKING, HISTORY, REPLICATION,
    RESPONSES, ACCESS, HTTP, WEBSOCKET, BATCHES, CALLS, SIMULATIONS, LOGS, TRACES, SENDING, THREADS,
    SUBSCRIPTIONS, FEEDS, STORES,
)  # fmt: skip


@dataclass(frozen=True)
class ServerLimits:
    """Limits of one worker; times in seconds, sizes in bytes."""

    body_limit: int = setting(5 * 1024 * 1024, "largest request body", "BYTES", least=1)
    header_limit: int = setting(
        16 * 1024, "largest request line with its headers", "BYTES", least=256
    )
    header_timeout: float = setting(
        30.0, "time to receive the headers of a request", "SECONDS", least=1
    )
    body_timeout: float = setting(30.0, "time to receive the body of a request", "SECONDS", least=1)
    idle_timeout: float = setting(
        120.0, "time a connection may be idle between requests", "SECONDS", least=1
    )
    write_timeout: float = setting(
        30.0, "time for a client to read 128 KiB of its responses, or the rest", "SECONDS", least=1
    )
    connections: int = setting(16384, "open connections per worker", least=1)
    waiting_requests: int = setting(
        DEFAULT_WAITS, "waiting requests per worker before further ones are refused", least=1
    )
    unsent_bytes: int = setting(
        DEFAULT_BYTES,
        "responses held in memory per worker before further long ones are refused",
        "BYTES",
        least=1 << 20,
    )
    received_bytes: int = setting(
        DEFAULT_RECEIVED,
        "long requests held in memory per worker before further ones are refused",
        "BYTES",
        least=1 << 20,
    )
    gzip_from: int = setting(
        0,
        "compress responses from this size on for clients that accept gzip or zstd, and accept"
        " compressed requests; 0 disables compression",
        "BYTES",
    )
    min_commit_wait: float = setting(
        0.25,
        "time a request may wait for the commit of its Foreblock-Min-Commit",
        "SECONDS",
        most=10,
    )
    drain_grace: float = setting(5.0, "time to finish accepted requests on shutdown", "SECONDS")


@dataclass(frozen=True)
class WebSocketLimits:
    """Limits of one WebSocket connection, beside those of HTTP; times in seconds."""

    requests: int = setting(
        16, "requests of a connection that may wait at once before reading from it pauses", least=1
    )
    unsent_bytes: int = setting(
        4 * 1024 * 1024,
        "messages that may wait for a client to read; beyond that it is disconnected",
        "BYTES",
        least=1024,
    )
    control_frames: int = setting(
        20, "pings and pongs per second above which a client is disconnected", least=1
    )
    ping_interval: float = setting(
        30.0, "time without a byte from a client after which it gets a ping", "SECONDS", least=1
    )
    ping_timeout: float = setting(
        30.0, "time to reply to a ping before the client is disconnected", "SECONDS", least=1
    )
    idle_timeout: float = setting(
        3600.0,
        "time a connection may be without messages; 0 disables the limit",
        "SECONDS",
    )


@dataclass(frozen=True)
class Access:
    """Hosts, origins and keys that may use the service."""

    hosts: tuple[str, ...] = setting(
        ("localhost",),
        "names allowed in the Host header, besides IP addresses; * allows all",
        "NAME",
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        "origins whose web pages may read responses, as in http://localhost:*; * allows all",
        "ORIGIN",
    )
    api_keys: str = setting(
        "",
        "file of API keys, TOML or .json; without it requests need no key",
        "FILE",
    )


@dataclass(frozen=True)
class BatchLimits:
    """Limits of one JSON-RPC batch; geth's defaults."""

    items: int = setting(1000, "requests in a batch; 0 disables the limit")
    bytes: int = setting(25_000_000, "size of a batch's results; 0 disables the limit", "BYTES")


@dataclass(frozen=True)
class CallLimits:
    """Limits of one call."""

    gas_cap: int = setting(50_000_000, "gas of a call; 0 disables the limit", "GAS")
    timeout: float = setting(5.0, "run time of a call; 0 disables the limit", "SECONDS")
    create: bool = setting(
        default=False,
        help="allow eth_call without `to` in the preconf dialect, which runs init code",
    )


@dataclass(frozen=True)
class SimulateLimits:
    """Limits of one simulation; geth's defaults."""

    blocks: int = setting(256, "blocks of a simulation, including those that fill gaps", least=1)
    block_calls: int = setting(5_000, "calls in a simulated block", least=1)
    calls: int = setting(10_000, "calls in a simulation", least=1)
    output: int = setting(16 << 20, "data returned by all calls of a simulation", "BYTES", least=1)


@dataclass(frozen=True)
class LogLimits:
    """Limits of one query of logs."""

    results: int = setting(10_000, "logs that a query over several blocks may find", least=1)
    blocks: int = setting(
        0, "distance from the first to the last block of a query; 0 disables the limit", "BLOCKS"
    )


@dataclass(frozen=True)
class SyncLimits:
    """How long eth_sendRawTransactionSync waits for a receipt; geth's defaults."""

    timeout: float = setting(
        20.0,
        "wait of eth_sendRawTransactionSync if the request has none",
        "SECONDS",
        least=0.001,
    )
    longest_timeout: float = setting(
        60.0,
        "longest wait of eth_sendRawTransactionSync; longer ones are lowered",
        "SECONDS",
        least=0.001,
    )


@dataclass(frozen=True)
class TraceLimits:
    """Limits of one trace."""

    output: int = setting(64 << 20, "size of a trace", "BYTES", least=1024)
    blocks: int = setting(100, "blocks that one trace_filter may cover", least=1)


@dataclass(frozen=True)
class ThreadLimits:
    """Limits of the threads for slow calls in one worker."""

    threads: int = setting(0, "threads per worker; 0 divides the cores among the workers")
    begun: int = setting(16, "slow calls in progress per worker, which take turns", least=1)
    queue: int = setting(256, "slow calls that may wait before further ones are refused", least=1)


@dataclass(frozen=True)
class SubscriptionLimits:
    """Limits of subscriptions and filters."""

    subscriptions: int = setting(256, "subscriptions of one connection", least=1)
    filters: int = setting(10_000, "filters of a network", least=1)
    filter_timeout: float = setting(
        300.0, "remove a filter that was not polled for this long", "SECONDS", least=1
    )


@dataclass(frozen=True)
class FeedLimits:
    """Limits of the clients of a served feed, and of the feeds that are read."""

    clients: int = setting(100, "clients of a served feed", least=1)
    clients_per_address: int = setting(10, "clients of a served feed from one address", least=1)
    client_bytes: int = setting(
        1024,
        "bytes per second that a client may send; a read counts as 64 more, a frame as 32 more",
        "BYTES",
        least=1,
    )
    frames: int = setting(
        1_000, "frames per second that are read from a feed; the rest waits", least=1
    )
    control_frames: int = setting(
        20, "pings and pongs per second above which a feed is disconnected for 10 s", least=1
    )


@dataclass(frozen=True)
class StoreResources:
    """System resources of each store."""

    map_size: int = setting(
        1 << 38,
        "initial address space of a store; grows when it is used up",
        "BYTES",
        least=1 << 20,
        most=1 << 46,
    )
    max_readers: int = setting(
        16_384,
        "commits of a store that its processes can read concurrently",
        least=64,
        most=1 << 20,
    )


@dataclass(frozen=True)
class Settings:
    """The settings of the service, whatever its chains are."""

    data: str = setting("", "directory of the store, or of one store per network", "DIRECTORY")
    listen: str = setting(
        "127.0.0.1:8545",
        "address of the JSON-RPC endpoint, or several with commas; port 0 picks a free port",
        "HOST:PORT",
    )
    workers: int = setting(0, "worker processes; 0 starts one per core")
    nice: int = setting(0, "niceness of workers, 0 to 19", most=MOST_NICE)
    dialect: Dialect = setting(
        "preconf",
        "reply format: the pre-confirmation API, or that of execution-apis and geth",
        section=RESPONSES,
    )
    snapshot_header: bool = setting(
        default=True,
        help="name the snapshot of each response in the header Foreblock-Snapshot",
        section=RESPONSES,
    )
    pending_identity: Literal["real", "null"] = setting(
        "real",
        "number and hash of the pending block in responses: its own, or null",
        section=RESPONSES,
    )
    pending_nonce: Literal["pool", "state"] = setting(
        "pool",
        "nonce at pending: with pooled transactions, or of the state only",
        section=RESPONSES,
    )
    view: ViewKind = setting(
        "preconfirmed",
        "unsealed blocks at / that a request does not name: shown, or hidden as at /eth",
        section=RESPONSES,
    )
    pending_by_number: bool = setting(
        default=False,
        help="at /, find the block in progress by its number",
        section=RESPONSES,
    )
    client_version: str = setting(
        "",
        "name and version in web3_clientVersion; empty is foreblock's own",
        "NAME/VERSION",
        section=RESPONSES,
    )
    page: bool = setting(
        default=True, help="serve the page for browsers at / and /ui", section=ACCESS
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "least severe events to log"
    )
    metrics: bool = setting(
        default=True, help="serve metrics for Prometheus at /metrics", section=OBSERVING
    )
    metrics_listen: str = setting(
        "",
        "address of /metrics alone; empty serves it at every JSON-RPC endpoint",
        "HOST:PORT",
        section=OBSERVING,
    )
    log_format: Literal["auto", "json", "text"] = setting(
        "auto",
        "format of logs; auto is text on a terminal and JSON elsewhere",
        section=OBSERVING,
    )
    slow_request: float = setting(
        1.0,
        "log a request that takes this long or longer; 0 disables this",
        "SECONDS",
        section=OBSERVING,
    )
    otlp_endpoint: str = setting(
        "",
        "collector of OpenTelemetry for spans of requests, by OTLP over HTTP; empty: none",
        "URL",
        section=OBSERVING,
    )
    otlp_sample: float = setting(
        0.0,
        "part of the requests without a traceparent that have spans",
        "PART",
        most=1,
        section=OBSERVING,
    )
    worker_timeout: float = setting(
        10.0, "restart a worker that is unresponsive for this long; 0 disables this", "SECONDS"
    )
    writer_timeout: float = setting(
        60.0, "restart a writer that is unresponsive for this long; 0 disables this", "SECONDS"
    )
    server: ServerLimits = settings_of(ServerLimits, HTTP)
    websocket: WebSocketLimits = settings_of(WebSocketLimits, WEBSOCKET, "ws_")
    access: Access = settings_of(Access, ACCESS)
    batch: BatchLimits = settings_of(BatchLimits, BATCHES, "batch_")
    call: CallLimits = settings_of(CallLimits, CALLS, "call_")
    simulate: SimulateLimits = settings_of(SimulateLimits, SIMULATIONS, "simulate_")
    logs: LogLimits = settings_of(LogLimits, LOGS, "logs_")
    trace: TraceLimits = settings_of(TraceLimits, TRACES, "trace_")
    sync: SyncLimits = settings_of(SyncLimits, SENDING, "sync_")
    pool: ThreadLimits = settings_of(ThreadLimits, THREADS, "pool_")
    subscription: SubscriptionLimits = settings_of(SubscriptionLimits, SUBSCRIPTIONS)
    feed: FeedLimits = settings_of(FeedLimits, FEEDS, "feed_")
    store: StoreResources = settings_of(StoreResources, STORES)

    @property
    def block_required(self) -> bool:
        """Requests must name a block; otherwise the default is `latest`."""
        return self.dialect == "preconf"

    @property
    def unnamed_block(self) -> Literal["latest", "pending"]:
        """The default block of a prepared transaction: the one that it builds on."""
        return "pending" if self.view == "preconfirmed" else "latest"

    @property
    def creates(self) -> bool:
        """A call without `to` creates a contract."""
        return self.dialect == "ethereum" or self.call.create
