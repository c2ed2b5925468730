"""The jobs that a follower knew, read back from the rows of their partials.

Executed and stored messages are there, with their hashes and what they would seal as, where
that was computed. Messages that waited in memory are lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from foreblock._engine import View
from foreblock.ledger.building.block_base import base_of, diff_of
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.classification import FlashblockRef, Standing
from foreblock.ledger.following.jobs import Job, Step
from foreblock.ledger.reading.partials import pending_partial
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import made_of, read_row
from foreblock.ledger.storage.dev_rows import read_cheats
from foreblock.ledger.storage.partial_rows import PartialRow, decode_partial_row, decode_seals_as
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Flashblock

_ALL: Final = 1 << 20  # more rows than a height can have
_STORE: Final = "store"  # as the feed that recovered messages came from


@dataclass(frozen=True, slots=True)
class _Stored:
    partial: int
    row: PartialRow
    is_served: bool


def read_jobs(view: View, depth: int) -> list[Job]:
    """The jobs of the heights that may still change, those of lower heights first."""
    assert view.heads.latest is not None, "a store is begun with its genesis"
    latest, _ = view.heads.latest
    served = _served(view, latest)
    jobs = []
    for block in range(max(latest - depth, 0) + 1, latest + depth + 1):
        ends: dict[bytes, _Stored] = {}
        for each in _partials(view, block, served):
            best = ends.get(each.row.payload_id)
            if best is None or _rank(each) > _rank(best):
                ends[each.row.payload_id] = each
        jobs += [_job(view, block, latest, end) for end in ends.values()]
    return [job for job in jobs if not _has_gaps(job)]


def _has_gaps(job: Job) -> bool:
    """Whether it has quiet indices, as only a sequencer of our own leaves them."""
    return any(step.received.message.index != place for place, step in enumerate(job.steps))


def _served(view: View, latest: int) -> set[int]:
    """The last partials of the blocks that are sealed or lead to the pending one."""
    sealed = (made_of(view, block) for block in range(latest, -1, -1)[:64])
    served = {partials[-1] for partials in sealed if partials}
    number = pending_partial(view)
    while number is not None:
        served.add(number)
        partial = view.partial(number)
        number = None if partial is None or partial.block <= latest else partial.stacked_on
    return served


def _partials(view: View, block: int, served: set[int]) -> Iterator[_Stored]:
    for key, value in view.rows(partial_rows.block_prefix(block), _ALL):
        partial, kind = partial_rows.partial_of_key(key)
        if kind == b"h":
            yield _Stored(partial, decode_partial_row(value), partial in served)


def _rank(stored: _Stored) -> tuple[bool, int, int]:
    """Which partial of a job speaks for it: the served one, else the last and newest."""
    return stored.is_served, stored.row.index, stored.partial


def _job(view: View, block: int, latest: int, end: _Stored) -> Job:
    standing = Standing.DROPPED
    if end.is_served:
        standing = Standing.CLOSED if block <= latest else Standing.OPEN
    job = Job(block, end.row.payload_id, standing, end.row.header.parent_hash, _STORE)
    for partial in (*end.row.before, end.partial):
        step = _step(view, block, partial)
        if block <= latest and not end.is_served:
            step.partial = None  # what stands beside a sealed block is stored anew
        job.steps.append(step)
    below = view.partial(end.partial)
    if block > latest + 1 and below is not None and below.stacked_on is not None:
        row = view.row(partial_rows.partial_key(block - 1, below.stacked_on))
        if row is not None:
            parent = decode_partial_row(row)
            job.stacked_on = FlashblockRef(parent.payload_id, parent.index)
    return job


def _step(view: View, block: int, partial: int) -> Step:
    key = partial_rows.partial_key(block, partial)
    row = decode_partial_row(read_row(view, key, block))
    raws = decode_items(read_row(view, partial_rows.transactions_key(block, partial), block))
    header = row.header
    message = Flashblock(
        payload_id=row.payload_id,
        index=row.index,
        base=base_of(header) if row.index == 0 else None,
        diff=diff_of(header, raws),
        block_number=block,
        previous=None,
        cheats=read_cheats(view, block, (partial,)),
    )
    sealed = view.row(partial_rows.seals_as_key(block, partial))
    root = None if sealed is None else decode_seals_as(sealed)[0]
    return Step(
        Received(_STORE, sum(map(len, raws)), message),
        header,
        partial,
        None if root is None else header.replace(state_root=root),
    )
