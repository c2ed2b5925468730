"""Every metric of a service, and the layout of its cells. No I/O.

Labels have few values, which no client chooses: networks and processes are those of the
settings, methods those of the table, feeds are numbered in the order of the settings.
`docs/metrics.md` has a row for each; a test compares.
"""

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["counter", "gauge", "histogram"]


class Metric(Struct, frozen=True):
    """One metric; `bounds` are those of a histogram's buckets but the last."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Cells of one series: of a histogram the buckets and the sum."""
        return len(self.bounds) + 2 if self.kind == "histogram" else 1


class Part(Struct, frozen=True):
    """A part of a row: the series of one metric, with labels beyond those of the row."""

    metric: Metric
    more_labels: tuple[str, ...] = ()


class Layout(Struct, frozen=True):
    """Cells that are written together: series of several metrics, one after the other."""

    name: str
    parts: tuple[Part, ...]
    sparse: bool = False  # series are shown once one of them has counted something

    @property
    def width(self) -> int:
        """Cells of one row."""
        return sum(part.metric.width for part in self.parts)


def alone(metric: Metric) -> Layout:
    """The layout of one series."""
    return Layout(metric.name, (Part(metric),))


# A series: its metric, the values of its labels, and its cells.
Series = tuple[Metric, tuple[str, ...], list[float]]


NETWORK: Final = ("network",)

# How a request ended; the fast path counts the first.
OK, ERROR, REFUSED, FAILED, CANCELLED = range(5)
OUTCOMES: Final = ("ok", "error", "refused", "failed", "cancelled")

# Methods that are not in the table, and items of a body that are no requests.
UNKNOWN: Final = "unknown"
INVALID: Final = "invalid"

# Outcomes of the messages of feeds, as in `/readyz?verbose`; others count as `other`.
FEED_OUTCOMES: Final = (
    "ahead", "applied", "bad_canonical", "broken_link", "canonical_diverged", "canonical_overrun",
    "competing", "diverged", "driven_out", "dropped_job", "duplicate", "equivocation", "failed",
    "first_on_pending", "first_on_sealed", "first_on_unknown", "first_unproven", "gap",
    "malformed", "metadata_agrees", "metadata_differs", "next", "old", "orphan", "overrun", "reorg",
    "replaced", "restart", "root_computed", "seal_foreign", "sealed_by_canonical", "sealed_by_name",
    "state_edits", "too_far", "undecodable", "unsupported", "wanting", "other",
)  # fmt: skip

REQUEST_BOUNDS: Final = (
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
)  # fmt: skip
COMMIT_BOUNDS: Final = (
    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
)  # fmt: skip
UPSTREAM_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"foreblock_{name}_total", "counter", text, labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"foreblock_{name}", "gauge", text, labels)


