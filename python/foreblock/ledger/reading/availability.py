"""Decide whether a network can be served, and whether it is ready.

A worker whose store was removed or replaced keeps running with an `AbsentLedger`, which
refuses every request with the reason. If the worker ended instead, it would be restarted
again and again, and clients would wait in between. It ends when a store can be served again.

An imported chain is always ready: it does not move. One with a source is ready while its
pending block is fresh, which shows that the source lives; one that is followed may have no
flashblocks, and is ready too while its latest block is only a few block times old. Readers
decide that by their own clocks, so a writer that stands still is noticed.
"""

from collections.abc import Callable, Hashable
from typing import Final

from foreblock.clock import SECOND_NS
from foreblock.errors import StoreError, StoreReplaced
from foreblock.ledger.reading.blocks import PRECONFIRMED, Visibility, base_fact
from foreblock.ledger.reading.view import Behind, Ledger, LedgerView
from foreblock.ledger.storage.store_watch import SeenCommit

# A followed chain without a pending block is ready while its latest block is not older than this:
# blocks may be missed, and take a while to arrive from an upstream.
READY_BLOCKS: Final = 4
READY_SECONDS: Final = 2.0


class AbsentLedger:
    """The place of a ledger whose store cannot be served; every view is refused."""

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
        """A check that raises `StoreReplaced` once there is a store to serve again."""

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
    """The ledger in a folder, or an `AbsentLedger` where the one served before is gone or behind.

    Errors of opening are raised where nothing was served before.
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


def is_ready(view: LedgerView, wall_ns: int, *, moves: bool) -> bool:
    if view.pending is not None or not moves:
        return True
    age = wall_ns / SECOND_NS - view.latest.header.timestamp
    return view.followed and age <= _most_seconds(view)


def _most_seconds(view: LedgerView) -> float:
    """The age of the latest block at which a followed chain is still ready."""
    return READY_BLOCKS * view.profile.block_time + READY_SECONDS


def readiness(view: LedgerView, wall_ns: int, *, moves: bool) -> tuple[bool, tuple[str, ...]]:
    """The readiness at this wall time, and the facts, one per line."""
    latest, pending = view.latest, view.pending
    age = wall_ns / SECOND_NS - latest.header.timestamp
    facts = [
        f"commit: {view.commit}",
        f"latest: block {latest.number}, {age:.1f} s old, 0x{latest.hash.hex()}",
    ]
    if pending is not None:
        age = (wall_ns - pending.received_at_ns) / SECOND_NS
        distance = pending.number - latest.number
        place = f"block {pending.number}, flashblock {pending.index}"
        facts.append(f"pending: {place}, {age:.2f} s old, 0x{pending.hash.hex()}")
        facts.append(f"distance: pending is {distance} above latest")
    elif moves:
        facts.append("pending: none; no flashblock came in time, so pending means latest")
    else:
        facts.append("pending: none; nothing is written to this chain, so pending means latest")
    if view.followed:
        if pending is None and age > _most_seconds(view):
            facts.append(f"behind: latest is older than {_most_seconds(view):g} s")
        facts.append(base_fact(view.base, view.trust))
    if view.rules_end is not None:
        end = view.rules_end
        facts.append(f"rules: not known since block {end.block} ({end.why}); no calls, no pending")
    behind = view.behind
    facts.append(f"states: from block {behind.earliest} on")
    facts.append(f"logs: {behind.to_index} blocks to index")
    if behind.addresses_to_index is not None:
        facts.append(f"addresses: {behind.addresses_to_index} blocks to index")
    if moves:
        facts.append(_maintenance(behind))
    state = view.dev_state
    if state is not None and state.first_cheat is not None:
        facts.append(
            f"cheats: from block {state.first_cheat} on; followers need believe_cheats for them"
        )
    return is_ready(view, wall_ns, moves=moves), tuple(facts)


def _maintenance(behind: Behind) -> str:
    """The backlog of maintenance; unfolded blocks make reads slower."""
    if not behind.to_fold and not behind.to_clear:
        return "maintenance: up to date"
    return f"maintenance: {behind.to_fold} blocks to fold, {behind.to_clear} items to clear"
