"""What a worker needs to serve a network whose state is known in part: made from its settings.

State and trie nodes that are missing are fetched (`fetched_state`, `fetched_ways`), and what lies
before the anchor is asked for (`beyond`) or passed on (`passing`). Other networks have none of it,
and import none of it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from foreblock.bus.link import WriterLink
from foreblock.ledger.reading.availability import AbsentLedger
from foreblock.ledger.reading.view import Ledger
from foreblock.service.worker_metrics import WorkerMetrics
from foreblock.settings.networks import Network

if TYPE_CHECKING:
    from foreblock.service.beyond import BeyondAnchor
    from foreblock.service.fetched_state import FetchedState
    from foreblock.service.passing import PassedOn

Ask = Callable[[str, bytes], Awaitable[bytes]]


class FromUpstreams(NamedTuple):
    """What comes from upstreams; nothing where the store is all there is."""

    state: "FetchedState | None" = None
    beyond: "BeyondAnchor | None" = None
    passed: "PassedOn | None" = None


def from_upstreams(
    ledger: Ledger | AbsentLedger,
    network: Network,
    link: WriterLink | None,
    metrics: WorkerMetrics,
) -> FromUpstreams:
    """What a network has from its upstreams, where its settings want it."""
    follow = network.follow
    if follow is None or follow.cold == "refuse":
        return FromUpstreams()
    if link is None or isinstance(ledger, AbsentLedger):
        return FromUpstreams()
    from foreblock.service.beyond import BeyondAnchor  # noqa: PLC0415, others need none
    from foreblock.service.passing import PassedOn  # noqa: PLC0415

    ask = partial(link.ask_upstream, network.name, seconds=follow.fetch_timeout)
    state = _fetched_state(ledger, network, link, metrics, ask)
    passes = follow.beyond == "pass"
    beyond = None
    if follow.beyond != "refuse":
        beyond = BeyondAnchor(ledger, state, ask, believes=passes)
    pass_on = partial(link.pass_on, network.name, seconds=follow.fetch_timeout)
    return FromUpstreams(state, beyond, PassedOn(pass_on) if passes else None)


def _fetched_state(
    ledger: Ledger, network: Network, link: WriterLink, metrics: WorkerMetrics, ask: Ask
) -> "FetchedState":
    """The state that is fetched for clients."""
    from foreblock.ledger.calls.predicted_calls import PredictedCalls  # noqa: PLC0415
    from foreblock.ledger.storage.template_rows import read_templates  # noqa: PLC0415
    from foreblock.metrics.state_metrics import StateMetrics  # noqa: PLC0415, others need none
    from foreblock.service.call_hints import call_hints  # noqa: PLC0415
    from foreblock.service.fetched_state import FetchedState  # noqa: PLC0415
    from foreblock.service.predicted_keys import predicted_keys  # noqa: PLC0415

    assert network.follow is not None, "it has upstreams"
    wants = partial(link.ask_state, network.name)
    state_metrics = StateMetrics(metrics.sheet, network.name)
    return FetchedState(
        ledger,
        network.follow,
        wants,
        state_metrics,
        hint=partial(call_hints, ask),
        ask_upstream=ask,
        predict=partial(predicted_keys, PredictedCalls(ledger, read_templates)),
    )
