"""Give a worker of a followed network what it needs, by the settings of the network.

Missing state is fetched (`worker_state`, `trie_node_fetch`). Requests about blocks before the
anchor are answered with verified history (`pre_anchor`) or passed through (`passthrough`). Other
networks import none of these modules.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from foreblock.bus.bus_client import BusClient
from foreblock.ledger.reading.availability import AbsentLedger
from foreblock.ledger.reading.view import Ledger
from foreblock.service.service_metrics import WorkerMetrics
from foreblock.settings.networks import Network

if TYPE_CHECKING:
    from foreblock.follow.passthrough import Passthrough
    from foreblock.follow.pre_anchor import VerifiedHistory
    from foreblock.follow.worker_state import WorkerState

Ask = Callable[[str, bytes], Awaitable[bytes]]


class FollowerParts(NamedTuple):
    """The parts that use upstreams; empty for networks without them."""

    state: "WorkerState | None" = None
    beyond: "VerifiedHistory | None" = None
    passed: "Passthrough | None" = None


def follower_parts(
    ledger: Ledger | AbsentLedger,
    network: Network,
    link: BusClient | None,
    metrics: WorkerMetrics,
) -> FollowerParts:
    """The parts of a network that use its upstreams, by its settings."""
    follow = network.follow
    if follow is None or follow.cold == "refuse":
        return FollowerParts()
    if link is None or isinstance(ledger, AbsentLedger):
        return FollowerParts()
    from foreblock.follow.passthrough import Passthrough  # noqa: PLC0415
    from foreblock.follow.pre_anchor import VerifiedHistory  # noqa: PLC0415, others need none

    ask = partial(link.ask_upstream, network.name, seconds=follow.fetch_timeout)
    state = _fetched_state(ledger, network, link, metrics, ask)
    passes = follow.beyond == "pass"
    beyond = None
    if follow.beyond != "refuse":
        beyond = VerifiedHistory(ledger, state, ask, believes=passes)
    pass_on = partial(link.pass_on, network.name, seconds=follow.fetch_timeout)
    return FollowerParts(state, beyond, Passthrough(pass_on) if passes else None)


def _fetched_state(
    ledger: Ledger, network: Network, link: BusClient, metrics: WorkerMetrics, ask: Ask
) -> "WorkerState":
    """The state that is fetched for clients."""
    from foreblock.follow.prediction import (  # noqa: PLC0415
        PredictedCalls,
        call_hints,
        predicted_keys,
    )
    from foreblock.follow.worker_state import WorkerState  # noqa: PLC0415
    from foreblock.metrics.meters import StateMetrics  # noqa: PLC0415, others need none

    assert network.follow is not None, "it has upstreams"
    wants = partial(link.get_state, network.name)
    state_metrics = StateMetrics(metrics.counters, network.name)
    return WorkerState(
        ledger,
        network.follow,
        wants,
        state_metrics,
        hint=partial(call_hints, ask),
        ask_upstream=ask,
        predict=partial(predicted_keys, PredictedCalls(ledger)),
    )
