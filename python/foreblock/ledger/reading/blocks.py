"""Blocks as requests name and use them, sealed or in progress, and the heads of one commit.

A block is a value that belongs to no view and can be kept. A sealed one is identified by its hash,
a pre-confirmed one by the number of its partial: (block, index) may come to mean another partial,
a number never does. Costly properties are computed on first use. `view` resolves a name to a
block, and decides whether it may show it.

A call runs *in* the block it names, after its transactions (`BlockContext`). For a call that pays
nothing for gas the base fee reads 0, and likewise for blobs, so that it never pays less than the
block requires (as in geth).

Any request may name `pending`, or pin a flashblock by block and index. `Visibility` is about
requests that do not: which pre-confirmed blocks they find by a transaction's or block's hash, or
by number. It is decided once for each request.

Tests of contracts set a balance on a dev chain and expect it at `latest`, though no block is
mined. So the state of `latest` is then that of the newest index of the block in progress with only
the initial transactions and state edits (`read_through`). A number or a hash still means the
sealed state. If a clock seals blocks and flashblocks are shown, the seal brings the edits to
`latest`.
"""

from functools import cached_property
from typing import Final, Literal

from msgspec import Struct, structs

from foreblock._engine import BlockTemplate, Env, Header, Heads, StateBase, View
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile, RulesEnd
from foreblock.ledger.storage.chain_head import (
    partials_of_sealed,
    read_first_block,
    read_header,
    rules_of,
    with_milliseconds,
)
from foreblock.ledger.storage.dev_rows import read_dev_state
from foreblock.ledger.storage.partial_rows import PartialRow
from foreblock.ledger.storage.partials import EmptyTail, read_partial

# Names of blocks that move with the chain.
Tag = Literal["latest", "pending", "safe", "finalized", "earliest"]
TAGS: Final[dict[str, Tag]] = {
    "latest": "latest",
    "pending": "pending",
    "safe": "safe",
    "finalized": "finalized",
    "earliest": "earliest",
}
KEPT_BLOCKS: Final = 256  # of each kind; at more, all are dropped


class ByHash(Struct, frozen=True):
    """The block of this hash; optionally it must be canonical (EIP-1898)."""

    hash: bytes
    require_canonical: bool = False


class ByIndex(Struct, frozen=True):
    """The partial block of a number that one flashblock made."""

    number: int
    index: int


# A plain number is a block of the chain.
BlockId = Tag | int | ByHash | ByIndex


class BlockContext:
    """Header and rules of a block that calls run in, and the environments of these calls."""

    def __init__(
        self,
        header: Header,
        rules: Rules,
        profile: ChainProfile,
        blob_fee: int | None = None,
    ) -> None:
        self.header: Final = header
        self.rules: Final = rules
        self.profile: Final = profile
        # None before London.
        self.base_fee: Final = header.base_fee_per_gas
        self._blob_fee: Final = blob_fee
        self._priced: Env | None = None
        # The prefix of simulations of this block, once one has made it.
        self.template: BlockTemplate | None = None

    @cached_property
    def blob_fee(self) -> int:
        """The price of a unit of blob gas."""
        if self._blob_fee is not None:
            return self._blob_fee
        blobs = self.profile.blob_parameters(self.header.timestamp)
        return 0 if blobs is None else blob_base_fee(self.header.excess_blob_gas or 0, blobs)

    @cached_property
    def unpriced(self) -> Env:
        """The environment of a call that pays nothing and has no blobs: nearly every call."""
        return self.environment(free_gas=True, free_blobs=False)

    @property
    def priced(self) -> Env:
        """The environment of a call that pays the fees of the block."""
        if self._priced is None:
            self._priced = self.environment(free_gas=False, free_blobs=False)
        return self._priced

    def environment(self, *, free_gas: bool, free_blobs: bool) -> Env:
        header = self.header
        if free_gas and header.base_fee_per_gas is not None:
            header = header.replace(base_fee_per_gas=0)
        blob_fee = 0 if free_blobs else self._blob_fee
        return environment(header, self.rules, self.profile, blob_fee)


class SealedBlock:
    """A block of the chain: its header and derived values."""

    # The partial at which its state is read, if it is not its own: `latest` under state edits.
    read_at: int | None = None

    def __init__(
        self,
        header: Header,
        total_difficulty: int,
        profile: ChainProfile,
        *,
        has_body: bool = True,
    ) -> None:
        self.number: Final = header.number
        self.hash: Final = header.hash
        self.key: Final = header.hash  # in caches
        self.has_body: Final = has_body
        self.header: Final = header
        self.profile: Final = profile
        self.total_difficulty: Final = total_difficulty
        self.merged: Final = profile.merged(total_difficulty - header.difficulty)
        self.rules: Final = rules_of(header, total_difficulty, profile)
        # The context of the block after it, once a simulation has made it.
        self.following: BlockContext | None = None

    @cached_property
    def context(self) -> BlockContext:
        """The context of calls in this block."""
        return BlockContext(self.header, self.rules, self.profile)

    def read_through(self, partial: int) -> "SealedBlock":
        """This block, with its state read at a partial of the next one."""
        block = SealedBlock(
            self.header, self.total_difficulty, self.profile, has_body=self.has_body
        )
        block.read_at = partial
        return block