def _histogram(name: str, text: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    return Metric(f"foreblock_{name}_seconds", "histogram", text, labels, bounds)


# --- Requests, counted by workers ---

REQUESTS_TOTAL: Final = _counter(
    "requests", "Requests by method and outcome.", "network", "method", "outcome"
)
REQUEST_DURATION: Final = _histogram(
    "request_duration",
    "Time from the start of a request to its result, without reading and writing it.",
    REQUEST_BOUNDS,
    "network",
    "method",
)
SLOW_REQUESTS: Final = _counter(
    "slow_requests", "Requests that took longer than `slow_request`.", *NETWORK
)
RECEIVED_BYTES: Final = _counter("received_bytes", "Bytes received from clients.", *NETWORK)
SENT_BYTES: Final = _counter("sent_bytes", "Bytes sent to clients.", *NETWORK)
CONNECTIONS: Final = _gauge("connections", "Open connections.", "transport")
CONNECTIONS_ACCEPTED: Final = _counter("connections_accepted", "Accepted connections.", *NETWORK)
CONNECTIONS_REFUSED: Final = _counter(
    "connections_refused", "Connections beyond the limit.", *NETWORK
)
SUBSCRIPTIONS: Final = _gauge("subscriptions", "Open subscriptions.", *NETWORK)
WAITING_REQUESTS: Final = _gauge("waiting_requests", "Requests that wait for their result.")
UNSENT_BYTES: Final = _gauge("unsent_bytes", "Bytes of long responses that clients have not read.")
UNANSWERED_BYTES: Final = _gauge(
    "unanswered_bytes", "Bytes of long requests that are being received or served."
)
QUEUE_LENGTH: Final = _gauge("queue_length", "Requests that wait for a slice of a worker's loop.")
SLICES: Final = _counter("slices", "Slices of workers' loops given to long requests.")
THREAD_CALLS: Final = _gauge("thread_calls", "Slow calls that wait for or run on threads.")
THREAD_CALLS_BEGUN: Final = _counter("thread_calls_begun", "Slow calls passed to threads.")

# --- API keys, counted by workers; their names are those of the file, at most 1,000 ---

KEY_REQUESTS: Final = _counter("key_requests", "Requests charged to an API key.", "key")
KEY_REFUSED: Final = _counter(
    "key_refused", "Requests and HTTP bodies refused because the key had spent its budget.", "key"
)
KEY_UNITS: Final = _counter("key_units", "Units that an API key has spent.", "key")
KEY_SECONDS: Final = _counter(
    "key_seconds",
    "Time of the requests of an API key, including the time in which they wait.",
    "key",
)
KEY_FILE_FAILURES: Final = _counter(
    "key_file_failures", "Changes of the file of API keys that could not be used."
)

# --- State that workers request, on networks that follow a public chain ---

# Outcomes of a request: found, no upstream responded, the budget was spent, the store was anchored
# at another block, or the response was not proven.
STATE_OUTCOMES: Final = ("found", "unavailable", "spent", "moved", "untrue")
STATE_REQUESTS: Final = _counter(
    "state_requests",
    "Requests of workers for state that the store does not know, by outcome.",
    "network",
    "outcome",
)
STATE_KEYS: Final = _counter("state_keys", "State keys that workers requested.", *NETWORK)
STATE_WAIT: Final = _histogram(
    "state_wait", "Time from a request for state until it is known.", COMMIT_BOUNDS, *NETWORK
)
LEARNED_BYTES: Final = _gauge("learned_bytes", "Memory of workers for fetched state.", *NETWORK)

# --- Chains, read from the store by the worker that is scraped ---

READY: Final = _gauge("ready", "1 if the network is ready, as at /readyz.", *NETWORK)
COMMIT_NUMBER: Final = _gauge("commit_number", "Number of the last commit.", *NETWORK)
LATEST_NUMBER: Final = _gauge("latest_block_number", "Number of the latest block.", *NETWORK)
LATEST_AGE: Final = _gauge(
    "latest_age_seconds", "Time since the timestamp of the latest block.", *NETWORK
)
PENDING_NUMBER: Final = _gauge(
    "pending_block_number", "Number of the pending block, while there is a fresh one.", *NETWORK
)
PENDING_INDEX: Final = _gauge(
    "pending_flashblock_index", "Index of the last flashblock of the pending block.", *NETWORK
)
PENDING_AGE: Final = _gauge(
    "pending_age_seconds", "Time since the last flashblock of the pending block.", *NETWORK
)
PENDING_DISTANCE: Final = _gauge(
    "pending_distance_blocks", "Blocks from the latest to the pending one.", *NETWORK
)
EARLIEST_STATE: Final = _gauge(
    "earliest_state_block_number", "The oldest block whose state can be read.", *NETWORK
)
MAINTENANCE_BLOCKS: Final = _gauge(
    "maintenance_blocks",
    "Blocks behind the latest that are not folded or not indexed.",
    "network",
    "work",
)
MAINTENANCE_ITEMS: Final = _gauge(
    "maintenance_items", "Items of the past that are not cleared.", *NETWORK
)
STORE_FILE_BYTES: Final = _gauge("store_file_bytes", "Length of the store's file.", *NETWORK)
STORE_FREE_BYTES: Final = _gauge(
    "store_free_bytes", "Bytes of free pages in the store's file.", *NETWORK
)
STORE_READERS: Final = _gauge(
    "store_reader_slots_used", "Slots for readers of the store, used so far.", *NETWORK
)
STORE_READERS_MOST: Final = _gauge(
    "store_reader_slots", "Slots for readers of the store.", *NETWORK
)
DISK_FREE_BYTES: Final = _gauge(
    "disk_free_bytes", "Free bytes of the file system of the store.", *NETWORK
)
STORE_AVAILABLE: Final = _gauge("store_available", "1 if the store can be read.", *NETWORK)

# --- Chains, counted by the writer ---

COMMIT_DURATION: Final = _histogram(
    "commit_duration", "Time of a durable commit.", COMMIT_BOUNDS, *NETWORK
)
FLASHBLOCK_READABLE: Final = _histogram(
    "flashblock_readable",
    "Time from when a flashblock was received, or closed by the sequencer, until it is readable.",
    COMMIT_BOUNDS,
    *NETWORK,
)
REORGS: Final = _counter("reorgs", "Times that sealed blocks were removed.", *NETWORK)
DROPPED_FLASHBLOCKS: Final = _counter(
    "dropped_flashblocks",
    "Flashblocks that were readable and dropped, also those of removed blocks.",
    *NETWORK,
)
POOL_TRANSACTIONS: Final = _gauge(
    "pool_transactions", "Transactions that wait in the pool.", *NETWORK
)
SUBMISSIONS: Final = _counter(
    "submissions", "Submitted transactions, by outcome.", "network", "outcome"
)
NETWORK_RESTARTS: Final = _counter(
    "network_restarts", "Restarts of a network after a failure.", *NETWORK
)
FEED_MESSAGES: Final = _counter(
    "feed_messages", "Messages of feeds, by outcome.", "network", "outcome"
)
FEED_RECEIVED: Final = _counter("feed_received", "Messages received.", "network", "feed")
FEED_DROPPED: Final = _counter(
    "feed_dropped", "Messages dropped because too many waited.", "network", "feed"
)
FEED_CONNECTED: Final = _gauge("feed_connected", "1 if the feed is connected.", "network", "feed")
FEED_CONNECTIONS: Final = _counter(
    "feed_connections", "Connections made to a feed.", "network", "feed"
)
FEED_LAST_MESSAGE: Final = _gauge(
    "feed_last_message_timestamp_seconds", "Time of the last message.", "network", "feed"
)
CANONICAL_NUMBER: Final = _gauge(
    "canonical_block_number", "The canonical source's latest block.", *NETWORK
)
CANONICAL_BLOCKS: Final = _counter(
    "canonical_blocks", "Blocks fetched from the canonical source.", *NETWORK
)
CANONICAL_FAILURES: Final = _counter(
    "canonical_failures", "Failures of the canonical source.", *NETWORK
)
UPSTREAM_REQUESTS: Final = _counter(
    "upstream_requests", "Requests sent to an upstream.", "network", "upstream"
)
UPSTREAM_UNITS: Final = _counter(
    "upstream_units", "Budget units spent on these.", "network", "upstream"
)
UPSTREAM_REFUSALS: Final = _counter(
    "upstream_refusals",
    "Responses of an upstream that were refused, by kind.",
    "network",
    "upstream",
    "kind",
)
UPSTREAM_AVAILABLE: Final = _gauge(
    "upstream_available", "0 while an upstream rests or is paused.", "network", "upstream"
)
UPSTREAM_LATENCY: Final = _histogram(
    "upstream_latency", "Time of an upstream's responses.", UPSTREAM_BOUNDS, "network", "upstream"
)
ANCHORINGS: Final = _counter("anchorings", "New anchors that a follower took.", *NETWORK)
AUDIT_WAITING: Final = _gauge(
    "audit_waiting_values", "Values in use that wait for their proof.", *NETWORK
)
AUDIT_UNTRUE: Final = _counter("audit_untrue", "Audit failures.", *NETWORK)
LOG_CONNECTED: Final = _gauge(
    "log_connected", "1 if a NATS server of the log is connected.", *NETWORK
)
LOG_WRITES: Final = _gauge("log_writes", "1 if this node writes the log.", *NETWORK)
LOG_EPOCH: Final = _gauge("log_epoch", "The epoch of the last commit; each has a writer.", *NETWORK)
LOG_SEQUENCE: Final = _gauge("log_sequence", "The last commit's number in the stream.", *NETWORK)
LOG_BEHIND: Final = _gauge(
    "log_behind_seconds", "Time since this node had all that the writer had announced.", *NETWORK
)
LOG_SKIPPED: Final = _counter(
    "log_skipped", "Messages of the stream that are not commits of its log.", *NETWORK
)
LOG_EPOCHS_BEGUN: Final = _counter(
    "log_epochs_begun", "Times that this node began to write the log.", *NETWORK
)
LOG_FORWARDED: Final = _counter(
    "log_forwarded", "Transactions that this node forwarded to the writer of the log.", *NETWORK
)

# --- Processes ---

# Under the names that all client libraries of Prometheus have.
OPEN_FILES: Final = Metric("process_open_fds", "gauge", "Open file descriptors.", ("process",))
MOST_FILES: Final = Metric(
    "process_max_fds", "gauge", "The limit of open file descriptors.", ("process",)
)
RESIDENT_BYTES: Final = Metric(
    "process_resident_memory_bytes", "gauge", "Resident memory.", ("process",)
)
VIRTUAL_BYTES: Final = Metric(
    "process_virtual_memory_bytes",
    "gauge",
    "Address space, with the whole of the mapped stores.",
    ("process",),
)
CPU_SECONDS: Final = Metric("process_cpu_seconds_total", "counter", "CPU time.", ("process",))
START_TIME: Final = Metric(
    "process_start_time_seconds", "gauge", "Start time since the epoch.", ("process",)
)
PROCESS_RESTARTS: Final = _counter(
    "process_restarts", "Restarts of processes that ended, hung or did not start.", "role"
)
BUILD_INFO: Final = _gauge("build_info", "1, with the version.", "version")

# Rows of several series, which are counted together.
REQUESTS: Final = Layout(
    "requests",
    (*(Part(REQUESTS_TOTAL, (each,)) for each in OUTCOMES), Part(REQUEST_DURATION)),
    sparse=True,
)
TRAFFIC: Final = Layout("traffic", (Part(RECEIVED_BYTES), Part(SENT_BYTES)))

METRICS: Final = tuple(each for each in globals().values() if isinstance(each, Metric))
LAYOUTS: Final = {each.name: each for each in (REQUESTS, TRAFFIC, *map(alone, METRICS))}
