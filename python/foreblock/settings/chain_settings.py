"""The settings of chains, and those of each command: the service and its chains.

A chain is a development chain, a copy of a store, the reader of a feed or a log, or a followed
public chain. `foreblock.settings.networks` makes networks of these settings.
"""

from dataclasses import dataclass
from typing import Final, Literal

from foreblock.settings.declare import setting, settings_of
from foreblock.settings.fork_settings import ForkSettings
from foreblock.settings.service_settings import (
    ACCESS,
    CHAIN,
    FOLLOWING,
    FORKING,
    HISTORY,
    NETWORKS,
    REPLICATION,
    SERVICE,
    SOURCE,
    Settings,
)

MOST_LOAD: Final = 10_000  # the size of a pool, which one missed second of load fills
# EIP-2294: the largest chain id that fits into a legacy signature of 64 bits, without the next.
LARGEST_CHAIN_ID: Final = (2**64 - 1) // 2 - 37
LARGEST_SEED: Final = 2**64 - 2  # the test network has the next
LARGEST_NUMBER: Final = 2**63 - 1  # fees, limits and times can grow from it within 64 bits
LARGEST_BALANCE: Final = (2**128 - 1) // 10**18

ADDRESS_INDEX: Final = (
    "keep an index of transactions by address, which ots_searchTransactions… needs"
)


@dataclass(frozen=True)
class ChainSettings:
    """The chains of `foreblock dev`."""

    chain_id: int = setting(
        31337,
        "chain id of the main network; the test network uses the next",
        least=1,
        most=LARGEST_CHAIN_ID,
    )
    block_time: float = setting(
        2.0,
        "time between blocks: 0.1, 0.2, 0.25 or 0.5, or whole seconds",
        "SECONDS",
        least=0.1,
        most=3_600,
    )
    base_time: bool = setting(
        default=False,
        help="add milliseconds to blocks, as Base does; needs block_time 0.2 and OP rules",
    )
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
        "fork of these rules, bedrock to lagoon or paris to osaka; the newest: jovian, osaka",
        "NAME",
    )
    refund_gas: int = setting(
        0, "gas that the sequencer refunds to each transaction, from Lagoon on", "GAS", most=21_000
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
        "time of block 0, from which time continues; 0: 2026-01-01, then the clock",
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
    forking: ForkSettings = settings_of(ForkSettings, FORKING, "fork_")
    mirror: str = setting(
        "",
        "chain to mirror: a name of `foreblock chains`, a file, or an endpoint of such a chain",
        "CHAIN",
        section=FORKING,
    )
    mirror_feed: tuple[str, ...] = setting(
        (),
        "flashblocks feeds of the mirrored chain; off: none, else the chain's own",
        "URL",
        section=FORKING,
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
        "",
        "address at which replicas may fetch a copy of the store; empty disables this",
        "HOST:PORT",
    )
    snapshot_from: tuple[str, ...] = setting(
        (),
        "nodes to fetch a copy from if the log begins too late; the first to respond is used",
        "URL",
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
    address_index: bool = setting(default=True, help=ADDRESS_INDEX, section=HISTORY)
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
    accept_state_edits: bool = setting(
        default=False,
        help="apply the state edits that a dev chain announces; nobody can verify them",
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
        "address at which to republish flashblocks; empty disables the feed",
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
        "address at which to republish flashblocks; empty disables the feed",
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
