"""Check the rows that find things: blocks and transactions by hash, transactions by address."""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Header, State, Transaction, View, keccak256
from foreblock.errors import ForeblockError
from foreblock.ledger.checking.damage import FLAT, ROWS, Damage, Tell
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.address_index import ADDRESSES, touched_key
from foreblock.ledger.storage.body_rows import body_keys, made_of

_INDEX: Final = b"i"  # before the length and the key of an index row, in the flat table
_TOUCHED_HEAD: Final = 33  # bytes before the entries of a row of touched addresses
_TOUCHED_ENTRY: Final = 24


class FindingCheck:
    """Checks that what is in sealed blocks of a view is found."""

    def __init__(self, view: View, tell: Tell) -> None:
        self._view: Final = view
        self._tell: Final = tell
        self._state: Final = _latest_state(view)
        self._touched_end: Final = _touched_end(view)

    def check(
        self, header: Header, partials: tuple[int, ...], decoded: Sequence[Transaction] | None
    ) -> None:
        """Check what finds a block and its transactions, which are its own, decoded."""
        self._check_touched(header, decoded)
        state = self._state
        if state is None:
            return
        number = header.number
        if partials:
            key = partial_rows.by_hash_key(header.hash)
            row = self._view.row(key)
            if row is None or partial_rows.decode_by_hash(row)[0] != number:
                self._wrong(key, f"block {number} is not found by its hash")
        else:
            key = rows.block_index_key(header.hash)
            entry = state.index(key)
            if entry is None or rows.decode_block_entry(entry) != number:
                self._wrong_entry(key, f"block {number} is not found by its hash")
        for place, transaction in enumerate(decoded or ()):
            key = rows.transaction_index_key(transaction.hash)
            entry = state.index(key)
            if entry is None or not self._is_at(entry, number, place, transaction.hash):
                named = f"transaction 0x{transaction.hash.hex()} of block {number}"
                self._wrong_entry(key, f"{named} is not found by its hash")

    def _is_at(self, entry: bytes, number: int, place: int, wanted: bytes) -> bool:
        """Whether an entry is of this place, or of a later one with the same transaction."""
        found = rows.decode_transaction_entry(entry)
        if found <= (number, place):
            return found == (number, place)
        at = found[1]
        for key, _ in body_keys(found[0], made_of(self._view, found[0])):
            row = self._view.row(key)
            items = () if row is None else rows.decode_items(row)
            if at < len(items):
                return keccak256(items[at]) == wanted
            at -= len(items)
        return False

    def _check_touched(self, header: Header, decoded: Sequence[Transaction] | None) -> None:
        """Senders and recipients are in the index of transactions by address."""
        if not decoded or header.number >= self._touched_end:
            return
        key = touched_key(header.number)
        row = self._view.row(key) or b""
        entries = row[_TOUCHED_HEAD:]
        starts = range(0, len(entries), _TOUCHED_ENTRY)
        touched = {entries[at : at + _TOUCHED_ENTRY] for at in starts}
        wanted = {
            address + place.to_bytes(4)
            for place, each in enumerate(decoded)
            for address in (each.sender, each.to)
            if address is not None
        }
        if row[:32] != header.hash or not wanted <= touched:
            self._wrong(key, f"addresses that block {header.number} touches are not in its row")

    def _wrong(self, key: bytes, why: str) -> None:
        self._tell(Damage(ROWS, key, why))

    def _wrong_entry(self, key: bytes, why: str) -> None:
        self._tell(Damage(FLAT, _INDEX + bytes((len(key),)) + key, why))


def _latest_state(view: View) -> State | None:
    latest = view.heads.latest
    try:
        return None if latest is None else view.state(latest[0])
    except ForeblockError:
        return None  # the engine tells what is wrong with the heads


def _touched_end(view: View) -> int:
    """The first block that is not in the index of addresses."""
    try:
        return ADDRESSES.read(view).end if ADDRESSES.exists(view) else 0
    except ForeblockError:
        return 0  # told of with the index
