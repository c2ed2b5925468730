"""The fast path: the engine answers common requests from their bytes alone.

Its answers equal those of the long way, from envelope to method. The long way decides which
snapshot is the last, how its blocks read and which calls are short, and hands that over here.
From a snapshot that was not handed over, or after its deadline, the engine does not answer;
the long way then hands over the next.
"""

from typing import Final

from msgspec import Struct

from foreblock._engine import FastPath, Store
from foreblock.ledger.reading.blocks import Snapshot
from foreblock.metrics.meters import RequestMeter
from foreblock.scheduling.thresholds import THRESHOLDS

ANSWERED_TAGS: Final = ("latest", "pending")
# In the order of their rows in the engine.
METHODS: Final = (
    "eth_getBalance",
    "eth_getBlockByNumber",
    "eth_call",
    "eth_getTransactionReceipt",
    "eth_getLogs",
    "eth_simulateV1",
)


class FastPathBounds(Struct, frozen=True):
    """Limits of the fast path; larger requests take the long way."""

    batch_items: int
    batch_bytes: int
    call_gas: int  # of every call
    call_us: int
    step_us: int  # longer steps that cannot be interrupted are not begun
    simulated_calls: int  # and blocks
    simulated_output: int  # bytes that all calls of a simulation return
    simulation_us: int


def make_fast_path(
    store: Store, bounds: FastPathBounds, meter: RequestMeter | None = None
) -> FastPath:
    """A fast path on a store, without a snapshot yet; `meter` counts its responses."""
    meter = meter or RequestMeter.private()
    return FastPath(
        store,
        batch_items=min(bounds.batch_items, THRESHOLDS.fast_batch_items),
        batch_bytes=bounds.batch_bytes,
        batch_us=THRESHOLDS.fast_batch_us,
        call_gas=bounds.call_gas,
        call_us=bounds.call_us,
        step_us=bounds.step_us,
        simulated_calls=bounds.simulated_calls,
        simulated_output=bounds.simulated_output,
        simulation_us=bounds.simulation_us,
        meter=meter.native,
        rows=[meter.row(method) for method in METHODS],
    )


def set_snapshot(
    fast_path: FastPath, snapshot: Snapshot, now_ns: int, *, calls: bool = True
) -> None:
    """Hand over the last snapshot, valid until the next commit; `calls` may be run in it."""
    pending = snapshot.pending
    if pending is None:
        latest = snapshot.latest
        fast_path.set_snapshot(
            snapshot.heads,
            snapshot.header_line,
            latest.number,
            latest_read_at=latest.read_at,
            calls=calls,
        )
        return
    fast_path.set_snapshot(
        snapshot.heads,
        snapshot.header_line,
        snapshot.latest.number,
        pending.partial,
        max(0, snapshot.deadline_ns - now_ns),
        snapshot.latest.read_at,
        calls,
    )


def forget_snapshot(fast_path: FastPath, snapshot: Snapshot) -> None:
    """Disable the fast path until the next snapshot is passed."""
    fast_path.set_snapshot(snapshot.heads, b"", snapshot.latest.number, remaining_ns=0)