class PreconfirmedBlock:
    """A block in progress, as of one flashblock; used like a `SealedBlock`."""

    merged: Final = True  # flashblocks exist after the merge only

    def __init__(self, partial: int, row: PartialRow, profile: ChainProfile) -> None:
        header = row.header
        self._row: Final = row
        self.number: Final = header.number
        self.hash: Final = header.hash
        self.key: Final = partial  # in caches
        self.header: Final = header
        self.index: Final = row.index
        self.partial: Final = partial
        self.partials: Final = (*row.before, partial)  # the partials of its block, this the last
        self.received_at_ns: Final = row.received_at_ns  # wall time
        self.profile: Final = profile
        # The least that a merged block has; no rule asks for more.
        self.total_difficulty: Final = profile.terminal_total_difficulty or 0
        self.rules: Final = profile.rules(header.number, header.timestamp, merged=True)
        # The context of the block after it, once a simulation has made it.
        self.following: BlockContext | None = None

    def going_on(self, tail: EmptyTail) -> "PreconfirmedBlock":
        """This block at a later, empty index."""
        row = structs.replace(self._row, index=tail.index, received_at_ns=tail.received_at_ns)
        return PreconfirmedBlock(self.partial, row, self.profile)

    @cached_property
    def context(self) -> BlockContext:
        """The context of calls in this block."""
        return BlockContext(self.header, self.rules, self.profile)


# A block that requests can name.
ReadableBlock = SealedBlock | PreconfirmedBlock


class KnownBlocks:
    """A cache of the blocks of one chain.

    A view must know that it has a block, and may show it, before it asks here.
    """

    def __init__(self, profile: ChainProfile) -> None:
        self._profile: Final = profile
        self._sealed: dict[bytes, SealedBlock] = {}
        self._partial: dict[int, PreconfirmedBlock] = {}

    def sealed(self, view: View, number: int, block_hash: bytes) -> SealedBlock:
        """The sealed block of this number and hash, which the view has."""
        known = self._sealed.get(block_hash)
        if known is None:
            header, total_difficulty = read_header(view, number)
            if self._profile.shares_seconds:
                header = with_milliseconds(view, header, partials_of_sealed(view, number))
            has_body = number >= read_first_block(view).whole
            known = SealedBlock(header, total_difficulty, self._profile, has_body=has_body)
            if len(self._sealed) >= KEPT_BLOCKS:
                self._sealed.clear()
            self._sealed[block_hash] = known
        return known

    def partial(self, view: View, number: int) -> PreconfirmedBlock:
        """The partial block of this number; raises `UnknownPartial`."""
        known = self._partial.get(number)
        if known is None:
            row = read_partial(view, number)
            if self._profile.shares_seconds:
                partials = (*row.before, number)
                row = structs.replace(row, header=with_milliseconds(view, row.header, partials))
            known = PreconfirmedBlock(number, row, self._profile)
            if len(self._partial) >= KEPT_BLOCKS:
                self._partial.clear()
            self._partial[number] = known
        return known


class Snapshot(Struct, frozen=True):
    """The heads of one commit, made once and shared by all views of it.

    It does not depend on the time: each view decides whether the pending block is fresh, and
    after the deadline `expired` replaces the snapshot.
    """

    heads: Heads  # the same object as in views of this commit
    latest: SealedBlock
    pending: PreconfirmedBlock | None
    deadline_ns: int  # monotonic; from then on there is no pending block
    header_line: bytes  # the `Foreblock-Snapshot` header; empty where it is switched off
    trust: str = ""  # in what is known of a partial base
    rules_end: RulesEnd | None = None  # the block at which the known rules end


def make_snapshot(
    heads: Heads,
    latest: SealedBlock,
    pending: PreconfirmedBlock | None,
    deadline_ns: int,
    *,
    announce: bool,
    trust: str = "",
    rules_end: RulesEnd | None = None,
) -> Snapshot:
    """The snapshot of these heads; `trust` is that in what is known of a partial base."""
    line = b""
    if announce:
        text = f"commit={heads.commit}; latest={latest.number:#x}:0x{latest.hash.hex()}"
        if pending is not None:
            text += f"; pending={pending.number:#x}.{pending.index}:0x{pending.hash.hex()}"
        if not heads.base.is_complete:
            text += header_members(heads.base, trust)
        line = f"Foreblock-Snapshot: {text}\r\n".encode()
    return Snapshot(heads, latest, pending, deadline_ns, line, trust, rules_end)


def expired(snapshot: Snapshot) -> Snapshot:
    """The snapshot of the same commit after the deadline."""
    announce = bool(snapshot.header_line)
    return make_snapshot(
        snapshot.heads,
        snapshot.latest,
        None,
        0,
        announce=announce,
        trust=snapshot.trust,
        rules_end=snapshot.rules_end,
    )


def header_members(base: StateBase, trust: str) -> str:
    """The members of the `Foreblock-Snapshot` header about a partial base."""
    return f"; base={base.number:#x}:0x{base.hash.hex()}; trust={trust}"


class Visibility(Struct, frozen=True):
    """The blocks that a view shows although the request has not named them as pending."""

    # Whether transactions, receipts and blocks above `latest` are found by their hashes.
    preconfirmed: bool = True
    # Whether the number of the block in progress means it; otherwise it is not found.
    by_number: bool = False


PRECONFIRMED: Final = Visibility()
SEALED: Final = Visibility(preconfirmed=False)


def read_through(view: View, pending: int, blocks: KnownBlocks) -> int | None:
    """The partial at which the state of `latest` is read, if it is not its own."""
    state = read_dev_state(view)
    if state is None or not state.is_edited:
        return None
    if state.mining in {"clock", "mirror"} and not state.shows_sealed:
        return None
    partials = blocks.partial(view, pending).partials
    begun = blocks.partial(view, partials[0]).header.transactions_root
    # Those without further transactions come first, and most often are all.
    low, high = 0, len(partials) - 1
    while low < high:
        middle = (low + high + 1) // 2 if high - low < len(partials) - 1 else high
        if blocks.partial(view, partials[middle]).header.transactions_root == begun:
            low = middle
        else:
            high = middle - 1
    return partials[low]
