"""The status of a network that follows a public chain, in lines that people read. No I/O."""

from collections.abc import Sequence
from typing import Protocol

from foreblock.follow.audit import StateAudit
from foreblock.follow.state_fetcher import ExecutedBlocks, StateFetcher
from foreblock.primitives import format_data, harmless
from foreblock.secret_urls import redact_urls
from foreblock.upstream.endpoint import UpstreamState


class Anchored(Protocol):
    """A source that counts its anchors."""

    anchorings: int
    last_anchoring: str

    @property
    def trust(self) -> str:
        """How what is learned is believed."""


def follow_facts(
    anchored: Anchored,
    executed: ExecutedBlocks,
    learner: StateFetcher,
    upstreams: Sequence[UpstreamState],
    audit: StateAudit | None = None,
) -> list[str]:
    """The lines: where it begins, what is believed, what was learned, and from whom."""
    anchor = executed.anchor
    lines = [
        f"base: block {anchor.number} {format_data(anchor.hash)}, epoch {executed.epoch}",
        f"trust: {anchored.trust}",
    ]
    if anchored.anchorings:
        why = harmless(anchored.last_anchoring)
        lines.append(f"anchored anew: {anchored.anchorings} times; last: {why}")
    counted = [f"{name} {count}" for name, count in sorted(learner.counters.items())]
    error = f"; last: {harmless(learner.last_error)}" if learner.last_error else ""
    lines.append(f"state: {', '.join(counted) or 'nothing wanted yet'}{error}")
    if audit is not None:
        lines.append(_audit(audit))
    lines += map(_upstream, upstreams)
    return list(map(redact_urls, lines))


def _audit(audit: StateAudit) -> str:
    facts = [f"{name} {count}" for name, count in sorted(audit.counters.items())]
    facts.append(f"{audit.waiting} wait for proofs")
    if audit.waiting:
        facts.append(f"the oldest for {audit.oldest:.1f} s")
    if not audit.accepts_unproven:
        facts.append("nothing more is believed for now")
    last = f"; last: {harmless(audit.last_untrue)}" if audit.last_untrue else ""
    return f"audit: {', '.join(facts)}{last}"


def _upstream(upstream: UpstreamState) -> str:
    facts = [
        upstream.client or "not reached yet",
        "proves state" if upstream.can_prove else "does not prove state",
        f"{upstream.requests} requests",
        f"{upstream.units} units",
    ]
    if upstream.latency is not None:
        facts.append(f"{upstream.latency * 1e3:.0f} ms")
    if upstream.rests_for:
        facts.append(f"rests for {upstream.rests_for:.1f} s")
    if upstream.paused_for:
        facts.append(f"paused for {upstream.paused_for:.1f} s")
    if upstream.short:
        facts.append(upstream.short)
    refused = [f"{name} {count}" for name, count in sorted(upstream.refusals.items())]
    told = f"; refused: {', '.join(refused)}" if refused else ""
    return f"upstream: {upstream.url}: {', '.join(facts)}{told}"
