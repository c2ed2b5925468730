"""A block while it is being built, index by index.

Transactions run one after the other on the state of the parent. Closing an index gives the
header of the block so far, as if it ended there; what that end did is taken back before the
block continues (`BlockEnd`), so the cuts between indexes change nothing in what follows.

On a dev chain a user may set accounts by hand, in an index of their own (`StateEdit`). Such an
index shows its state root, since nothing else in its header would tell it from the one before it.

Roots of lists grow with the block. The state root is computed behind the head, by
`parent_state`; only the storage root of the message passer has to be known at once, and only
when it changed. A block holds a view of the store until it is closed. After an exception
other than `InvalidTransaction` and `OverBudget` it must be discarded. On a fork of another chain
each step fetches the state that it misses; if that fails it changes nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from msgspec import Struct, field

from foreblock._engine import (
    Account,
    Allowance,
    BlockExecution,
    Header,
    MissingKeys,
    Overlay,
    Transaction,
    decode_transaction,
    keccak256,
    post_exec_transaction,
)
from foreblock.errors import StateMissing
from foreblock.ledger.building.closed_index import (
    BlockEnd,
    ClosedIndex,
    PostExecution,
    base_of,
    has_requests,
    header_of,
)
from foreblock.ledger.building.parent_state import NamedRoots, ParentState
from foreblock.ledger.building.real_index import RealIndex, take_over
from foreblock.ledger.rules.execution import deposit_receipt_version, environment, start_block
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.header_rules import check_header, excess_blob_gas_after
from foreblock.ledger.rules.post_exec import Refunds, refund_each, refunds_in
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.storage.mirror_rows import StateKey
from foreblock.ledger.storage.partial_rows import Position
from foreblock.ledger.storage.rows import (
    NO_PLACE,
    encode_transaction_entry,
    transaction_index_key,
)
from foreblock.primitives import ZERO_HASH
from foreblock.types import Base, FlashblockId, StateEdit

T = TypeVar("T")


class StoredIndices(Struct, frozen=True):
    """The committed indices of a block, read from their rows."""

    payload_id: bytes
    partials: tuple[int, ...]
    header: Header  # of the last
    next_index: int
    empty_indexes: int  # indices after the last partial in which nothing happened
    transactions: list[bytes]
    receipts: list[bytes]
    logs: int  # that all receipts have
    before_end: bytes | None = None  # the row of its last end, if that did something
    post_exec: bytes | None = None  # the transaction with which it would end


class _OpenIndex(Struct):
    """The additions since the last index was closed, and the position before them."""

    before: Position = field(default_factory=Position)
    edits: list[StateEdit] = field(default_factory=list)
    mirrors: bytes | None = None  # the end of the real transactions that it has


class BlockInProgress:
    """A block so far. Its attributes are for reading."""

    def __init__(self, parent_state: ParentState, base: Base, payload_id: bytes) -> None:
        """Use `begin` or `resume`."""
        profile, parent = parent_state.profile, parent_state.parent
        self.base: Final = base
        self.payload_id: Final = payload_id
        self.parent: Final = parent
        self.roots: Final = parent_state.roots
        self.rules: Final = profile.rules(base.block_number, base.timestamp, merged=True)
        self._parent_state: Final = parent_state
        self._finder: Final = parent_state.finder
        self._overlay: Final = parent_state.overlay
        excess = excess_blob_gas_after(parent, base.timestamp, profile, self.rules)
        self.empty: Final = header_of(base, self.rules, excess)  # while nothing is in it
        self._env: Final = environment(self.empty, self.rules, profile)
        blobs = profile.blob_parameters(base.timestamp)
        self._end: Final = (
            BlockEnd(
                self._overlay,
                self._env,
                profile,
                base.block_number,
                is_idle=parent_state.is_idle,
            )
            if has_requests(self.rules)
            else None
        )
        self._requests_hash = self.empty.requests_hash
        # Of the block so far.
        self._execution: Final = BlockExecution(
            self._overlay,
            self._env,
            deposit_receipt_version=deposit_receipt_version(self.rules),
            max_blobs=None if blobs is None else blobs.maximum,
        )
        self._withdrawals_root = self.empty.withdrawals_root
        # Refunds of its sequencer, which may refund this to each transaction.
        self.refund_gas = 0
        self._refunds: Refunds = ()
        self._end_entry: bytes | None = None  # key of the index entry of the last end
        # Of its committed indices.
        self.partials: tuple[int, ...] = ()
        self.header: Header | None = (
            None  # of the last; its state root is zero, without state edits
        )
        self.empty_indexes = 0  # indices after the last in which nothing happened
        self._knows_root = False  # of the index that was closed last
        # Of the index being filled.
        self.index = 0
        self._open = _OpenIndex()

    @classmethod
    def begin(
        cls,
        parent_state: ParentState,
        base: Base,
        payload_id: bytes,
        *,
        chosen: bool = False,
        refund_gas: int = 0,
    ) -> Self:
        """A block without transactions, what comes before them done.

        Raises `BadBlock` for a base that cannot follow. One that is `chosen` by the builder of
        a dev chain may have any base fee and gas limit; from Lagoon on that may refund
        `refund_gas` to each transaction.
        """
        block = cls(parent_state, base, payload_id)
        block.refund_gas = refund_gas
        block._check(chosen=chosen)
        parent_rules = parent_state.parent_rules
        block._found(
            lambda: start_block(block._overlay, block._env, block.empty, block.rules, parent_rules)
        )
        if parent_rules.includes(OptimismFork.ISTHMUS):
            block._withdrawals_root = parent_state.parent.withdrawals_root
        elif block.rules.includes(OptimismFork.ISTHMUS):
            block._withdrawals_root = block.roots.storage_root(MESSAGE_PASSER)
        return block

    @classmethod
    def resume(cls, parent_state: ParentState, stored: StoredIndices) -> Self:
        """A block after its committed indices; the overlay is above the state of the last."""
        header = stored.header
        block = cls(parent_state, base_of(header), stored.payload_id)
        if stored.post_exec is not None:
            end = decode_transaction(stored.post_exec)
            block._refunds = refunds_in(end)
            block._end_entry = transaction_index_key(end.hash)
        blob_gas, is_optimism = header.blob_gas_used or 0, block.rules.optimism is not None
        block._execution.resume(
            header,
            stored.transactions,
            stored.receipts,
            logs=stored.logs,
            da_footprint=blob_gas if is_optimism else 0,
            blobs=0 if is_optimism else blob_gas // GAS_PER_BLOB,
            refunded=sum(gas for _, gas in block._refunds),
        )
        if block._end is not None:
            block._end.resume(stored.receipts, stored.before_end)
            block._requests_hash = header.requests_hash
        block._withdrawals_root = header.withdrawals_root
        block.partials = stored.partials
        block.header = header
        block.index = stored.next_index
        block.empty_indexes = stored.empty_indexes
        block._open = _OpenIndex(block._position())
        return block

    def _check(self, *, chosen: bool) -> None:
        """Check what the block begins with against its parent."""
        parent_state, header = self._parent_state, self.empty
        if not parent_state.proven:
            header = header.replace(parent_hash=self.parent.hash)
        rules = self.rules, parent_state.parent_rules
        check_header(header, self.parent, *rules, parent_state.profile, chosen=chosen)

    @property
    def number(self) -> int:
        return self.base.block_number

    @property
    def excess_blob_gas(self) -> int:
        """The excess that decides the price of its blobs; 0 if it has none."""
        return self.empty.excess_blob_gas or 0

    @property
    def stacked(self) -> int:
        """How many blocks before it were built on its view of the store."""
        return self._parent_state.stacked

    @property
    def gas_used(self) -> int:
        return self._execution.gas_used

    @property
    def executed_gas(self) -> int:
        """The gas that counts against the limit of the block: refunds are part of it."""
        return self._execution.gas_used + self._execution.refunded

    @property
    def refunds(self) -> Refunds:
        """Those of its transactions so far."""
        count = self.count
        return [each for each in self._refunds if each[0] < count]

    @property
    def stated_refunds(self) -> Refunds:
        """The refunds of the block, those of transactions included that have not run yet."""
        return self._refunds

    def set_refunds(self, refunds: Refunds) -> None:
        """Set the refunds of the block; those of transactions that have run may not change."""
        self._refunds = refunds
        self._execution.set_refunds(refunds)

    @property
    def da_footprint(self) -> int:
        return self._execution.da_footprint

    @property
    def blobs(self) -> int:
        return self._execution.blobs

    @property
    def size(self) -> int:
        """The bytes of its transactions."""
        return self._execution.size

    @property
    def count(self) -> int:
        """The number of its transactions."""
        return self._execution.count

    @property
    def open_count(self) -> int:
        """The number of transactions in the index being filled."""
        return self._execution.added

    @property
    def open_edits(self) -> int:
        """How many accounts were set in the index being filled."""
        return len(self._open.edits)

    @property
    def is_empty_index(self) -> bool:
        """True if nothing happened since the last index."""
        has_happened = self.open_count or self._open.edits or self._open.mirrors is not None
        return self.index > 0 and not has_happened

    def run(
        self,
        transactions: Sequence[Transaction] | Sequence[bytes],
        allowance: Allowance | None = None,
    ) -> None:
        """Execute the next transactions, decoded or not.

        Raises `InvalidTransaction` and `OverBudget` with the index of the first that does not run:
        it changes nothing, and those before it are in the block. After `Undecodable` the block must
        be discarded.
        """
        self.reopen()
        if self.refund_gas and self.rules.includes(OptimismFork.LAGOON):
            kinds = [raw[0] if isinstance(raw, bytes) else raw.type for raw in transactions]
            self.set_refunds([*self.refunds, *refund_each(kinds, self.count, self.refund_gas)])
        while True:
            try:
                self._execution.run(transactions, allowance, unsigned=self.takes_unsigned)
            except StateMissing as missing:
                if self._finder is None:
                    raise
                decoded = [each for each in transactions if isinstance(each, Transaction)]
                self._finder.find(missing.misses, decoded)
            else:
                return

    def unknown(self, transactions: Sequence[Transaction], allowance: Allowance) -> MissingKeys:
        """The state that the next transactions read and that is not known here; nothing is changed.

        Raises `OverBudget` where the time of the allowance is over.
        """
        self.reopen()
        return self._overlay.probe(self._env, transactions, allowance)

    @property
    def is_partial(self) -> bool:
        """True if the state below it is known in part."""
        return isinstance(self.roots, NamedRoots)

    @property
    def overlay(self) -> Overlay:
        """The state so far, for reading."""
        return self._overlay

    @property
    def takes_unsigned(self) -> bool:
        """True if transactions may name their senders instead of signing."""
        return self._parent_state.profile.unsigned

    def reopen(self) -> None:
        """Take back the end of the last index, before anything else changes the state."""
        if self._end is not None:
            self._end.take_back()

    def set_account(self, edit: StateEdit) -> None:
        """Set fields of an account, outside any transaction.

        An account that there is not, and of which nothing is set but zeros, is not made.
        """
        self.reopen()
        exists = self.account(edit.address) is not None
        if self._finder is not None:
            for slot, _ in edit.storage:
                self.storage(edit.address, slot)  # what it was is known before it changes
        if exists or edit.balance or edit.nonce or edit.code or edit.storage:
            self._overlay.set(
                edit.address,
                balance=edit.balance,
                nonce=edit.nonce,
                code=edit.code,
                state_diff=dict(edit.storage) or None,
            )
        self._open.edits.append(edit)

    def take_over(self, real: RealIndex, is_local: Callable[[StateKey], bool]) -> None:
        """Add transactions of the real chain with their effects, but for keys that are local.

        Nothing else is in the index that is open, and all that they changed is known.
        """
        self.reopen()
        take_over(self._overlay, real.accounts, is_local)
        self._execution.adopt(
            real.transactions,
            real.receipts,
            gas_before=real.gas_before,
            da_footprint=real.da_footprint,
            blobs=real.blobs,
        )
        self._open.mirrors = real.end

    def account(self, address: bytes) -> Account | None:
        """An account after the last transaction that ran."""
        return self._found(lambda: self._overlay.account(address))

    def storage(self, address: bytes, slot: int) -> int:
        """A slot after the last transaction that ran."""
        return self._found(lambda: self._overlay.storage(address, slot))

    def _found(self, work: Callable[[], T]) -> T:
        """Do work that changes nothing if it misses state; on a fork, that is fetched."""
        while True:
            try:
                return work()
            except StateMissing as missing:
                if self._finder is None:
                    raise
                self._finder.find(missing.misses)

    def close_index(
        self,
        number: int,
        state_root: bytes | None = None,
        withdrawals_root: bytes | None = None,
    ) -> ClosedIndex:
        """Close the index being filled and open the next one.

        `number` is what it will be stored as: new accounts are stored under it. `state_root`
        is shown in its header, as the builder of the block announces it; without one it is
        zero, but for state edits. `withdrawals_root` is what it announces; where it cannot be
        computed here and is not announced, that of the header is zero until it is known.
        """
        place = self.count - self.open_count  # of the first transaction in the index
        transactions, senders, receipts, hashes = self._execution.take()
        if (end := self._end) is not None:
            end.take_back()
            if self._execution.log_count > self._open.before.logs:
                end.keep(receipts)
            has_run = bool(transactions or self._open.edits)
            self._requests_hash = self._found(lambda: end.do(has_run=has_run))
        changes = self._overlay.take(number)
        self.roots.take_in(changes)
        if self.rules.includes(OptimismFork.ISTHMUS):
            if changes.touches(MESSAGE_PASSER):
                self._withdrawals_root = self.roots.storage_root(MESSAGE_PASSER)
            if self._withdrawals_root in {None, ZERO_HASH}:
                self._withdrawals_root = withdrawals_root or ZERO_HASH
        closed, self._knows_root = self._open, False
        root = self._shown_root(has_run=bool(transactions)) if state_root is None else state_root
        header, last = self._header()
        header = header.replace(state_root=root)
        entries = {
            transaction_index_key(each): encode_transaction_entry(self.number, place + at)
            for at, each in enumerate(hashes)
        }
        self._enter_end(last, entries)
        index = ClosedIndex(
            base=self.base,
            payload_id=self.payload_id,
            index=self.index,
            header=header,
            changes=changes,
            transactions=tuple(transactions),
            senders=senders,
            receipts=tuple(receipts),
            before=closed.before,
            entries=entries,
            previous=self._previous(),
            before_end=None if self._end is None else self._end.row,
            edits=tuple(closed.edits),
            mirrors=closed.mirrors,
            post_execution=last,
        )
        self.index += 1
        self._open = _OpenIndex(self._position())
        return index

    def committed(self, partial: int, header: Header) -> None:
        """The index that was closed last is stored as this partial."""
        self.partials = (*self.partials, partial)
        self.empty_indexes = 0
        self.header = header
        if self._knows_root:
            self.roots.add_known(partial, header)
        else:
            self.roots.add(partial, header)

    def committed_quietly(self) -> None:
        """The index that was closed last is stored by its place alone."""
        self.empty_indexes += 1

    def skip_to(self, index: int) -> None:
        """Go on with this index; nothing happened in those before it that are not stored."""
        self.empty_indexes += index - self.index
        self.index = index

    def as_parent(self, sealed: Header, parent_hash: bytes) -> ParentState:
        """The state that the next block begins on if this one ends here.

        Its last index need not be stored. `sealed` is its header, and where the state root
        of that is not known yet, `parent_hash` the hash that the next block names. The next
        block owns the view, and this one may not continue.
        """
        self._overlay.set_block_hash(sealed.number, parent_hash)
        return ParentState(
            profile=self._parent_state.profile,
            parent=sealed,
            parent_rules=self.rules,
            previous=FlashblockId(self.number, self.index - 1),
            view=self._parent_state.view,
            overlay=self._overlay,
            roots=self.roots.following(),
            proven=sealed.hash == parent_hash,
            stacked=self.stacked + 1,
            is_idle=self._end is not None and self._end.is_idle,
            finder=self._finder,
        )

    def close(self) -> None:
        self._parent_state.view.close()

    def _shown_root(self, *, has_run: bool) -> bytes:
        """The state root in the header of the index being closed: that of state edits, or none."""
        if self._open.edits:
            self._knows_root = True
            return self.roots.root_with(self._open.edits)
        if has_run or self.header is None:
            return ZERO_HASH
        return self.header.state_root  # nothing happened since

    def _header(self) -> tuple[Header, PostExecution | None]:
        """The header of the block if it ends here, and the end that refunds need."""
        end = None
        if refunds := self.refunds:
            raw = post_exec_transaction(self.number, refunds).raw
            header, receipt = self._execution.fill_with_end(self.empty, raw)
            end = PostExecution(raw, receipt, self._position())
        else:
            header = self._execution.fill(self.empty)
        header = header.replace(
            withdrawals_root=self._withdrawals_root,
            requests_hash=self._requests_hash,
        )
        if self.rules.includes(OptimismFork.JOVIAN):
            header = header.replace(blob_gas_used=self.da_footprint)
        elif self.blobs:
            header = header.replace(blob_gas_used=self.blobs * GAS_PER_BLOB)
        return header, end

    def _enter_end(self, end: PostExecution | None, entries: dict[bytes, bytes]) -> None:
        """Enter the end into the index of transactions, and take the last one out of it.

        While the block is in progress, both have a place after its transactions.
        """
        if self._end_entry is not None:
            entries[self._end_entry] = encode_transaction_entry(self.number, NO_PLACE)
            self._end_entry = None
        if end is not None:
            self._end_entry = transaction_index_key(keccak256(end.transaction))
            entries[self._end_entry] = encode_transaction_entry(self.number, self.count)

    def _position(self) -> Position:
        """Where its next transaction will stand."""
        return Position(self.count, self.gas_used, self._execution.log_count)

    def _previous(self) -> FlashblockId | None:
        if self.index == 0:
            return self._parent_state.previous
        return FlashblockId(self.number, self.index - 1)
