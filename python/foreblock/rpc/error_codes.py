"""Exceptions to faults: the one table of codes, messages and data, per dialect.

`preconf` is the published contract, `ethereum` what other nodes answer; they differ in the one
row that says so. A class without a row takes that of its nearest base. An exception without
any row is logged with its traceback and answered as an internal error without its text, which
may hold internals. `docs/errors.md` shows this table.
"""

import logging
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from foreblock.errors import (
    BeforeAnchor,
    BusMessageTooLong,
    CommandUnknown,
    DroppedPartial,
    ErrorAnswer,
    Halted,
    HeaderOnly,
    HiddenMethod,
    IncompleteState,
    InvalidParams,
    InvalidProofData,
    KeyBudgetSpent,
    LimitExceeded,
    MissingTrieNodes,
    NonceUsedAboveLatest,
    NoSequencerHere,
    NoSigner,
    NoSuchHead,
    NotCanonical,
    NotificationsUnsupported,
    NoUpstream,
    OutcomeUnknown,
    PoolFull,
    PoolRefusal,
    PoolTooLarge,
    PoolUnavailable,
    PrunedState,
    RefusedCall,
    RefusedCommand,
    RefusedFilter,
    RefusedOverride,
    RefusedSimulation,
    RefusedTrace,
    RejectedTransaction,
    Reverted,
    Rule,
    SequencerBusy,
    SequencerUnavailable,
    StateMissing,
    StoreClosed,
    StoreReplaced,
    SubscriptionError,
    SubscriptionsTooLarge,
    SyncTimedOut,
    TimedOut,
    TooManyFilters,
    TooManyLogs,
    TooManySubscriptions,
    TooManyWaiting,
    TooMuchState,
    TooMuchUnsent,
    TraceTooLong,
    TransactionDropped,
    UnitsSpent,
    UnknownBlock,
    UnknownBlockHash,
    UnknownPartial,
    UnknownRules,
    UnknownSubscription,
)


