"""Open a network that follows a public chain: its upstreams, its trust, its anchor.

A store that has an anchor continues at once: upstreams are probed meanwhile, and known state is
served whether or not they respond. An empty store needs a block to begin at; its hash is computed
here from the header that an upstream sends.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from foreblock.bus.messages import ToWorker
from foreblock.chains.chain_file import followed_chain
from foreblock.clock import Clock
from foreblock.errors import (
    BadSetting,
    DisputedBlock,
    EndpointError,
    NoSuchBlock,
    NoUpstream,
    RefusedAnswer,
)
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.follow.audit import StateAudit
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.network import FollowNetwork
from foreblock.follow.sealed_blocks import anchor_at
from foreblock.follow.source import is_begun
from foreblock.follow.state_fetcher import StateFetcher
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.storage.follow_rows import Trust
from foreblock.ledger.storage.open_store import Anchor
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.metrics.meters import NetworkMetrics
from foreblock.settings import FollowSettings
from foreblock.settings.networks import Network
from foreblock.types import Flashblock
from foreblock.upstream.block_fetcher import BlockFetcher
from foreblock.upstream.budget import Purpose, UnitBudget, default_units, split_units

log = structlog.get_logger()

# The wait of a store with an anchor for its upstreams, if they decide the trust level.
BEGUN_SECONDS: Final = 0.5
AGREE_TRIES, AGREE_PAUSE = 3, 0.5  # reads of an anchor that upstreams disagree on; seconds
TAGS: Final = ("latest", "safe", "finalized")
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")


async def open_follow_network(
    network: Network,
    clock: Clock,
    publish: Callable[[Flashblock], None],
    broadcast: Callable[[ToWorker], None],
    client_options: FeedClientOptions,
    seen: SeenCommit | None,
    metrics: NetworkMetrics | None,
) -> FollowNetwork:
    """The network, with its store open. Raises `ForeblockError`."""
    follow = network.follow
    assert follow is not None, "a follower has settings of following"
    chain = followed_chain(follow.chain)
    upstreams = open_upstreams(follow, chain.profile.chain_id, clock, metrics)
    try:
        begun = await asyncio.to_thread(is_begun, network, follow.trust)
        reasons: list[str] = []
        if not begun or follow.trust_fallback:
            reasons = await _probe(upstreams, BEGUN_SECONDS if begun else None)
        trust = trust_of(follow, upstreams)
        blocks = BlockFetcher(upstreams, Purpose.FLASHBLOCK)
        anchor = None
        if not begun and not await asyncio.to_thread(is_begun, network, trust):
            anchor = await choose_anchor(blocks, follow.anchor, reasons)
    except BaseException:
        for upstream in upstreams:
            upstream.close()
        raise
    proven = trust == "proven"
    fetcher = Fetcher(upstreams, clock, FetchOptions(proven=proven))
    audit = None
    if trust == "audited":
        audit = StateAudit(Fetcher(upstreams, clock), clock, follow.audit_seconds)
    learner = StateFetcher(fetcher, proven=proven, behind=follow.fetch_behind, audit=audit)
    following = FollowNetwork(
        network,
        chain,
        fetcher,
        blocks,
        learner,
        anchor,
        clock,
        publish,
        broadcast,
        client_options,
        seen,
        metrics,
        audit,
    )
    try:
        await following.open()
    except BaseException:
        fetcher.close()
        raise
    following.probe_soon()
    return following


def open_upstreams(
    follow: FollowSettings, chain_id: int, clock: Clock, metrics: NetworkMetrics | None = None
) -> list[StateUpstream]:
    """The upstreams of the settings, each with its budget. Raises `InvalidArgument`."""
    opened = []
    for url in follow.upstream:
        bare, units = split_units(url)
        units = units or follow.upstream_units or default_units(bare)
        budget = UnitBudget(units, follow.upstream_reserve)
        is_only = len(follow.upstream) == 1
        opened.append(StateUpstream(url, clock, budget, chain_id, is_only=is_only))
    if metrics is not None:
        for number, upstream in enumerate(opened):
            upstream.durations.observe = metrics.upstream_latency(number).observe
    return opened


async def _probe(upstreams: Sequence[StateUpstream], seconds: float | None) -> list[str]:
    """Probe all upstreams; return why some did not respond within these seconds.

    Those that have not responded by then are probed again before their first use.
    """
    probes = [asyncio.ensure_future(each.probe()) for each in upstreams]
    try:
        await asyncio.wait(probes, timeout=seconds)
    finally:
        for probe in probes:
            probe.cancel()
    said = await asyncio.gather(*probes, return_exceptions=True)
    reasons = []
    for upstream, each in zip(upstreams, said, strict=True):
        if isinstance(each, RefusedAnswer):
            reasons.append(f"{upstream.shown}: {each}")
        elif isinstance(each, asyncio.CancelledError):
            reasons.append(f"{upstream.shown}: no response yet")
        elif isinstance(each, BaseException):
            raise each
    return reasons


def trust_of(follow: FollowSettings, upstreams: Sequence[StateUpstream]) -> Trust:
    """Return the trust. Raises `BadSetting` if proofs are required and no upstream has them."""
    known = [each.capabilities for each in upstreams if each.capabilities is not None]
    if follow.trust == "trusted" or not known or any(each.can_prove for each in known):
        return follow.trust
    if not follow.trust_fallback:
        why = "no upstream proves state (eth_getProof); choose trusted, or set trust_fallback"
        raise BadSetting("trust", why)
    log.warning("state_not_proven", why="no upstream serves eth_getProof")
    return "trusted"


async def choose_anchor(blocks: BlockFetcher, name: str, reasons: Sequence[str] = ()) -> Anchor:
    """The block to begin at, whole if it can be had. Raises `BadSetting` or `NoUpstream`."""
    if name not in TAGS and not _HASH.fullmatch(name) and not _NUMBER.fullmatch(name):
        raise BadSetting("anchor", f"expected latest, safe, finalized or a hash, found {name!r}")
    if _NUMBER.fullmatch(name):
        name = hex(int(name, 0))
    for tries_left in reversed(range(AGREE_TRIES)):
        try:
            return await anchor_at(blocks, await blocks.agreed_header(name))
        except DisputedBlock as disputed:
            log.warning("anchor_disputed", why=str(disputed))
            if _HASH.fullmatch(name):  # the operator has named the block
                return await anchor_at(blocks, await blocks.header(name))
            if not tries_left:
                raise
        except NoSuchBlock:
            raise BadSetting("anchor", f"no upstream has block {name}") from None
        except EndpointError as why:
            raise NoUpstream("; ".join(reasons) or str(why), 1) from None
        await asyncio.sleep(AGREE_PAUSE)
    raise AssertionError("the last try returns or raises")
