"""What one request reads: one snapshot, and every name of a block resolved on it.

A `Ledger` is one store opened for reading; a `LedgerView` is one snapshot of it, taken
for one request or one batch and closed before the answer goes out. What the heads row
says is turned into a `Snapshot` once per commit and shared by all views of that commit.

No source of flashblocks writes partial blocks yet. So `pending` means `latest`, and a
name that could only mean a partial block is not found.
"""

from dataclasses import dataclass
from typing import Final, Literal

from msgspec import Struct

from foreblock._engine import State, Store, View
from foreblock.errors import NoChain, NoSuchHead, UnknownBlock, UnknownBlockHash, UnknownPartial
from foreblock.ledger import rows
from foreblock.ledger.block_id import BlockId, ByHash, ByPlace
from foreblock.ledger.profile import ChainProfile
from foreblock.ledger.sealed_block import SealedBlock
from foreblock.ledger.start import stored_profile
from foreblock.ledger.tip import read_header, read_row

KEPT_BLOCKS: Final = 256  # values of recent requests; on overflow all are forgotten


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit as all its views see it."""

    commit: int
    latest: SealedBlock
    header_line: bytes


class Ledger:
    """A store and the chain it holds, for reading."""

    def __init__(self, store: Store, *, announce: bool = True) -> None:
        """`announce` names the snapshot in a header line of each answer. Raises `NoChain`."""
        self._store: Final = store
        self._announce: Final = announce
        self._blocks: dict[bytes, SealedBlock] = {}
        with store.view() as view:
            if view.heads.latest is None:
                raise NoChain(store.path)
            self.profile: Final = stored_profile(view)
            self._snapshot = self._read_snapshot(view)

    @classmethod
    def open(cls, path: str, *, announce: bool = True) -> "Ledger":
        """The ledger in a folder; raises `StoreMissing`, `NoChain`."""
        store = Store(path)
        try:
            return cls(store, announce=announce)
        except BaseException:
            store.close()
            raise

    def view(self) -> "LedgerView":
        """The snapshot of the last commit."""
        view = self._store.view()
        snapshot = self._snapshot
        # The number is read in the view's own transaction, so both speak of one commit.
        if view.commit != snapshot.commit:
            snapshot = self._snapshot = self._read_snapshot(view)
        return LedgerView(view, snapshot.latest, snapshot.header_line, self)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def block(self, view: View, number: int, block_hash: bytes) -> SealedBlock:
        """The block of this number and hash, which the view has."""
        known = self._blocks.get(block_hash)
        if known is None:
            header, total_difficulty = read_header(view, number)
            known = SealedBlock(header, total_difficulty, self.profile)
            if len(self._blocks) >= KEPT_BLOCKS:
                self._blocks.clear()
            self._blocks[block_hash] = known
        return known

    def _read_snapshot(self, view: View) -> Snapshot:
        heads = view.heads
        assert heads.latest is not None, "a chain never loses its first block"
        latest = self.block(view, *heads.latest)
        line = b""
        if self._announce:
            place = f"{latest.number:#x}:0x{latest.hash.hex()}"
            line = f"Foreblock-Snapshot: commit={heads.commit}; latest={place}\r\n".encode()
        return Snapshot(heads.commit, latest, line)


class LedgerView(Struct, frozen=True, gc=False):
    """One snapshot, for one request or one batch. A Struct because every request makes one."""

    _view: View
    latest: SealedBlock
    headers: bytes
    _ledger: Ledger

    def close(self) -> None:
        """Let go of the snapshot; nothing can be read after this."""
        self._view.close()

    @property
    def profile(self) -> ChainProfile:
        """The chain."""
        return self._ledger.profile

    @property
    def unused(self) -> int:
        """The first number that nothing in this view was stored under."""
        return self._view.commit + 1

    def resolve(self, block: BlockId) -> SealedBlock:
        """The block that a name means here; `NotHere` says why there is none."""
        if block == "latest":  # what nearly every request asks for
            return self.latest
        match block:
            case "pending":
                return self.latest
            case "earliest":
                return self._by_number(self._view.heads.earliest)
            case "safe" | "finalized":
                return self._by_head(block)
            case ByHash(block_hash):
                return self._by_hash(block_hash)
            case ByPlace(_, index):
                raise UnknownPartial(index)
            case int(number):
                return self._by_number(number)

    def state(self, block: SealedBlock) -> State:
        """The state after a block of this view; `PrunedState` when it is not kept."""
        return self._view.state(block.number)

    def body(self, block: SealedBlock) -> rows.Body:
        """Transactions, uncles and withdrawals of a block of this view."""
        return rows.decode_body(read_row(self._view, rows.body_key(block.number), block.number))

    def receipts(self, block: SealedBlock) -> tuple[bytes, ...]:
        """The receipts of a block of this view, as in their trie."""
        row = read_row(self._view, rows.receipts_key(block.number), block.number)
        return rows.decode_receipts(row)

    def _by_number(self, number: int) -> SealedBlock:
        block_hash = self._hash(number)
        if block_hash is None:
            raise UnknownBlock(number)
        return self._ledger.block(self._view, number, block_hash)

    def _by_head(self, tag: Literal["safe", "finalized"]) -> SealedBlock:
        heads = self._view.heads
        head = heads.safe if tag == "safe" else heads.finalized
        if head is None:
            raise NoSuchHead(tag)
        return self._ledger.block(self._view, *head)

    def _by_hash(self, block_hash: bytes) -> SealedBlock:
        known = self.state(self.latest).index(rows.block_index_key(block_hash))
        if known is None:
            raise UnknownBlockHash(block_hash)
        return self._ledger.block(self._view, rows.decode_block_entry(known), block_hash)

    def _hash(self, number: int) -> bytes | None:
        sealed = self._view.sealed(number) if number < 1 << 64 else None
        return None if sealed is None else sealed[0]
