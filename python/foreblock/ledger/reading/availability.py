"""Availability of a network: an absent store, readiness, and the status of its chain.

A worker whose store was removed or replaced keeps running with an `AbsentLedger`, which refuses
every request with the reason. If the worker ended instead, it would be restarted again and again,
and clients would wait in between. It ends when a store can be served again.

A chain without a source is always ready. Any other chain is ready while its pending block is
fresh. A followed chain may have no flashblocks, so it is also ready while its latest block is only
a few block times old. Workers decide this by their own clocks, so they notice a writer that hangs.
"""

from collections.abc import Callable, Hashable
from typing import Final

from foreblock.clock import SECOND_NS
from foreblock.errors import StoreError, StoreReplaced
from foreblock.ledger.reading.blocks import PRECONFIRMED, PreconfirmedBlock, Visibility
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.primitives import format_data
from foreblock.status.network_status import (
    BaseStatus,
    BlockStatus,
    ChainStatus,
    NetworkStatus,
    PendingStatus,
    RulesStatus,
    SourceKind,
)

# A followed chain without a pending block is ready while its latest block is not older than this:
# blocks may be missed, and take a while to arrive from an upstream.
READY_BLOCKS: Final = 4
READY_SECONDS: Final = 2.0


class AbsentLedger:
    """Stands in for a ledger whose store cannot be served; refuses every view."""

    def __init__(self, path: str, reason: StoreReplaced, *, announce: bool) -> None:
        self._path: Final = path
        self._reason = reason
        self._announce: Final = announce

    def view(
        self, client: Hashable | None = None, visibility: Visibility = PRECONFIRMED
    ) -> LedgerView:
        """Raise the reason, a `StoreReplaced`."""
        del client, visibility
        raise StoreReplaced(self._reason.path, self._reason.why)

    def watch(self, seen: SeenCommit) -> Callable[[], None]:
        """Return a check that raises `StoreReplaced` once a store can be served again."""

        def check() -> None:
            found = open_served(self._path, seen, announce=self._announce)
            if isinstance(found, Ledger):
                found.close()
                raise StoreReplaced(self._path, "it can be served again")
            self._reason = found._reason  # noqa: SLF001, one of the same kind

        return check


def open_served(
    path: str,
    seen: SeenCommit,
    *,
    announce: bool,
    max_readers: int | None = None,
    followed: bool = False,
) -> Ledger | AbsentLedger:
    """Open the ledger in a folder; an `AbsentLedger` if the one served before is gone or behind.

    Raises `StoreError` if nothing was served before.
    """
    try:
        return Ledger.open(
            path, announce=announce, seen=seen, max_readers=max_readers, followed=followed
        )
    except StoreError as why:
        if not seen.highest:
            raise
        reason = why if isinstance(why, StoreReplaced) else StoreReplaced(path, str(why))
        return AbsentLedger(path, reason, announce=announce)


def network_status(
    ledger: Ledger | AbsentLedger, name: str, kind: SourceKind, wall_ns: int
) -> NetworkStatus:
    """The status of a network at this wall time, without that of its source."""
    try:
        view = ledger.view()
    except StoreError as why:
        return NetworkStatus(name, kind, ready=False, store_error=str(why))
    try:
        chain = _chain(view, wall_ns)
        return NetworkStatus(name, kind, _is_ready(chain, kind), chain)
    finally:
        view.close()


def _is_ready(chain: ChainStatus, kind: SourceKind) -> bool:
    if chain.pending is not None or kind == "store":
        return True
    return chain.base is not None and chain.too_old is None


def _chain(view: LedgerView, wall_ns: int) -> ChainStatus:
    latest, pending, behind, dev_state = view.latest, view.pending, view.behind, view.dev_state
    age, end = wall_ns / SECOND_NS - latest.header.timestamp, view.rules_end
    most = READY_BLOCKS * view.profile.block_time + READY_SECONDS
    return ChainStatus(
        commit=view.commit,
        latest=BlockStatus(latest.number, format_data(latest.hash), age),
        pending=None if pending is None else _pending(pending, wall_ns),
        earliest_state=behind.earliest,
        logs_to_index=behind.to_index,
        to_fold=behind.to_fold,
        to_clear=behind.to_clear,
        addresses_to_index=behind.addresses_to_index,
        base=_base(view) if view.followed else None,
        too_old=most if view.followed and pending is None and age > most else None,
        rules_end=None if end is None else RulesStatus(end.block, end.why),
        first_edit=None if dev_state is None else dev_state.first_edit,
    )


def _pending(pending: PreconfirmedBlock, wall_ns: int) -> PendingStatus:
    age = (wall_ns - pending.received_at_ns) / SECOND_NS
    return PendingStatus(pending.number, format_data(pending.hash), age, pending.index)


def _base(view: LedgerView) -> BaseStatus:
    base = view.base
    return BaseStatus(base.number, format_data(base.hash), base.epoch, view.trust)
