"""Check a store: compute again everything that can be computed, and report every difference.

One view is checked from the first row to the last, so commits during the check have no effect; the
pages that they replace are freed when the check ends. Headers, bodies, partials and indexes are
checked here, states, tries and codes by the engine, on a thread, so that progress is shown and an
interruption stops it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Thread
from typing import Final

from foreblock._engine import (
    Heads,
    Partial,
    Store,
    StoreCheck,
    View,
    decode_transactions,
    log_section,
    log_terms,
    transactions_root,
)
from foreblock.errors import ForeblockError, PartialState, PrunedState
from foreblock.ledger.checking.block_check import ROWS, BlockCheck, Damage, OnDamage, Report
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import (
    GENESIS,
    FirstBlock,
    body_keys,
    portions_of_sealed,
    read_first_block,
    read_header,
)
from foreblock.ledger.storage.partial_rows import (
    END,
    PartialRow,
    decode_numbers,
    decode_partial_row,
    decode_seals_as,
    partial_key,
    position_of_key,
    positions_prefix,
    receipts_key,
    seals_as_key,
    senders_key,
    split_senders,
    transactions_key,
)
from foreblock.ledger.storage.section_index import (
    ADDRESSES,
    FIRST_ENTRY,
    LOGS,
    SIZES,
    Section,
    SectionIndex,
    terms_of,
)

_LOOK_SECONDS: Final = 0.1
_NO_ROOT: Final = bytes(32)
_ALL: Final = 1 << 24  # more rows than a section or partials have


@dataclass(frozen=True, slots=True)
class Checked:
    """The counts of a finished check."""

    heads: Heads
    blocks: int
    transactions: int
    damages: int


class _Counting:
    """Tells of damage and counts it."""

    def __init__(self, on_damage: OnDamage) -> None:
        self._on_damage: Final = on_damage
        self.count = 0

    def __call__(self, damage: Damage) -> None:
        self.count += 1
        self._on_damage(damage)


def check_store(path: str, on_damage: OnDamage, report: Report) -> Checked:
    """Check the last commit of a store.

    Raises `StoreMissing`, `UnknownStoreFormat`, and `StoreDamaged` for a store that cannot
    even be opened.
    """
    with Store(path) as store, store.view() as view:
        return check_view(view, on_damage, report)


def check_view(view: View, found: OnDamage, report: Report) -> Checked:
    on_damage, latest = _Counting(found), view.heads.latest
    blocks = BlockCheck(view, on_damage)
    roots: list[bytes] = []
    first = _first(view)
    stop = _sealed_end(view, first.number)
    for number in range(first.number, stop):
        roots.append(blocks.check(number, has_body=number >= first.whole) or _NO_ROOT)
        report("blocks", number + 1 - first.number, stop - first.number)
    if latest is not None:
        check_indices(view, first.whole, stop, on_damage, report)
    _run_parts(StoreCheck(view, first.number, b"".join(roots)), on_damage, report)
    if latest is not None:
        check_partials(view, on_damage, report)
    return Checked(view.heads, len(roots), blocks.transactions, on_damage.count)


def _first(view: View) -> FirstBlock:
    try:
        return read_first_block(view)
    except ForeblockError:
        return GENESIS  # its blocks are then reported as missing


def _sealed_end(view: View, first: int) -> int:
    """The block after the last sealed one; where the latest is not sealed, after the first gap."""
    latest = view.heads.latest
    if latest is None:
        return first
    if view.sealed(latest[0]) is not None:
        return latest[0] + 1
    numbers = range(first, latest[0] + 1)
    return next(number for number in numbers if view.sealed(number) is None)


def _run_parts(check: StoreCheck, on_damage: OnDamage, report: Report) -> None:
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
            on_damage(Damage(table, key, why))
        if failures:
            raise failures[0]


def check_partials(view: View, on_damage: OnDamage, report: Report) -> None:
    """Check every partial that can be reached by its place."""
    places = view.rows(positions_prefix(), _ALL)
    for done, (key, value) in enumerate(places, 1):
        try:
            for why in _check_index_row(view, key, value):
                on_damage(Damage(ROWS, key, why))
        except (ForeblockError, ValueError, IndexError) as why:
            on_damage(Damage(ROWS, key, f"its partial cannot be read: {why}"))
        report("flashblocks", done, len(places))


def _check_index_row(view: View, key: bytes, value: bytes) -> Iterator[str]:
    block, index = position_of_key(key)
    (number,) = decode_numbers(value)
    partial = view.partial(number)
    if partial is None or partial.status == "dropped":
        return  # abandoned or pruned: the row has no effect
    if partial.block != block or partial.index > index:
        yield f"partial {number} is {partial.block}.{partial.index}, not {block}.{index}"
        return
    row = view.row(partial_key(block, number))
    if row is None:
        if partial.status == "live":
            yield f"partial {number} has no row"
        return
    yield from _check_rows(view, block, number, partial, decode_partial_row(row))


def _check_rows(
    view: View, block: int, number: int, partial: Partial, row: PartialRow
) -> Iterator[str]:
    if row.header.hash != partial.hash:
        yield f"partial {number} has a header that does not match its hash"
        return
    if row.header.parent_hash != partial.parent_hash:
        yield f"partial {number} has another parent than its header"
    chain = [*row.before, number]
    if view.row(transactions_key(block, number | END)) is not None:
        chain.append(number | END)
    transactions = _joined(view, [transactions_key(block, each) for each in chain])
    receipts = _joined(view, [receipts_key(block, each) for each in chain])
    if transactions is None or receipts is None:
        yield f"partial {number} has no transactions or no receipts"
        return
    if transactions_root(transactions) != row.header.transactions_root:
        yield f"the transactions up to partial {number} have another root"
        return
    if transactions_root(receipts) != row.header.receipts_root:
        yield f"the receipts up to partial {number} have another root"
    after = len(transactions) - (chain[-1] != number)
    own = transactions[row.transactions_before : after]
    senders = split_senders(view.row(senders_key(block, number)) or b"")
    # Those of sealed blocks are recovered with their block.
    if len(own) != len(senders):
        yield f"partial {number} has {len(senders)} senders of {len(own)} transactions"
    elif partial.status == "live":
        decode_transactions(own, threads=1, senders=senders)
    yield from _check_root(view, block, number)


def _check_root(view: View, block: int, number: int) -> Iterator[str]:
    """The state after a partial has the root that it would be sealed with, where it is known."""
    row = view.row(seals_as_key(block, number))
    if row is None:
        return
    try:
        state = view.state_of_partial(number)
        is_whole = view.heads.base.is_complete
        below = None if is_whole else read_header(view, state.sealed_block)[0].state_root
        root = state.trie(root=below).root()
    except (PrunedState, PartialState):
        return  # of so old a block no trie nodes are kept, or not all of them are known
    if root != decode_seals_as(row)[0]:
        yield f"the state after partial {number} has another root than it would be sealed with"


def _joined(view: View, keys: list[bytes]) -> list[bytes] | None:
    items: list[bytes] = []
    for key in keys:
        row = view.row(key)
        if row is None:
            return None
        items += rows.decode_items(row)
    return items


def check_indices(view: View, first: int, stop: int, on_damage: OnDamage, report: Report) -> None:
    """Check the index of logs, and that of addresses if there is one.

    `first` is the first block that has a body, `stop` the one after the last.
    """
    _check_index(view, LOGS, _log_terms, (first, stop), on_damage, report)
    if ADDRESSES.exists(view):
        _check_index(view, ADDRESSES, terms_of, (first, stop), on_damage, report)


def _log_terms(view: View, block: int) -> bytes | None:
    keys = [receipts for _, receipts in body_keys(block, portions_of_sealed(view, block))]
    return log_terms(view, keys)


def _check_index(
    view: View,
    index: SectionIndex,
    terms: Callable[[View, int], bytes | None],
    blocks: tuple[int, int],
    on_damage: OnDamage,
    report: Report,
) -> None:
    begin, stop = blocks
    try:
        indexed = index.read(view)
    except ForeblockError as why:
        on_damage(Damage(ROWS, index.key, str(why)))
        return
    if indexed.end > stop:
        on_damage(Damage(ROWS, index.key, f"{indexed.end} blocks are indexed, there are {stop}"))
        return

    def terms_from(view: View, block: int) -> bytes | None:
        return terms(view, block) if block >= begin else b""

    first = begin // SIZES[-1] * SIZES[-1]
    for size in reversed(range(len(SIZES))):
        for start in range(first, indexed.ends[size], SIZES[size]):
            section = Section(index.key, size, start)
            _check_section(view, section, terms_from, on_damage)
            report("index", section.stop, indexed.end)
        first = max(first, indexed.ends[size])


def _check_section(
    view: View, section: Section, terms: Callable[[View, int], bytes | None], on_damage: OnDamage
) -> None:
    try:
        found = [terms(view, block) for block in range(section.first, section.stop)]
    except ForeblockError:
        return  # receipts that cannot be read are reported with their block
    if any(each is None for each in found):
        return
    stored = view.rows(section.prefix, _ALL)
    entry = len(FIRST_ENTRY)
    for key, chunk in stored:
        if key[len(section.prefix) :] != chunk[:entry]:
            on_damage(Damage(ROWS, key, "a chunk of an index does not begin with its key"))
    expected = b"".join(log_section([each for each in found if each is not None]))
    if b"".join(chunk for _, chunk in stored) != expected:
        blocks = f"blocks {section.first} to {section.stop - 1}"
        what = "logs" if section.key == LOGS.key else "addresses"
        on_damage(
            Damage(ROWS, section.prefix, f"the index of {what} of {blocks} is not that of them")
        )
