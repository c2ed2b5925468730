"""Check sealed blocks: header chain, bodies, receipts, senders, and the rows that find them.

Everything that a header commits to is computed again from the rows of its block. A header is
correct if it has the hash that the block is sealed under and names the hash of its parent.
`FindingCheck` checks the rows that find blocks and transactions by hash, and transactions by
address.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from foreblock._engine import (
    Header,
    State,
    StoredItems,
    Transaction,
    View,
    decode_receipt,
    decode_transactions,
    keccak256,
    logs_bloom,
    ommers_hash,
    transactions_root,
    withdrawals_root,
)
from foreblock.errors import ForeblockError
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.chain_head import (
    body_keys,
    portions_of_sealed,
    rules_of,
    stored_profile,
)
from foreblock.ledger.storage.section_index import ADDRESSES, touched_key

ROWS: Final = "rows"  # the table that Python's rows are in
FLAT: Final = "flat"  # the one that index rows are in


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a store that no commit can have written."""

    table: str
    key: bytes  # of the row; empty where it is of the whole table
    why: str


OnDamage = Callable[[Damage], None]
# The current check, its progress, and about how much there is.
Report = Callable[[str, int, int], None]
_UNREADABLE: Final = (ForeblockError, ValueError, IndexError, LookupError)


class BlockCheck:
    """Checks the sealed blocks of a view, from the first on."""

    def __init__(self, view: View, on_damage: OnDamage) -> None:
        self._view: Final = view
        self._on_damage: Final = on_damage
        self._profile: Final = self._read_profile()
        self._finding: Final = FindingCheck(view, on_damage)
        self._parent: Header | None = None
        self._difficulty = 0
        self.transactions = 0

    def check(self, number: int, *, has_body: bool = True) -> bytes | None:
        """Check a block; returns its state root if its header is the one that was sealed."""
        key = rows.header_key(number)
        try:
            sealed = self._view.sealed(number)
            row = self._view.row(key)
        except ForeblockError as why:
            self._wrong(key, str(why))
            return None
        if sealed is None or row is None:
            self._wrong(key, f"block {number} has no {'header' if sealed else 'sealed row'}")
            self._parent = None
            return None
        try:
            header, difficulty = rows.decode_header_row(row)
        except _UNREADABLE as why:
            self._wrong(key, f"the header of block {number} cannot be read: {why}")
            self._parent = None
            return None
        self._check_header(number, header, difficulty, sealed[0])
        self._parent, self._difficulty = header, difficulty
        if header.hash != sealed[0]:
            return None
        try:
            if has_body:
                self._check_body(header, difficulty)
        except _UNREADABLE as why:
            self._wrong(rows.body_key(number), f"block {number} cannot be read: {why}")
        return header.state_root

    def _check_header(self, number: int, header: Header, difficulty: int, sealed: bytes) -> None:
        key = rows.header_key(number)
        if header.hash != sealed:
            self._wrong(
                key,
                f"block {number} has the hash 0x{header.hash.hex()}, sealed is 0x{sealed.hex()}",
            )
            return
        if header.number != number:
            self._wrong(key, f"block {number} has the header of block {header.number}")
        parent = self._parent
        if parent is not None and header.parent_hash != parent.hash:
            self._wrong(key, f"block {number} does not name block {number - 1} as its parent")
        before = self._difficulty if parent is not None else None
        if number == 0:
            before = 0
        if before is not None and difficulty != before + header.difficulty:
            self._wrong(key, f"the total difficulty of block {number} is not the sum")

    def _check_body(self, header: Header, difficulty: int) -> None:
        number = header.number
        partials = portions_of_sealed(self._view, number)
        raws: list[bytes] = []
        encoded: list[bytes] = []
        portions: list[tuple[int, int]] = []
        for transactions_key, receipts_key in body_keys(number, partials):
            items, receipts = self._items(transactions_key), self._items(receipts_key)
            if items is None or receipts is None:
                return
            portions.append((len(raws), len(items)))
            raws += items.take(0, len(items))
            encoded += receipts.take(0, len(receipts))
            if not partials:
                self._check_end(header, transactions_key, items.end)
        self.transactions += len(raws)
        last_key, last_receipts = body_keys(number, partials)[-1]
        if transactions_root(raws) != header.transactions_root:
            self._wrong(last_key, f"the transactions of block {number} have another root")
            return
        if transactions_root(encoded) != header.receipts_root:
            self._wrong(last_receipts, f"the receipts of block {number} have another root")
            return
        receipts_read = [decode_receipt(each) for each in encoded]
        if logs_bloom(receipts_read) != header.logs_bloom:
            self._wrong(rows.header_key(number), f"the logs of block {number} have another bloom")
        decoded = self._decode(header, difficulty, raws)
        gas = [each.cumulative_gas_used for each in receipts_read]
        logs = [len(each.logs) for each in receipts_read]
        self._check_senders(number, partials, portions, decoded, gas, logs)
        self._finding.check(header, partials, decoded)

    def _items(self, key: bytes) -> StoredItems | None:
        row = self._view.row(key)
        if row is None:
            number = int.from_bytes(key[1:9])
            what = "transactions" if key[:1] == b"B" or key[-1:] == b"t" else "receipts"
            self._wrong(key, f"block {number} has no {what}")
            return None
        return StoredItems(row)

    def _check_end(self, header: Header, key: bytes, at: int) -> None:
        """Uncles and withdrawals, which only blocks that came whole have."""
        row = self._view.row(key)
        assert row is not None
        uncles, withdrawals = rows.decode_body_end(row[at:])
        if ommers_hash(uncles) != header.ommers_hash:
            self._wrong(key, f"the uncles of block {header.number} have another hash")
        profile = self._profile
        if profile is None or profile.optimism is not None:  # the field has another meaning there
            return
        root = None if withdrawals is None else withdrawals_root(withdrawals)
        if root != header.withdrawals_root:
            self._wrong(key, f"the withdrawals of block {header.number} have another root")

    def _decode(
        self, header: Header, difficulty: int, raws: Sequence[bytes]
    ) -> list[Transaction] | None:
        """The transactions with recovered senders; None if the rules are not known."""
        if self._profile is None:
            return None
        rules = rules_of(header, difficulty, self._profile)
        homestead = rules.ethereum >= EthereumFork.HOMESTEAD
        return decode_transactions(raws, homestead=homestead, unsigned=self._profile.unsigned)

    def _check_senders(
        self,
        number: int,
        partials: tuple[int, ...],
        portions: Sequence[tuple[int, int]],
        decoded: Sequence[Transaction] | None,
        gas: Sequence[int],
        logs: Sequence[int],
    ) -> None:
        keys = [partial_rows.senders_key(number, each) for each in partials]
        for key, (first, count) in zip(keys or [rows.senders_key(number)], portions, strict=True):
            row = self._view.row(key)
            if row is None:
                if partials:  # older versions stored none of blocks that came whole
                    self._wrong(key, f"block {number} has no senders")
                continue
            stored = partial_rows.split_senders(row)
            some = None if decoded is None else decoded[first : first + count]
            if some is not None and stored != [each.sender for each in some]:
                self._wrong(key, f"transactions of block {number} have other senders")
            end = row[-partial_rows.POSITION_BYTES :]
            position = partial_rows.decode_position(len(row), end) if partials else None
            before = partial_rows.Position(first, gas[first - 1] if first else 0, sum(logs[:first]))
            if position is not None and position != before:
                self._wrong(key, f"a flashblock of block {number} has other totals before it")

    def _read_profile(self) -> ChainProfile | None:
        if self._view.heads.latest is None:
            return None
        try:
            return stored_profile(self._view)
        except _UNREADABLE as why:
            self._wrong(rows.CONFIG, f"the configuration of the chain cannot be read: {why}")
            return None

    def _wrong(self, key: bytes, why: str) -> None:
        self._on_damage(Damage(ROWS, key, why))


