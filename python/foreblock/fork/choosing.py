"""Choose the block to fork at: its chain, its header, and whether its state is proven.

The state that every local block needs is fetched unless the cache has it, so a block whose state is
pruned or cannot be proven is reported before anything starts.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import structs

from foreblock.clock import SystemClock
from foreblock.errors import BadSetting, EndpointError, NoSuchBlock, NoUpstream, RefusedAnswer
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.learned_state import KnownValues, pack_known, pack_values
from foreblock.follow.requests import BlockAt
from foreblock.fork.cache import ForkFile
from foreblock.fork.chain_rules import config_of_fork
from foreblock.fork.fork_upstream import ForkUpstream, named_chain, open_upstreams
from foreblock.fork.upstream_thread import UpstreamThread
from foreblock.fork.wanted_keys import named_in, needed_at_start
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.open_store import profile_in
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import format_data, parse_hash
from foreblock.settings import ChainSettings, ForkPoint, ForkSettings, ReplayedBlock
from foreblock.types import Header, decode_header, decode_transactions, keccak256
from foreblock.upstream.block_fetcher import BlockFetcher
from foreblock.upstream.budget import Purpose

TAGS: Final = ("latest", "safe", "finalized")
OTHERS_SECONDS: Final = 5.0  # for endpoints after the first that has responded
_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_BELOW: Final = re.compile(r"-[0-9]{1,19}")


def choose_fork(chain: ChainSettings, *, keeps_id: bool = False) -> ForkPoint:
    """The block of the settings; with `keeps_id`, the local chain has the id of the settings.

    Raises `BadSetting`, `EndpointError`.
    """
    thread = UpstreamThread()
    try:
        return thread.run(_choose(chain, keeps_id=keeps_id))
    finally:
        thread.close()


async def _choose(chain: ChainSettings, *, keeps_id: bool) -> ForkPoint:
    settings = chain.forking
    upstreams = open_upstreams(settings, None)
    try:
        try:
            async with asyncio.timeout(settings.timeout):
                chain_id = await _chain_id(settings, upstreams)
                replayed = await _replayed(settings, upstreams)
                header = await _header(settings.block_number, replayed, upstreams)
        except TimeoutError:
            shown = ", ".join(each.shown for each in upstreams)
            raise NoUpstream(f"{shown}: nothing in {settings.timeout:g} s", 1) from None
        config = config_of_fork(chain, chain_id, chain.chain_id if keeps_id else chain_id, header)
        wanted = needed_at_start(chain, config, header)
        if replayed is not None:
            wanted = wanted.also(named_in(replayed))
        values, proven = await _values(settings, chain_id, header, upstreams, wanted)
        attributes = await _attributes(config, header, replayed, upstreams)
        abilities = [each.capabilities for each in upstreams]
    finally:
        for each in upstreams:
            each.close()
    point = ForkPoint(
        chain_id=chain_id,
        header=header.encode(),
        config=config,
        proven=proven,
        attributes=attributes,
        values=values,
        replayed=replayed,
        abilities=tuple(b"" if each is None else msgspec.json.encode(each) for each in abilities),
    )
    file = ForkFile.of(settings, chain_id, header, proven=proven)
    if file.point() is None:
        file.put_point(structs.replace(point, replayed=None))
    return point


def chain_id_of(settings: ForkSettings) -> int:
    """The id of the chain of the endpoints. Raises `BadSetting`, `EndpointError`."""
    thread = UpstreamThread()
    try:
        return thread.run(_asked_id(settings))
    finally:
        thread.close()


async def _asked_id(settings: ForkSettings) -> int:
    upstreams = open_upstreams(settings, None)
    try:
        async with asyncio.timeout(settings.timeout):
            return await _chain_id(settings, upstreams)
    except TimeoutError:
        shown = ", ".join(each.shown for each in upstreams)
        raise NoUpstream(f"{shown}: nothing in {settings.timeout:g} s", 1) from None
    finally:
        for each in upstreams:
            each.close()


async def _chain_id(settings: ForkSettings, upstreams: Sequence[ForkUpstream]) -> int:
    """The chain id of the endpoints that respond; they must agree."""
    asked = [asyncio.ensure_future(each.chain_id()) for each in upstreams]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait(asked, timeout=OTHERS_SECONDS)
    ids, reasons = {}, []
    for upstream, answer in zip(upstreams, asked, strict=True):
        if not answer.done():
            answer.cancel()
            reasons.append(f"{upstream.shown}: nothing in {OTHERS_SECONDS:g} s")
        elif isinstance(refused := answer.exception(), RefusedAnswer):
            reasons.append(f"{upstream.shown}: {refused}")
        elif refused is not None:
            raise refused
        else:
            ids[upstream.shown] = answer.result()
    if not ids:
        raise NoUpstream("; ".join(reasons), 1)
    if len(set(ids.values())) > 1:
        shown = ", ".join(f"{url} has {chain_id}" for url, chain_id in ids.items())
        raise BadSetting("fork_url", f"the endpoints are of different chains: {shown}")
    url, chain_id = next(iter(ids.items()))
    if settings.chain_id not in {0, chain_id}:
        why = f"{url} has the chain id {chain_id}, not {settings.chain_id}"
        raise BadSetting("fork_chain_id", why)
    for facts in filter(None, map(named_chain, settings.url)):
        if facts.chain_id != chain_id:
            why = f"{facts.name} has the chain id {facts.chain_id}, but {url} has {chain_id}"
            raise BadSetting("fork_url", why)
    return chain_id


async def _replayed(
    settings: ForkSettings, upstreams: Sequence[ForkUpstream]
) -> ReplayedBlock | None:
    """The block of the transaction of the settings, up to it; None if they name none."""
    name = settings.transaction_hash
    if not name:
        return None
    if settings.block_number != "latest":
        raise BadSetting("fork_transaction_hash", "it names a block, and so does fork_block_number")
    if not _HASH.fullmatch(name):
        raise BadSetting("fork_transaction_hash", f"expected a hash, found {name!r}")
    wanted, blocks = parse_hash(name), BlockFetcher(upstreams, Purpose.FLASHBLOCK)
    try:
        block = await blocks.block_of(wanted)
    except NoSuchBlock:
        why = f"{blocks.shown} has no block with transaction {name}"
        raise BadSetting("fork_transaction_hash", why) from None
    hashes = [keccak256(each) for each in block.transactions]
    return ReplayedBlock(block.header.encode(), block.transactions[: hashes.index(wanted) + 1])


async def _header(
    name: str, replayed: ReplayedBlock | None, upstreams: Sequence[ForkUpstream]
) -> Header:
    """The header of the block to fork at: the parent of a replayed one."""
    blocks = BlockFetcher(upstreams, Purpose.FLASHBLOCK)
    if replayed is not None:
        return await blocks.header(format_data(decode_header(replayed.header).parent_hash))
    if name not in TAGS and not any(form.fullmatch(name) for form in (_HASH, _NUMBER, _BELOW)):
        why = f"expected {', '.join(TAGS)}, a number or a hash, found {name!r}"
        raise BadSetting("fork_block_number", why)
    if _BELOW.fullmatch(name):
        latest = await blocks.header("latest")
        name = str(max(latest.number + int(name), 0))
    shown = name
    if _NUMBER.fullmatch(name):
        number = int(name, 16 if name.startswith("0x") else 10)
        name, shown = hex(number), str(number)
    try:
        return await blocks.header(name)
    except NoSuchBlock:
        latest = await blocks.header("latest")
        why = f"{blocks.shown} has no block {shown}; its latest is {latest.number}"
        raise BadSetting("fork_block_number", why) from None


async def _attributes(
    config: bytes,
    header: Header,
    replayed: ReplayedBlock | None,
    upstreams: Sequence[ForkUpstream],
) -> bytes:
    """The attributes of L1 at the last block of an OP chain; empty if it has none."""
    rules = profile_in(config).rules(header.number, header.timestamp, merged=True)
    if rules.optimism is None:
        return b""
    if replayed is None:
        block = await BlockFetcher(upstreams, Purpose.FLASHBLOCK).block(header.hash)
        raws = block.transactions[:1]
    else:
        raws = replayed.transactions[:1]
    found = decode_transactions(raws) if raws and raws[0][0] == DEPOSIT else []
    return found[0].input if found and found[0].to == L1_BLOCK else b""


async def _values(
    settings: ForkSettings,
    chain_id: int,
    header: Header,
    upstreams: Sequence[ForkUpstream],
    wanted: StateKeys,
) -> tuple[bytes, bool]:
    """These keys at the block, of the cache or fetched, and whether they are proven."""
    why: EndpointError | None = None
    for proven in (True, False):
        if settings.proofs == ("off" if proven else "on"):
            continue
        file = ForkFile.of(settings, chain_id, header, proven=proven)
        known = KnownValues({}, {}, [])
        for each in file.values():
            known = known.also(each)
        if known.has(wanted):
            return pack_known(known.part(wanted)), proven
        try:
            found = await _fetch(settings, header, upstreams, wanted, proven=proven)
        except EndpointError as refused:
            why = refused
        else:
            file.put_values(found, {})
            return pack_values(found, {}), proven
    assert why is not None, "one of both was tried"
    if settings.proofs == "on":
        raise BadSetting("fork_proofs", f"no endpoint proves the state of the block: {why}")
    raise why


async def _fetch(
    settings: ForkSettings,
    header: Header,
    upstreams: Sequence[ForkUpstream],
    wanted: StateKeys,
    *,
    proven: bool,
) -> FetchResult:
    """These keys at the block. Raises `EndpointError` if some are not found."""
    fetcher = Fetcher(upstreams, SystemClock(), FetchOptions(proven=proven, first_slots=False))
    at_block = (BlockAt(header.number, header.hash),)
    shown = f"{upstreams[0].shown}: the state of block {header.number} ({format_data(header.hash)})"
    try:
        found = await fetcher.fetch(wanted, at_block, Purpose.FLASHBLOCK, settings.timeout)
    except NoUpstream as why:
        raise NoUpstream(f"{shown}: {why.why}", why.retry_after) from None
    if found.missing(wanted):
        raise NoUpstream(f"{shown}: a part of it is missing", 1)
    if proven:
        for proof in (each for some in found.proofs.values() for each in some):
            proof.prove(header.state_root)
    return found
