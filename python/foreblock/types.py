"""Values that every part may import: blocks, transactions and flashblocks.

Blocks, transactions and the functions of bytes that make them are the engine's own. Its
operations, such as `Store` and `Overlay`, are not here: they belong to `ledger`.

Flashblocks are what a sequencer announces and a feed carries. They are frozen, and free of
any encoding: JSON, hex and compression belong to `feed`. A field is named as on the wire,
except where the wire's name would mislead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from msgspec import Struct

from foreblock._engine import (
    Account,
    Allowance,
    Block,
    Header,
    Message,
    MissingKeys,
    Transaction,
    address_of,
    decode_block,
    decode_header,
    decode_output,
    decode_transaction,
    decode_transactions,
    deposit_transaction,
    encode_call,
    estimated_compressed_size,
    keccak256,
    public_key,
    revert_reason,
    sign_digest,
    sign_transaction,
    transactions_root,
    unsigned_transaction,
)

__all__ = [
    "Account",
    "Allowance",
    "Base",
    "Block",
    "ClaimedReceipt",
    "Claims",
    "Content",
    "Diff",
    "Flashblock",
    "FlashblockId",
    "Header",
    "Message",
    "MissingKeys",
    "StateEdit",
    "Transaction",
    "Withdrawal",
    "address_of",
    "decode_block",
    "decode_header",
    "decode_output",
    "decode_transaction",
    "decode_transactions",
    "deposit_transaction",
    "encode_call",
    "estimated_compressed_size",
    "keccak256",
    "public_key",
    "revert_reason",
    "sign_digest",
    "sign_transaction",
    "transactions_root",
    "unsigned_transaction",
]

# Its index, the index of the validator, the address, and the amount in gwei (EIP-4895).
Withdrawal: TypeAlias = tuple[int, int, bytes, int]


@dataclass(frozen=True, slots=True)
class Base:
    """The inputs of a block's header that are fixed before its first transaction."""

    parent_hash: bytes  # of the sealed parent
    parent_beacon_block_root: bytes
    prev_randao: bytes
    fee_recipient: bytes
    block_number: int
    gas_limit: int
    timestamp: int  # seconds
    extra_data: bytes
    base_fee_per_gas: int  # wei


@dataclass(frozen=True, slots=True)
class Diff:
    """The additions of a flashblock: its transactions, and the header of its block so far.

    Subblocks do not provide `state_root`, `block_hash` and `withdrawals_root`: these are
    32 zero bytes then. Many flashblocks do not provide `state_root` either.
    """

    state_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    gas_used: int
    block_hash: bytes  # of the partial block, this flashblock included
    transactions: tuple[bytes, ...]  # only those of this flashblock
    withdrawals_root: bytes
    blob_gas_used: int
    post_exec_tx: bytes | None = None  # of the block so far; not part of `transactions`


@dataclass(frozen=True, slots=True)
class FlashblockId:
    """A place in the chain of flashblocks."""

    block_number: int
    index: int


@dataclass(frozen=True, slots=True)
class ClaimedReceipt:
    """A receipt as a sequencer claims it."""

    success: bool
    cumulative_gas_used: int
    logs: tuple[tuple[bytes, tuple[bytes, ...], bytes], ...]  # address, topics, data
    deposit_nonce: int | None


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of a sequencer beside the block, in some dialects; nothing may depend on them."""

    receipts: Mapping[bytes, ClaimedReceipt]  # by hash, of this flashblock's transactions
    balances: Mapping[bytes, int]  # after it, of accounts that its block has changed


@dataclass(frozen=True, slots=True)
class StateEdit:
    """Fields of an account that a user of a dev chain has set; None leaves one unchanged."""

    address: bytes
    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    storage: tuple[tuple[int, int], ...] = ()  # these slots, each once


class Content(Struct, frozen=True):
    """The identity of a flashblock, in whichever form a feed sends it.

    Fields that only some feeds provide are not part of it.
    """

    block_number: int
    payload_id: bytes
    index: int
    base: Base | None
    transactions: tuple[bytes, ...]
    receipts_root: bytes
    logs_bloom: bytes
    gas_used: int
    blob_gas_used: int
    edits: tuple[StateEdit, ...]


@dataclass(frozen=True, slots=True)
class Flashblock:
    """One announcement of a build job."""

    payload_id: bytes  # 8 bytes, the same for all flashblocks of one job
    index: int
    base: Base | None  # with index 0, and only then
    diff: Diff
    block_number: int
    previous: FlashblockId | None  # what it follows, where the sequencer says so
    edits: tuple[StateEdit, ...] = ()  # after its transactions
    # Two announcements that differ in nothing else are the same one.
    claims: Claims | None = field(default=None, compare=False)

    def as_subblock(self) -> "Flashblock":
        """Return this message without the fields that subblocks do not provide."""
        zero = bytes(32)
        diff = replace(self.diff, state_root=zero, block_hash=zero, withdrawals_root=zero)
        return replace(self, diff=diff, previous=None)

    @property
    def content(self) -> Content:
        """Its identity: two messages with equal contents are copies of one."""
        diff = self.diff
        return Content(
            self.block_number,
            self.payload_id,
            self.index,
            self.base,
            diff.transactions,
            diff.receipts_root,
            diff.logs_bloom,
            diff.gas_used,
            diff.blob_gas_used,
            self.edits,
        )
