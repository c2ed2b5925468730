"""Check the indices in sections: each section has the terms of its blocks, and no others."""

from collections.abc import Callable
from typing import Final

from foreblock._engine import View, log_section, log_terms
from foreblock.errors import ForeblockError
from foreblock.ledger.checking.damage import ROWS, Damage, Report, Tell
from foreblock.ledger.storage.address_index import ADDRESSES, terms_of
from foreblock.ledger.storage.body_rows import body_keys, made_of
from foreblock.ledger.storage.log_index import LOGS
from foreblock.ledger.storage.section_index import FIRST_ENTRY, SIZES, Section, SectionIndex

_ALL: Final = 1 << 24  # more rows than a section can have


def check_indices(view: View, first: int, stop: int, tell: Tell, report: Report) -> None:
    """Check the index of logs, and that of addresses if there is one.

    `first` is the first block that has a body, `stop` the one after the last.
    """
    _check_index(view, LOGS, _log_terms, (first, stop), tell, report)
    if ADDRESSES.exists(view):
        _check_index(view, ADDRESSES, terms_of, (first, stop), tell, report)


def _log_terms(view: View, block: int) -> bytes | None:
    keys = [receipts for _, receipts in body_keys(block, made_of(view, block))]
    return log_terms(view, keys)


def _check_index(
    view: View,
    index: SectionIndex,
    terms: Callable[[View, int], bytes | None],
    blocks: tuple[int, int],
    tell: Tell,
    report: Report,
) -> None:
    begin, stop = blocks
    try:
        indexed = index.read(view)
    except ForeblockError as why:
        tell(Damage(ROWS, index.key, str(why)))
        return
    if indexed.end > stop:
        tell(Damage(ROWS, index.key, f"{indexed.end} blocks are indexed, there are {stop}"))
        return

    def terms_from(view: View, block: int) -> bytes | None:
        return terms(view, block) if block >= begin else b""

    first = begin // SIZES[-1] * SIZES[-1]
    for size in reversed(range(len(SIZES))):
        for start in range(first, indexed.ends[size], SIZES[size]):
            section = Section(index.key, size, start)
            _check_section(view, section, terms_from, tell)
            report("index", section.stop, indexed.end)
        first = max(first, indexed.ends[size])


def _check_section(
    view: View, section: Section, terms: Callable[[View, int], bytes | None], tell: Tell
) -> None:
    try:
        found = [terms(view, block) for block in range(section.first, section.stop)]
    except ForeblockError:
        return  # receipts that cannot be read are told of with their block
    if any(each is None for each in found):
        return
    stored = view.rows(section.prefix, _ALL)
    entry = len(FIRST_ENTRY)
    for key, chunk in stored:
        if key[len(section.prefix) :] != chunk[:entry]:
            tell(Damage(ROWS, key, "a chunk of an index does not begin with its key"))
    expected = b"".join(log_section([each for each in found if each is not None]))
    if b"".join(chunk for _, chunk in stored) != expected:
        blocks = f"blocks {section.first} to {section.stop - 1}"
        what = "logs" if section.key == LOGS.key else "addresses"
        tell(Damage(ROWS, section.prefix, f"the index of {what} of {blocks} is not that of them"))
