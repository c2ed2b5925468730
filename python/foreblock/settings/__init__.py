"""Every setting, in frozen dataclasses: one for each command, composed of smaller ones.

A setting has one name everywhere: `body_limit` in `foreblock.toml` is `--body-limit` and
`FOREBLOCK_BODY_LIMIT`. Where values come from is in `foreblock.settings.loading`; several
networks in one command are in `foreblock.settings.networks`. Nothing here does I/O.

Over 500 lines: it is the one list.
"""

from dataclasses import dataclass
from typing import Final, Literal

from foreblock.server.limits import Access, ServerLimits, WebSocketLimits
from foreblock.setting import setting, settings_of

Dialect = Literal["preconf", "ethereum"]
ViewKind = Literal["preconfirmed", "sealed"]

MOST_NICE: Final = 19  # of the system
MOST_LOAD: Final = 10_000  # the size of a pool, which one missed second of load fills
# EIP-2294: the largest chain id that fits into a legacy signature of 64 bits, without the next.
LARGEST_CHAIN_ID: Final = (2**64 - 1) // 2 - 37
LARGEST_SEED: Final = 2**64 - 2  # the test network has the next
LARGEST_NUMBER: Final = 2**63 - 1  # fees, limits and times can grow from it within 64 bits
LARGEST_BALANCE: Final = (2**128 - 1) // 10**18

ADDRESS_INDEX: Final = (
    "keep an index of transactions by address, which ots_searchTransactions… needs"
)

