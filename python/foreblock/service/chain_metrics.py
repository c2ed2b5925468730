"""What a store says of its chain at this moment, as series.

Any worker can tell, so it is read by the one that is asked, and counted nowhere.
"""

import os
from collections.abc import Iterator

from foreblock.clock import SECOND_NS, SystemClock
from foreblock.errors import StoreError
from foreblock.ledger.reading.availability import AbsentLedger, is_ready
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.metrics import catalogue
from foreblock.metrics.catalogue import Metric, Series
from foreblock.settings.networks import Network


def chain_series(network: Network, ledger: Ledger | AbsentLedger) -> Iterator[Series]:
    """The series of one network."""
    for metric, value in _values(network, ledger):
        yield metric, (network.name,), [float(value)]
    for work, blocks in _behind(ledger):
        yield catalogue.MAINTENANCE_BLOCKS, (network.name, work), [float(blocks)]


def _values(network: Network, ledger: Ledger | AbsentLedger) -> Iterator[tuple[Metric, float]]:
    yield from _disk(network)
    try:
        view = ledger.view()
    except StoreError:
        yield catalogue.STORE_AVAILABLE, 0
        yield catalogue.READY, 0
        return
    try:
        yield catalogue.STORE_AVAILABLE, 1
        yield from _chain(view, moves=network.source != "store")
        assert isinstance(ledger, Ledger), "it has a view"
        yield from _store(ledger)
    finally:
        view.close()


def _chain(view: LedgerView, *, moves: bool) -> Iterator[tuple[Metric, float]]:
    now_ns = SystemClock().wall_ns()
    latest, pending, behind = view.latest, view.pending, view.behind
    yield catalogue.READY, is_ready(view, now_ns, moves=moves)
    yield catalogue.COMMIT_NUMBER, view.commit
    yield catalogue.LATEST_NUMBER, latest.number
    yield catalogue.LATEST_AGE, now_ns / SECOND_NS - latest.header.timestamp
    if pending is not None:
        yield catalogue.PENDING_NUMBER, pending.number
        yield catalogue.PENDING_INDEX, pending.index
        yield catalogue.PENDING_AGE, (now_ns - pending.received_at_ns) / SECOND_NS
        yield catalogue.PENDING_DISTANCE, pending.number - latest.number
    yield catalogue.EARLIEST_STATE, behind.earliest
    yield catalogue.MAINTENANCE_ITEMS, behind.to_clear


def _store(ledger: Ledger) -> Iterator[tuple[Metric, float]]:
    space = ledger.space
    yield catalogue.STORE_FILE_BYTES, space.file_bytes
    yield catalogue.STORE_FREE_BYTES, max(0, space.file_bytes - space.used_bytes)
    yield catalogue.STORE_READERS, space.reader_slots_used
    yield catalogue.STORE_READERS_MOST, space.reader_slots


def _disk(network: Network) -> Iterator[tuple[Metric, float]]:
    try:
        found = os.statvfs(network.data)
    except OSError:
        return
    yield catalogue.DISK_FREE_BYTES, found.f_bavail * found.f_frsize


def _behind(ledger: Ledger | AbsentLedger) -> Iterator[tuple[str, int]]:
    """Blocks behind the latest by the work that is due for them."""
    try:
        view = ledger.view()
    except StoreError:
        return
    try:
        behind = view.behind
    finally:
        view.close()
    yield "fold", behind.to_fold
    yield "log_index", behind.to_index
    if behind.addresses_to_index is not None:
        yield "address_index", behind.addresses_to_index
