"""The status of a network: its chain as a worker reads it, and its source as the writer reports it.

A worker makes a `ChainStatus` from its store. The writer makes a `SourceStatus` once a second and
sends it to the workers. `NetworkStatus` joins both. `/readyz` serves it as JSON or as text
(`status_text`), `/metrics` as series (`status_metrics`), and the commands `status` and `watch`
decode the JSON. No I/O.

Ages and durations are in seconds, at the moment at which a part was made.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

SourceKind = Literal["store", "dev", "feed", "log", "follow"]

REACHABLE_SECONDS: Final = 2.0  # after the last message of a log's writer
UNTRUE: Final = "Untrue"  # the audit's counter of accepted values that were refuted


# --- The source ----------------------------------------------------------------------------


class FeedStatus(Struct, frozen=True):
    """One feed; its number in metrics is its position in the settings."""

    url: str
    connected: bool
    connections: int
    messages: int
    dropped: int
    malformed: int
    age: float | None  # of the last message
    last_error: str = ""


class MessageStatus(Struct, frozen=True):
    """The outcomes of the messages of all feeds."""

    outcomes: Mapping[str, int]
    missing: str = ""  # hash of the block without which the chain cannot continue
    last_error: str = ""


class CanonicalStatus(Struct, frozen=True):
    """The source of sealed blocks."""

    url: str
    tip: int | None
    fetched: int
    failures: int
    last_error: str = ""


class UpstreamStatus(Struct, frozen=True):
    """One upstream of a followed chain."""

    url: str
    client: str  # empty until it is known
    can_prove: bool
    requests: int
    units: int
    refusals: Mapping[str, int]  # by kind
    latency: float | None  # the median
    rests_for: float  # after failures
    paused_for: float  # as it requested
    short: str = ""  # the remedy if its units do not suffice for flashblocks


class AuditStatus(Struct, frozen=True):
    """The proofs of values that were accepted before they were proven."""

    counters: Mapping[str, int]
    waiting: int
    oldest: float
    accepts_unproven: bool
    last_untrue: str = ""


class RootStatus(Struct, frozen=True):
    """The state roots that are computed behind the head."""

    computed: int = 0
    last: int = 0  # block
    requested: int = 0  # proofs
    refused: int = 0  # times that proofs were not available


class WorkingSetStatus(Struct, frozen=True):
    """The state in use, and how much of it was fetched again after an anchoring."""

    accounts: int
    slots: int
    wanted: int = 0  # keys
    known: int = 0
    is_fetching: bool = False


class FollowStatus(Struct, frozen=True):
    """A public chain that is followed without a node."""

    anchorings: int
    last_anchoring: str  # its reason
    state: Mapping[str, int]  # counters of fetched state
    last_error: str
    upstreams: tuple[UpstreamStatus, ...]
    roots: RootStatus
    working_set: WorkingSetStatus
    templates: int  # kinds of calls whose keys can be predicted
    audit: AuditStatus | None = None


class LogStatus(Struct, frozen=True):
    """A node of a log."""

    is_open: bool  # the stream was found
    connected: bool
    epoch: int
    sequence: int
    commit: int
    behind: float = 0.0
    silence: float | None = None  # of the writer; None before its first message
    writes: bool = False
    waits: bool = False  # the writer waits for the log
    skipped: int = 0  # messages that are not commits of this log
    last_skipped: str = ""  # the reason

    @property
    def is_silent(self) -> bool:
        """True if the writer was reachable and no longer is."""
        return self.silence is not None and self.silence > REACHABLE_SECONDS


class SourceStatus(Struct, frozen=True):
    """The source of a network's blocks. A part is None or empty if the source has none."""

    log: LogStatus | None = None
    feeds: tuple[FeedStatus, ...] = ()
    messages: MessageStatus | None = None
    canonical: CanonicalStatus | None = None
    follow: FollowStatus | None = None
    failure: str = ""  # the reason of the network's last failure
    is_running: bool = True


# --- The chain and the network -------------------------------------------------------------


class BlockStatus(Struct, frozen=True):
    """The latest sealed block."""

    number: int
    hash: str
    age: float


class PendingStatus(BlockStatus, frozen=True):
    """The block in progress; its age is that of its newest flashblock."""

    flashblock: int


class BaseStatus(Struct, frozen=True):
    """The block from which a chain is followed."""

    number: int
    hash: str
    epoch: int
    trust: str


class RulesStatus(Struct, frozen=True):
    """The first block whose rules are not known."""

    block: int
    why: str


class ChainStatus(Struct, frozen=True):
    """A chain and the backlog of its maintenance."""

    commit: int
    latest: BlockStatus
    pending: PendingStatus | None
    earliest_state: int
    logs_to_index: int  # blocks
    to_fold: int  # blocks
    to_clear: int  # items
    addresses_to_index: int | None = None  # blocks; None without the index
    base: BaseStatus | None = None
    too_old: float | None = None  # the limit that the age of a followed `latest` exceeds
    rules_end: RulesStatus | None = None
    first_edit: int | None = None  # the first block with state edits


class NetworkStatus(Struct, frozen=True):
    """One network of an instance."""

    name: str
    kind: SourceKind
    ready: bool
    chain: ChainStatus | None = None
    store_error: str = ""  # the reason if there is no chain
    source: SourceStatus | None = None
    source_age: float = 0.0  # of the writer's report

    @property
    def moves(self) -> bool:
        """False if nothing writes to the chain."""
        return self.kind != "store"


class InstanceStatus(Struct, frozen=True):
    """The networks at one address, as `/readyz` serves them."""

    ready: bool
    networks: tuple[NetworkStatus, ...]


def decode_status(text: str) -> InstanceStatus | None:
    """Decode the JSON of `/readyz`; None for the response of another server."""
    try:
        return msgspec.json.decode(text, type=InstanceStatus)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


S = TypeVar("S", bound=Struct)


def map_texts(status: S, change: Callable[[str], str]) -> S:
    """Apply a function to every text of a status."""
    return msgspec.convert(_mapped(msgspec.to_builtins(status), change), type(status))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401, as JSON has it
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _mapped(each, change) for name, each in value.items()}
        case list() | tuple():
            return [_mapped(each, change) for each in value]
        case _:
            return value