class Fault(Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response; `data` is left out when there is none."""

    code: int
    message: str
    data: str | dict[str, int] | dict[str, str] | None = None


Dialect = Literal["preconf", "ethereum"]
Row = Callable[[Exception], Fault]

NOT_FOUND: Final = -32601  # no such method, or no such subscription
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
REFUSED: Final = -32000
TIMED_OUT: Final = -32002  # geth: request timed out
OVERLOADED: Final = -32005  # EIP-1474: limit exceeded
PRUNED: Final = 4444  # geth and reth
REVERTED: Final = 3  # geth: execution reverted
SYNC_TIMED_OUT: Final = 4  # EIP-7966
LIMIT: Final = -38026  # execution-apis: client limit exceeded

# Codes of simulations in execution-apis; a rule that is not here has none of its own.
SIMULATION: Final = {
    Rule.NONCE_TOO_LOW: -38010,
    Rule.NONCE_TOO_HIGH: -38011,
    Rule.BASE_FEE: -38012,
    Rule.INTRINSIC_GAS: -38013,
    Rule.FUNDS: -38014,
    Rule.BLOCK_GAS: -38015,
    Rule.BLOCK_NUMBER: -38020,
    Rule.BLOCK_TIME: -38021,
    Rule.INIT_CODE: -38025,
    Rule.LIMIT: -38026,
    Rule.TIP: INVALID_PARAMS,
    Rule.SYSTEM: REFUSED,
}

UNAVAILABLE: Final = "the chain is not available, try again later"

log = logging.getLogger("foreblock.rpc")


INTERNAL_ERROR: Final = Fault(INTERNAL, "internal error")


def fault_of(error: Exception, dialect: Dialect) -> Fault:
    """The fault that a client gets for an exception."""
    row = _row(type(error), dialect)
    if row is None:
        log.error("request_failed", exc_info=error)
        return INTERNAL_ERROR
    return row(error)


def _row(kind: type[Exception], dialect: Dialect) -> Row | None:
    table = _TABLES[dialect]
    return next((table[base] for base in kind.__mro__ if base in table), None)


def _coded(code: int, message: str | None = None) -> Row:
    """The code with a fixed message, or with the exception's own sentence."""
    return lambda error: Fault(code, str(error) if message is None else message)


def _hinted(error: Exception) -> Fault:
    """The exception's own sentence, and what helps against it."""
    assert isinstance(error, NonceUsedAboveLatest | NoSequencerHere | NoSigner)
    code = INVALID_PARAMS if isinstance(error, NoSigner) else REFUSED
    return Fault(code, str(error), {"hint": error.hint})


def _pruned(error: Exception) -> Fault:
    return Fault(PRUNED, f"pruned history unavailable: {error}")


def _not_available(error: Exception) -> Fault:
    """State that is not here; `retryAfter` is in seconds, where asking again may help."""
    after = getattr(error, "retry_after", None)
    data = None if after is None else {"retryAfter": after}
    return Fault(TIMED_OUT, f"state not available: {error}", data)


def _spent(error: Exception) -> Fault:
    assert isinstance(error, UnitsSpent)
    return Fault(OVERLOADED, f"state not available: {error}", {"retryAfter": error.retry_after})


def _key_spent(error: Exception) -> Fault:
    assert isinstance(error, KeyBudgetSpent)
    return Fault(OVERLOADED, str(error), {"retryAfter": error.retry_after})


def _upstream_error(error: Exception) -> Fault:
    """The error of an upstream that a request was passed on to."""
    assert isinstance(error, ErrorAnswer)
    return Fault(error.code, error.message, error.data or None)


def _reverted(error: Exception) -> Fault:
    """Exactly this message, as published; the bytes only where there are some."""
    assert isinstance(error, Reverted)
    data = "0x" + error.output.hex() if error.output else None
    return Fault(REFUSED, "execution reverted", data)


def _reverted_with_reason(error: Exception) -> Fault:
    assert isinstance(error, Reverted)
    message = f"execution reverted: {error.reason}" if error.reason else "execution reverted"
    return Fault(REVERTED, message, "0x" + error.output.hex())


def _simulation(error: Exception) -> Fault:
    assert isinstance(error, RefusedSimulation)
    return Fault(SIMULATION.get(Rule(error.rule), INTERNAL), error.why)


def _sync_timed_out(error: Exception) -> Fault:
    """The sentence of geth, with the time as Go writes it."""
    assert isinstance(error, SyncTimedOut)
    waited = _duration(error.timeout_ms)
    return Fault(
        SYNC_TIMED_OUT,
        f"The transaction was added to the transaction pool but wasn't processed in {waited}",
        "0x" + error.hash.hex(),
    )


def _duration(milliseconds: int) -> str:
    """A time above zero as Go writes it: 300ms, 1.5s, 20s, 1m0s, 1h0m0s."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds = f"{rest // 1000}.{rest % 1000:03}".rstrip("0").rstrip(".") + "s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


PRECONF: Final[dict[type[Exception], Row]] = {
    InvalidParams: _coded(INVALID_PARAMS),
    NoSigner: _hinted,
    LimitExceeded: _coded(LIMIT),
    RefusedOverride: _coded(REFUSED),
    RefusedFilter: _coded(REFUSED),
    HiddenMethod: _coded(NOT_FOUND),
    UnknownBlock: _coded(REFUSED, "header not found"),
    UnknownBlockHash: _coded(REFUSED, "header for hash not found"),
    UnknownPartial: _coded(REFUSED, "header for hash not found"),
    DroppedPartial: _coded(REFUSED, "header for hash not found"),
    NotCanonical: _coded(REFUSED, "hash is not currently canonical"),
    NoSuchHead: lambda error: Fault(REFUSED, f"{vars(error)['tag']} block not found"),
    BeforeAnchor: _pruned,
    PrunedState: _pruned,
    StateMissing: _not_available,
    MissingTrieNodes: _not_available,
    NoUpstream: _not_available,
    InvalidProofData: _not_available,
    UnitsSpent: _spent,
    ErrorAnswer: _upstream_error,
    TooMuchState: _coded(OVERLOADED),
    HeaderOnly: _pruned,
    IncompleteState: _coded(REFUSED),
    UnknownRules: _coded(REFUSED),
    RefusedCall: _coded(REFUSED),
    RefusedSimulation: _simulation,
    RefusedTrace: _coded(REFUSED),
    TraceTooLong: _coded(OVERLOADED),
    Reverted: _reverted,
    Halted: _coded(REFUSED),
    TimedOut: _coded(REFUSED),
    TooManyLogs: _coded(OVERLOADED),
    RejectedTransaction: _coded(REFUSED),
    NonceUsedAboveLatest: _hinted,
    NoSequencerHere: _hinted,
    SequencerUnavailable: _coded(REFUSED),
    SequencerBusy: _coded(
        OVERLOADED, "too many transactions are waiting for the sequencer, try again later"
    ),
    RefusedCommand: _coded(INVALID_PARAMS),
    CommandUnknown: lambda error: Fault(TIMED_OUT, f"request timed out: {error}"),
    OutcomeUnknown: lambda error: Fault(TIMED_OUT, f"request timed out: {error}"),
    PoolRefusal: _coded(REFUSED),
    TransactionDropped: _coded(REFUSED),
    SyncTimedOut: _sync_timed_out,
    PoolUnavailable: _coded(TIMED_OUT),
    PoolTooLarge: _coded(OVERLOADED),
    BusMessageTooLong: _coded(OVERLOADED),
    SubscriptionError: _coded(REFUSED),
    NotificationsUnsupported: _coded(NOT_FOUND),
    UnknownSubscription: _coded(NOT_FOUND),
    TooManySubscriptions: _coded(OVERLOADED),
    SubscriptionsTooLarge: _coded(OVERLOADED),
    TooManyFilters: _coded(OVERLOADED),
    StoreReplaced: _coded(REFUSED, UNAVAILABLE),
    StoreClosed: _coded(REFUSED, UNAVAILABLE),
    PoolFull: _coded(OVERLOADED, "too many long calls are waiting, try again later"),
    TooManyWaiting: _coded(OVERLOADED, "too many requests are waiting, try again later"),
    KeyBudgetSpent: _key_spent,
    TooMuchUnsent: _coded(
        OVERLOADED, "too many responses are unread; request less or try again later"
    ),
}
ETHEREUM: Final[dict[type[Exception], Row]] = PRECONF | {Reverted: _reverted_with_reason}

_TABLES: Final = {"preconf": PRECONF, "ethereum": ETHEREUM}