# Sections of help and docs/settings.md, in their order.
SOURCE: Final = "Source"
FOLLOWING: Final = "Following a public chain"
SERVICE: Final = "Service"
OBSERVING: Final = "Metrics and logs"
NETWORKS: Final = "Development networks"
CHAIN: Final = "Development chains"
HISTORY: Final = "History"
REPLICATION: Final = "Replication"
ANSWERS: Final = "Answers"
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
    SOURCE, FOLLOWING, SERVICE, OBSERVING, NETWORKS, CHAIN, HISTORY, REPLICATION, ANSWERS, ACCESS,
    HTTP, WEBSOCKET, BATCHES, CALLS, SIMULATIONS, LOGS, TRACES, SENDING, THREADS, SUBSCRIPTIONS,
    FEEDS, STORES,
)  # fmt: skip


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
        "wait of eth_sendRawTransactionSync if the request gives none",
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
        section=ANSWERS,
    )
    snapshot_header: bool = setting(
        default=True,
        help="name the snapshot of each answer in the header Foreblock-Snapshot",
        section=ANSWERS,
    )
    pending_identity: Literal["real", "null"] = setting(
        "real", "number and hash of the pending block in answers: its own, or null", section=ANSWERS
    )
    pending_nonce: Literal["pool", "state"] = setting(
        "pool", "nonce at pending: with pooled transactions, or of the state only", section=ANSWERS
    )
    view: ViewKind = setting(
        "preconfirmed",
        "unsealed blocks at / that a request does not name: shown, or hidden as at /eth",
        section=ANSWERS,
    )
    pending_by_number: bool = setting(
        default=False,
        help="at /, find the block in progress by its number",
        section=ANSWERS,
    )
    client_version: str = setting(
        "",
        "name and version in web3_clientVersion; empty is foreblock's own",
        "NAME/VERSION",
        section=ANSWERS,
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


@dataclass(frozen=True)
class ChainSettings:
    """The chains of `foreblock dev`."""

    chain_id: int = setting(
        31337,
        "chain id of the main network; the test network uses the next",
        least=1,
        most=LARGEST_CHAIN_ID,
    )
    block_time: int = setting(2, "time between blocks", "SECONDS", least=1, most=3_600)
    interval: float = setting(0.2, "time between flashblocks", "SECONDS", least=0.01)
    gas_limit: int = setting(
        400_000_000, "gas limit of a block", "GAS", least=2_000_000, most=LARGEST_NUMBER
    )
    transaction_gas: int = setting(
        0,
        "largest gas limit of a transaction, may exceed the fork's; 0: the fork's limit",
        "GAS",
        most=LARGEST_NUMBER,
    )
    order: Literal["fees", "fifo"] = setting(
        "fees", "order of transactions: highest tip first, or first come, first served"
    )
    auto_impersonate: bool = setting(
        default=False,
        help="accept unsigned transactions of every account in eth_sendTransaction",
    )
    base_fee: int = setting(
        1_000_000_000, "base fee of block 0, and the minimum", "WEI", most=LARGEST_NUMBER
    )
    mnemonic: str = setting(
        "test test test test test test test test test test test junk",
        "mnemonic of the development accounts",
        "WORDS",
        secret=True,
    )
    derivation_path: str = setting(
        "m/44'/60'/0'/0/", "path of the accounts' keys, to which their numbers are added", "STEPS"
    )
    accounts: int = setting(10, "number of development accounts", least=1, most=10_000)
    balance: int = setting(
        10_000, "balance of each development account", "ETHER", least=1, most=LARGEST_BALANCE
    )
    genesis: str = setting("", "genesis file of all networks, instead of a generated one", "FILE")
    rules: Literal["optimism", "ethereum"] = setting(
        "optimism", "rules of the generated chains: an OP chain, or Ethereum's own"
    )
    fork: str = setting(
        "newest",
        "fork of these rules, bedrock to karst or paris to osaka; the newest: jovian, osaka",
        "NAME",
    )
    alloc: str = setting(
        "", "file with more accounts: a geth allocation or genesis, or anvil's state dump", "FILE"
    )
    code_size: int = setting(
        0, "largest code of a contract; 0: the fork's limit", "BYTES", most=LARGEST_NUMBER
    )
    create2_deployer: bool = setting(
        default=True, help="include the deterministic deployment proxy in block 0"
    )
    timestamp: int = setting(
        0,
        "time of block 0, from which time goes on; 0: 2026-01-01, then the clock",
        "SECONDS",
        most=LARGEST_NUMBER,
    )
    genesis_time: Literal["fixed", "start"] = setting(
        "fixed",
        "time of block 0 without `timestamp`: 2026-01-01, or that of the first start",
    )
    seed: int = setting(
        0, "seed of the chains' randomness; equal seeds give equal chains", most=LARGEST_SEED
    )
    instant: bool = setting(
        default=False,
        help="close a flashblock when a transaction arrives, at most every 10 ms",
    )
    mining: Literal["clock", "automine", "mixed", "manual"] = setting(
        "clock",
        "what seals blocks: the clock, each transaction, both of them, or evm_mine alone",
    )
    epoch_blocks: int = setting(
        32, "blocks by which safe trails latest; finalized trails by twice that", "BLOCKS"
    )
    one_process: bool = setting(
        default=False,
        help="serve and write the main network in one process, which executes commands faster",
    )
    print: bool = setting(
        default=False,
        help="print requests, transactions, reverts and console.log as they happen",
    )
    print_traces: bool = setting(
        default=False, help="print the call tree of each transaction, with `print`"
    )
    load: int = setting(
        0, "transactions per second to generate on each network, 0 to 10000", most=MOST_LOAD
    )
    faults: tuple[str, ...] = setting(
        (), "faults to inject, as in drop=0.01,reorg=0.001; see docs/dev-chain.md", "KIND=RATE"
    )
    feed_form: Literal["flashblocks", "subblocks"] = setting(
        "flashblocks", "form of the feeds' messages; subblocks provide no block hash and no roots"
    )
    dev_methods: Literal["loopback", "everywhere", "off"] = setting(
        "loopback",
        "addresses that serve the methods of development chains: loopback, all, or none",
        section=ACCESS,
    )

    @property
    def interval_ms(self) -> int:
        return round(self.interval * 1_000)


@dataclass(frozen=True)
class KeepSettings:
    """How much history a chain keeps while it is written to."""

    states: int = setting(
        1_800, "blocks behind the latest whose state can be read; 0 keeps all", "BLOCKS"
    )
    partials: int = setting(64, "blocks behind the latest whose flashblocks can be read", "BLOCKS")
    nodes: int = setting(
        128, "blocks behind the latest whose trie nodes are kept for reorganisations", "BLOCKS"
    )


@dataclass(frozen=True)
class ReplicationSettings:
    """The log of a network, through which several machines serve one chain."""

    log: tuple[str, ...] = setting(
        (), "NATS servers of the log of commits, as in nats://host:4222; none: no log", "URL"
    )
    log_name: str = setting(
        "", "name of the log in its stream and subjects; empty: that of the network", "NAME"
    )
    log_replicas: int = setting(
        1, "NATS servers that store the log, for the writer that creates it", least=1, most=5
    )
    log_credentials: str = setting("", "file with the NATS user and its key", "FILE")
    log_ca: str = setting(
        "", "file with the certificates to trust; with one, NATS must use TLS", "FILE"
    )
    takeover: float = setting(
        2.0, "silence of the writer after which a standby takes over; 0: never", "SECONDS"
    )
    snapshot_listen: str = setting(
        "", "address at which replicas may fetch a copy of the store; empty: nowhere", "HOST:PORT"
    )
    snapshot_from: tuple[str, ...] = setting(
        (), "nodes to fetch a copy from if the log begins too late; the first that responds", "URL"
    )


@dataclass(frozen=True)
class DevSettings:
    """The settings of `foreblock dev`: the service and its two chains."""

    service: Settings = settings_of(Settings, SERVICE)
    test_listen: str = setting(
        "127.0.0.1:9545",
        "address of the test network; empty disables the test network",
        "HOST:PORT",
        section=NETWORKS,
    )
    feed_listen: str = setting(
        "127.0.0.1:8546",
        "address of the main network's flashblocks; empty disables the feed",
        "HOST:PORT",
        section=NETWORKS,
    )
    test_feed_listen: str = setting(
        "127.0.0.1:9546",
        "address of the test network's flashblocks; empty disables the feed",
        "HOST:PORT",
        section=NETWORKS,
    )
    chain: ChainSettings = settings_of(ChainSettings, CHAIN)
    keep: KeepSettings = settings_of(KeepSettings, HISTORY, "keep_")
    address_index: bool = setting(default=False, help=ADDRESS_INDEX, section=HISTORY)
    replication: ReplicationSettings = settings_of(ReplicationSettings, REPLICATION)


@dataclass(frozen=True)
class SourceSettings:
    """Where the blocks of `foreblock serve` come from, for each network if there are several."""

    source: Literal["store", "feed", "log", "follow"] = setting(
        "store",
        "where blocks come from: the store alone, flashblocks feeds, a writer's log,"
        " or a public chain",
    )
    feed: tuple[str, ...] = setting(
        (), "flashblocks feeds to follow, ws:// or wss://, or poll+https:// with follow", "URL"
    )
    canonical: str = setting(
        "", "JSON-RPC endpoint to fetch sealed blocks from; empty disables it", "URL"
    )
    believe_cheats: bool = setting(
        default=False,
        help="apply the cheats that a dev chain announces; nobody can verify them",
    )
    network: tuple[str, ...] = setting(
        (), "settings of each network when several are served", "NAME.SETTING=VALUE"
    )


@dataclass(frozen=True)
class FollowChoices:
    """How a public chain is followed without a node of it; `source` is follow then."""

    chain: str = setting(
        "", "public chain to follow: a name of `foreblock chains`, or a file", "NAME"
    )
    upstream: tuple[str, ...] = setting(
        (), "JSON-RPC endpoints of the chain, the best first; ?units=500 sets a budget", "URL"
    )
    trust: Literal["proven", "audited", "trusted"] = setting(
        "proven",
        "how much to trust upstreams: verify state first, verify it later, or do not verify it",
    )
    audit_seconds: float = setting(
        10.0, "time in which accepted state is proven, with audited", "SECONDS", least=0.1
    )
    trust_fallback: bool = setting(
        default=False, help="accept unproven state if no upstream proves it"
    )
    sealed: Literal["named", "computed"] = setting(
        "named",
        "when a block is sealed: once the next one names it, or once its state root is computed",
    )
    anchor: str = setting(
        "latest", "block to begin at: latest, safe, finalized, a number or a hash", "BLOCK"
    )
    fetch_timeout: float = setting(
        2.0, "longest time that a request waits for state from upstreams", "SECONDS", least=0.01
    )
    fetch_rounds: int = setting(16, "rounds of fetching for one request", least=1)
    fetch_keys: int = setting(20_000, "keys of the state that one request may fetch", least=1)
    fetch_behind: int = setting(
        2, "distance below the latest block at which state is requested", "BLOCKS"
    )
    upstream_units: float = setting(
        0.0,
        "units per second to spend at each upstream; 0: 300, or 30000 in a private network",
        "UNITS",
    )
    upstream_reserve: float = setting(
        0.6, "part of the units that only flashblocks may spend", "PART", most=0.99
    )
    cold: Literal["fetch", "refuse"] = setting(
        "fetch", "if state is not in the store: fetch it, or refuse the request"
    )
    beyond: Literal["refuse", "verify", "pass"] = setting(
        "verify",
        "requests for history before the anchor: refuse, fetch blocks and verify them, or pass on",
    )
    follow_idle: float = setting(
        0.0, "pause following after this time without a request; 0: never", "SECONDS"
    )
    lag_blocks: int = setting(
        30,
        "start at a new anchor instead of catching up with more blocks than this, or half if slow",
        "BLOCKS",
    )
    send: str = setting("", "endpoint to forward raw transactions to; empty: none", "URL")


@dataclass(frozen=True)
class FollowSettings(FollowChoices):
    """The settings of one followed network, with its feeds; none: the known ones of its chain."""

    feed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServeSettings:
    """The settings of `foreblock serve`: the service and the source of its chain."""

    service: Settings = settings_of(Settings, SERVICE)
    chain: SourceSettings = settings_of(SourceSettings, SOURCE)
    follow: FollowChoices = settings_of(FollowChoices, FOLLOWING)
    genesis: str = setting(
        "", "genesis file of a chain that follows a feed", "FILE", section=SOURCE
    )
    feed_listen: str = setting(
        "",
        "address to pass flashblocks on at; empty disables the feed",
        "HOST:PORT",
        section=SOURCE,
    )
    keep: KeepSettings = settings_of(KeepSettings, HISTORY, "keep_")
    address_index: bool = setting(default=False, help=ADDRESS_INDEX, section=HISTORY)
    replication: ReplicationSettings = settings_of(ReplicationSettings, REPLICATION)


@dataclass(frozen=True)
class FollowingSettings:
    """The settings of `foreblock follow`: the service and the chain that it follows."""

    service: Settings = settings_of(Settings, SERVICE)
    follow: FollowChoices = settings_of(FollowChoices, FOLLOWING)
    feed: tuple[str, ...] = setting(
        (),
        "flashblocks feeds, ws://, wss:// or poll+https://; off: none, else the chain's own",
        "URL",
        section=FOLLOWING,
    )
    feed_listen: str = setting(
        "",
        "address to pass flashblocks on at; empty disables the feed",
        "HOST:PORT",
        section=FOLLOWING,
    )
    keep: KeepSettings = settings_of(KeepSettings, HISTORY, "keep_")
    address_index: bool = setting(default=False, help=ADDRESS_INDEX, section=HISTORY)


@dataclass(frozen=True)
class EverySetting:
    """The settings of all commands; equal names as `foreblock dev` has them."""

    dev: DevSettings = settings_of(DevSettings, SERVICE)
    source: SourceSettings = settings_of(SourceSettings, SOURCE)
    follow: FollowChoices = settings_of(FollowChoices, FOLLOWING)
