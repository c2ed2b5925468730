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
from foreblock.ledger.storage.open_store import FetchedState
from foreblock.service.service_metrics import WorkerMetrics
from foreblock.settings import FollowSettings, ForkPoint
from foreblock.settings.networks import Network
from foreblock.types import decode_header

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


class Hinting(NamedTuple):
    """The block and the round in which upstreams are asked for the keys of a call."""

    block: bytes = b'"latest"'
    round: int = 2  # of a request


def follower_parts(
    ledger: Ledger | AbsentLedger,
    network: Network,
    link: BusClient | None,
    metrics: WorkerMetrics,
    learned: FetchedState | None = None,
) -> FollowerParts:
    """The parts of a network that use its upstreams, by its settings.

    `learned` are the values of a writer in this process.
    """
    follow = _reading(network)
    if follow is None or follow.cold == "refuse":
        return FollowerParts()
    if link is None or isinstance(ledger, AbsentLedger):
        return FollowerParts()
    from foreblock.follow.passthrough import Passthrough  # noqa: PLC0415
    from foreblock.follow.pre_anchor import VerifiedHistory  # noqa: PLC0415, others need none

    ask = partial(link.ask_upstream, network.name, seconds=follow.fetch_timeout)
    state = _fetched_state(ledger, network, follow, link, metrics, ask, learned)
    passes = follow.beyond == "pass"
    beyond = None
    if follow.beyond != "refuse":
        only_below = network.begins_on_another
        beyond = VerifiedHistory(ledger, state, ask, believes=passes, only_below=only_below)
    pass_on = partial(link.pass_on, network.name, seconds=follow.fetch_timeout)
    if network.begins_on_another:
        from foreblock.fork.history import ForkedHistory  # noqa: PLC0415

        return FollowerParts(state, beyond, ForkedHistory(pass_on))
    return FollowerParts(state, beyond, Passthrough(pass_on) if passes else None)


def _reading(network: Network) -> FollowSettings | None:
    """The settings for reading missing state; None if the network has all state."""
    if network.fork is None:
        return network.follow
    from foreblock.fork.history import reading_settings  # noqa: PLC0415

    assert network.dev is not None, "a fork is a dev chain"
    return reading_settings(network.dev.forking)


def _fetched_state(
    ledger: Ledger,
    network: Network,
    follow: FollowSettings,
    link: BusClient,
    metrics: WorkerMetrics,
    ask: Ask,
    learned: FetchedState | None,
) -> "WorkerState":
    """The state that is fetched for clients."""
    from foreblock.follow.prediction import (  # noqa: PLC0415
        PredictedCalls,
        call_hints,
        predicted_keys,
    )
    from foreblock.follow.worker_state import WorkerState  # noqa: PLC0415
    from foreblock.metrics.meters import StateMetrics  # noqa: PLC0415, others need none

    hinting = Hinting() if network.fork is None else _hinting_of(network.fork)
    wants = partial(link.get_state, network.name)
    state_metrics = StateMetrics(metrics.counters, network.name)
    return WorkerState(
        ledger,
        follow,
        wants,
        state_metrics,
        hint=partial(call_hints, ask, block=hinting.block),
        ask_upstream=ask,
        predict=partial(predicted_keys, PredictedCalls(ledger)),
        shared=learned,
        hinted_round=hinting.round,
    )


def _hinting_of(point: ForkPoint) -> Hinting:
    from foreblock.fork.history import HINTED_ROUND, block_of  # noqa: PLC0415, others need none

    return Hinting(block_of(decode_header(point.header)), HINTED_ROUND)