_INDEX: Final = b"i"  # before the length and the key of an index row, in the flat table
_TOUCHED_HEAD: Final = 33  # bytes before the entries of a row of touched addresses
_TOUCHED_ENTRY: Final = 24


class FindingCheck:
    """Checks that the contents of sealed blocks of a view can be found."""

    def __init__(self, view: View, on_damage: OnDamage) -> None:
        self._view: Final = view
        self._on_damage: Final = on_damage
        self._state: Final = _latest_state(view)
        self._touched_end: Final = _touched_end(view)

    def check(
        self, header: Header, partials: tuple[int, ...], decoded: Sequence[Transaction] | None
    ) -> None:
        """Check the rows that find a block and its transactions, here decoded."""
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
        """True if an entry is of this position, or of a later one with the same transaction."""
        found = rows.decode_transaction_entry(entry)
        if found <= (number, place):
            return found == (number, place)
        at = found[1]
        for key, _ in body_keys(found[0], portions_of_sealed(self._view, found[0])):
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
        self._on_damage(Damage(ROWS, key, why))

    def _wrong_entry(self, key: bytes, why: str) -> None:
        self._on_damage(Damage(FLAT, _INDEX + bytes((len(key),)) + key, why))


def _latest_state(view: View) -> State | None:
    latest = view.heads.latest
    try:
        return None if latest is None else view.state(latest[0])
    except ForeblockError:
        return None  # the engine reports what is wrong with the heads


def _touched_end(view: View) -> int:
    """The first block that is not in the index of addresses."""
    try:
        return ADDRESSES.read(view).end if ADDRESSES.exists(view) else 0
    except ForeblockError:
        return 0  # reported with the index
