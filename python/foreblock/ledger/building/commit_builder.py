"""One commit, put together step by step: the only way in which blocks get into a store.

Steps are applied in the order in which they are added. Numbers are drawn as they will be
stored, so a later step may name what an earlier one adds. Nothing is written before
`commit`, and a builder that is closed instead leaves no trace.

Nothing is decided here about the chain. What is kept right are the rows that find partials:
a hash means the first partial with it that can be reached, a place the one that was added
or revived last; and the indices of logs and of addresses, whose ends a rewind lowers
(`commits`, which also says where a commit goes).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

from msgspec import Struct

from foreblock._engine import Batch, Header, Heads, NodeWrites, Store, View
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import SealsAs
from foreblock.ledger.rules.verification import Verified
from foreblock.ledger.storage import abandoned_blocks, partial_rows, rows
from foreblock.ledger.storage.abandoned_blocks import AbandonedBlock
from foreblock.ledger.storage.chain_head import partials_of_sealed
from foreblock.ledger.storage.commits import TO_STORE, Commits, lower_indices
from foreblock.ledger.storage.partials import first_partials

_ALL: Final = 1 << 20  # more rows than a height can have


class _PartialPosition(Struct, frozen=True):
    """Where a partial is found, and by which hash."""

    block: int
    index: int
    hash: bytes
    has_end: bool = False


class CommitBuilder:
    """The steps of a commit; heads, notes and rows beside them go to `batch` itself."""

    def __init__(self, store: Store) -> None:
        self.batch: Final[Batch] = store.batch()
        self.is_empty = True
        self.transactions = 0  # that it adds
        self.removed_blocks = 0  # sealed blocks that it removes
        self._store: Final = store
        self._opened: View | None = None
        self._dropped: set[int] = set()
        self._revived: set[int] = set()
        self._added: dict[int, _PartialPosition] = {}  # partials that the store does not have yet
        self._hashes: set[bytes] = set()  # of partials that this commit adds or revives
        self._abandoned: Final[list[AbandonedBlock]] = []  # for good, on a chain that is built here

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: object, trace: object, /) -> None:
        self.close()

    @property
    def next(self) -> int:
        """The number that will be drawn next."""
        return self.batch.next

    def extend(
        self,
        closed: ClosedIndex,
        before: tuple[int, ...],
        received_at_ns: int,
        stacked_on: int | None = None,
    ) -> int:
        """Add a closed index after those partials of its block; returns its number.

        The first index stands on the sealed block below, or on the partial `stacked_on`.
        """
        self.is_empty = False
        self.transactions += len(closed.transactions)
        header = closed.header
        stands_on_sealed = not before and stacked_on is None
        stands_on_partial = not before and stacked_on is not None
        number = self.batch.extend(
            header.number,
            closed.index,
            header.hash,
            closed.changes,
            on_block=header.number - 1 if stands_on_sealed else None,
            parent=before[-1] if before else stacked_on,
            parent_hash=header.parent_hash if stands_on_partial else None,
            rows=closed.entries,
        )
        has_end = closed.post_execution is not None
        self._added[number] = _PartialPosition(
            header.number, closed.index, header.hash, has_end=has_end
        )
        self._put(closed.rows(number, before, received_at_ns))
        self._name(header.number, number, header.hash)
        return number

    def seal(
        self,
        partials: tuple[int, ...],
        header: Header,
        total_difficulty: int,
        nodes: NodeWrites | None,
    ) -> None:
        """Make the last of these partials, from index 0 on, the block of this header."""
        self.is_empty = False
        number, portions = header.number, partials
        if self._has_end(number, partials[-1]):
            portions = (*partials, partials[-1] | partial_rows.END)
        self.batch.seal(partials[-1], header.hash, None if nodes is None else (number, nodes))
        self._put(
            (
                (rows.header_key(number), rows.encode_header_row(header, total_difficulty)),
                (partial_rows.made_of_key(number), partial_rows.encode_numbers(portions)),
                (partial_rows.by_hash_key(header.hash), partial_rows.encode_by_hash(number)),
            )
        )

    def _has_end(self, block: int, partial: int) -> bool:
        """True if the block ends with a transaction of its own if this is its last partial."""
        if partial in self._added:
            return self._added[partial].has_end
        key = partial_rows.transactions_key(block, partial | partial_rows.END)
        return self._view.row(key) is not None

    def store_empty_tail(self, block: int, index: int, partial: int) -> None:
        """Store the last partial of a sealed block under its last index, too."""
        key = partial_rows.by_position_key(block, index)
        self.batch.put(key, partial_rows.encode_numbers((partial,)))

    def append(self, verified: Verified, total_difficulty: int) -> None:
        """Add a sealed block with changes of its own; the difficulty includes its own."""
        self.is_empty = False
        block, execution = verified.block, verified.execution
        self.transactions += len(execution.hashes)
        entries = rows.index_entries(block, execution.hashes)
        number = block.header.number
        self.batch.append(number, block.hash, verified.changes, verified.nodes, entries)
        found = execution.senders, execution.receipts
        self._put(rows.block_rows(block, total_difficulty, *found))

    def rewind(self, block: int, *, built_here: bool = False, findable: bool = True) -> None:
        """Make a sealed block the latest again, and drop all that stands above it.

        Of a chain that is `built_here`, no partials of a sealed height can be reached but
        those that it is made of: only these are looked for. Logs of removed blocks are found
        by the hashes of these for a while, unless nothing of them is to be `findable`.
        """
        self.is_empty = False
        latest = self._view.heads.latest
        assert latest is not None, "a store is begun with its genesis"
        self.removed_blocks = max(self.removed_blocks, latest[0] - block)
        for height in range(block + 1, latest[0] + 1):
            parts = partials_of_sealed(self._view, height)
            removed = self._keep_removed(height, parts, findable=findable)
            found = parts[:-1] if built_here else self._partials_of(height)
            live = [each for each in found if self._status(each) == "live"]
            self.drop(live, "its block was given up")
            self._dropped.update(parts)
            if built_here:
                self._abandoned.append(AbandonedBlock(height, parts, removed))
        self.batch.rewind(block)

    def give_up(self, block: int, partials: tuple[int, ...], why: str) -> None:
        """Drop the block in progress of a chain that is built here."""
        self.drop(partials, why)
        self._abandoned.append(AbandonedBlock(block, partials))

    @property
    def dropped(self) -> int:
        """The number of partials that were readable and are not after this commit."""
        return len(self._dropped.difference(self._added))

    @property
    def abandoned(self) -> Iterator[AbandonedBlock]:
        """Blocks that were abandoned and not revived."""
        for each in self._abandoned:
            yield each._replace(partials=tuple(self._dropped.intersection(each.partials)))

    def _keep_removed(self, number: int, parts: tuple[int, ...], *, findable: bool) -> bytes:
        """Keep a row of an abandoned sealed block for subscribers; returns its key."""
        view = self._view
        if parts:
            key, row = abandoned_blocks.removed_of_partials(view, number, parts)
        else:
            removed = abandoned_blocks.removed_row(view, number, first_partials(view, number))
            key = abandoned_blocks.removed_key(number, removed.header.hash)
            row = removed.encode()
        self.batch.put(key, row)
        if findable:
            self.batch.put(*abandoned_blocks.position_row(key))
        return key

    def live_partials(self, block: int) -> list[int]:
        """The stored partials of a height that can be reached, but for a sealed one."""
        return [each for each in self._partials_of(block) if self._status(each) == "live"]

    def _partials_of(self, block: int) -> list[int]:
        found = self._view.keys(partial_rows.block_prefix(block), _ALL)
        kinds = map(partial_rows.partial_of_key, found)
        return [partial for partial, kind in kinds if kind == b"h"]

    def drop(self, partials: Sequence[int], why: str) -> None:
        """Make these partials unreachable from this commit on."""
        if partials:
            self.is_empty = False
            self.batch.drop(list(partials), why)
            self._dropped.update(partials)
            self._revived.difference_update(partials)

    def revive_as(self, partials: Sequence[int], payload_id: bytes) -> None:
        """Take back a drop of the first partials of a block, which are of another job now.

        Places after the last of them mean nothing any more.
        """
        self.revive(partials)
        last = self._view.partial(partials[-1])
        assert last is not None, "it was stored before it was dropped"
        for number in partials:
            key = partial_rows.partial_key(last.block, number)
            row = self._view.row(key)
            assert row is not None, "a partial that is kept has its rows"
            self.batch.put(key, partial_rows.with_payload_id(row, payload_id))
        for key in self._view.keys(partial_rows.positions_prefix(last.block), _ALL):
            if partial_rows.position_of_key(key)[1] > last.index:
                self.batch.delete(key)

    def revive(self, partials: Sequence[int]) -> None:
        """Take back a drop, so that hashes and places mean these partials again."""
        self.is_empty = False
        self.batch.revive(list(partials))
        self._revived.update(partials)
        self._dropped.difference_update(partials)
        for number in partials:
            place = self._position(number)
            key = partial_rows.by_position_key(place.block, place.index)
            self.batch.put(key, partial_rows.encode_numbers((number,)))
            self._name(place.block, number, place.hash)

    def seals_as(self, computed: Iterable[SealsAs]) -> None:
        """Store what partials would seal as; that alone is no reason for a commit."""
        for each in computed:
            key = partial_rows.seals_as_key(each.header.number, each.partial)
            self.batch.put(key, partial_rows.encode_seals_as(each.header))

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete rows; that alone is no reason for a commit."""
        for key in keys:
            self.batch.delete(key)

    def commit(self, commits: Commits = TO_STORE) -> Heads:
        """Make all steps durable, in one transaction; returns the new heads."""
        self.close()
        lower_indices(self._store, self.batch)
        return commits.commit(self._store, self.batch)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _view(self) -> View:
        """The store as of the last commit, opened when it is first needed."""
        if self._opened is None:
            self._opened = self._store.view()
        return self._opened

    def _put(self, new: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in new:
            self.batch.put(key, value)

    def _name(self, block: int, number: int, block_hash: bytes) -> None:
        """Let the hash mean this partial, unless it means another one that can be reached."""
        if block_hash in self._hashes or self._is_in_use(block_hash):
            return
        meaning = partial_rows.encode_by_hash(block, number)
        self.batch.put(partial_rows.by_hash_key(block_hash), meaning)
        self._hashes.add(block_hash)

    def _position(self, number: int) -> _PartialPosition:
        """The place of a partial that this commit adds, or that was stored before."""
        if number in self._added:
            return self._added[number]
        partial = self._view.partial(number)
        assert partial is not None, "it was stored before it was dropped"
        return _PartialPosition(partial.block, partial.index, partial.hash)

    def _is_in_use(self, block_hash: bytes) -> bool:
        row = self._view.row(partial_rows.by_hash_key(block_hash))
        if row is None:
            return False
        _, number = partial_rows.decode_by_hash(row)
        return self._status(number) in {"live", "sealed"}

    def _status(self, number: int) -> str | None:
        if number in self._dropped:
            return "dropped"
        if number in self._revived:
            return "live"
        partial = self._view.partial(number)
        return None if partial is None else partial.status
