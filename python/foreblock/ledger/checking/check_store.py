"""Check a store: everything that can be computed again is, and what differs is told.

One view is checked from the first row to the last, so a chain that is written meanwhile
changes nothing; the pages that it replaces are freed when the check is over. Headers, bodies
and indices are checked here, states, tries and codes by the engine, on a thread: so progress
can be shown, and an interruption stops it.
"""

from dataclasses import dataclass
from threading import Thread
from typing import Final

from foreblock._engine import Heads, Store, StoreCheck, View
from foreblock.errors import ForeblockError
from foreblock.ledger.checking.block_check import BlockCheck
from foreblock.ledger.checking.damage import Damage, Report, Tell
from foreblock.ledger.checking.index_check import check_indices
from foreblock.ledger.checking.partial_check import check_partials
from foreblock.ledger.storage.first_block import GENESIS, FirstBlock, read_first_block

_LOOK_SECONDS: Final = 0.1
_NO_ROOT: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class Checked:
    """What was checked."""

    heads: Heads
    blocks: int
    transactions: int
    damages: int


class _Counting:
    """Tells of damage and counts it."""

    def __init__(self, tell: Tell) -> None:
        self._tell: Final = tell
        self.count = 0

    def __call__(self, damage: Damage) -> None:
        self.count += 1
        self._tell(damage)


def check_store(path: str, tell: Tell, report: Report) -> Checked:
    """Check the last commit of a store.

    Raises `StoreMissing`, `UnknownStoreFormat`, and `StoreDamaged` for a store that cannot
    even be opened.
    """
    with Store(path) as store, store.view() as view:
        return check_view(view, tell, report)


def check_view(view: View, found: Tell, report: Report) -> Checked:
    """Check what one view has."""
    tell, latest = _Counting(found), view.heads.latest
    blocks = BlockCheck(view, tell)
    roots: list[bytes] = []
    first = _first(view)
    stop = _sealed_end(view, first.number)
    for number in range(first.number, stop):
        roots.append(blocks.check(number, has_body=number >= first.whole) or _NO_ROOT)
        report("blocks", number + 1 - first.number, stop - first.number)
    if latest is not None:
        check_indices(view, first.whole, stop, tell, report)
    _run_parts(StoreCheck(view, first.number, b"".join(roots)), tell, report)
    if latest is not None:
        check_partials(view, tell, report)
    return Checked(view.heads, len(roots), blocks.transactions, tell.count)


def _first(view: View) -> FirstBlock:
    try:
        return read_first_block(view)
    except ForeblockError:
        return GENESIS  # its blocks are then told of as missing


def _sealed_end(view: View, first: int) -> int:
    """The block after the last sealed one; where the latest is not sealed, after the first gap."""
    latest = view.heads.latest
    if latest is None:
        return first
    if view.sealed(latest[0]) is not None:
        return latest[0] + 1
    numbers = range(first, latest[0] + 1)
    return next(number for number in numbers if view.sealed(number) is None)


def _run_parts(check: StoreCheck, tell: Tell, report: Report) -> None:
    """Run the engine's parts on a thread, and report while they run."""
    failures: list[BaseException] = []

    def run(part: str) -> None:
        try:
            check.run(part)
        except ForeblockError as failure:
            failures.append(failure)

    for part in check.PARTS:
        running = Thread(target=run, args=(part,), daemon=True)
        running.start()
        try:
            while running.is_alive():
                running.join(_LOOK_SECONDS)
                report(part, *check.progress)
            report(part, *check.progress)
        except BaseException:
            check.stop()
            running.join()
            raise
        for table, key, why in check.take():
            tell(Damage(table, key, why))
        if failures:
            raise failures[0]
