"""Headers, blocks and receipts as they are encoded, and the roots over them.

Decoding accepts the one canonical encoding, without a byte missing or left over, and
raises `Undecodable` with the reason for everything else. Objects are immutable, hashable,
equal by value and safe to share between threads. A field that holds a tuple makes it anew
on each access: read it once.
"""

from collections.abc import Sequence
from typing import Final, Self, TypedDict, Unpack, final

class _HeaderFields(TypedDict, total=False):
    parent_hash: bytes
    ommers_hash: bytes
    beneficiary: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    difficulty: int
    number: int
    gas_limit: int
    gas_used: int
    timestamp: int
    extra_data: bytes
    mix_hash: bytes
    nonce: bytes
    base_fee_per_gas: int | None
    withdrawals_root: bytes | None
    blob_gas_used: int | None
    excess_blob_gas: int | None
    parent_beacon_block_root: bytes | None
    requests_hash: bytes | None
    block_access_list_hash: bytes | None
    slot_number: int | None

@final
class Header:
    """A block header with its hash.

    Each fork appended fields and a header shows by their number which it has, so a field
    that is present needs all those before it: `InvalidArgument` otherwise.
    """

    hash: Final[bytes]  # keccak256 of the encoding
    size: Final[int]  # the length of the encoding in bytes
    parent_hash: Final[bytes]
    ommers_hash: Final[bytes]  # `sha3Uncles` of JSON-RPC
    beneficiary: Final[bytes]  # `miner` of JSON-RPC
    state_root: Final[bytes]
    transactions_root: Final[bytes]
    receipts_root: Final[bytes]
    logs_bloom: Final[bytes]  # 256 bytes
    difficulty: Final[int]
    number: Final[int]
    gas_limit: Final[int]
    gas_used: Final[int]
    timestamp: Final[int]  # in seconds
    extra_data: Final[bytes]
    mix_hash: Final[bytes]  # the randao value after the merge
    nonce: Final[bytes]  # 8 bytes, zero after the merge
    base_fee_per_gas: Final[int | None]  # in wei, from London on
    # From Shanghai on; on the L2 from Isthmus on a storage root.
    withdrawals_root: Final[bytes | None]
    # From Cancun on; on the L2 from Jovian on the data availability footprint.
    blob_gas_used: Final[int | None]
    excess_blob_gas: Final[int | None]  # from Cancun on
    parent_beacon_block_root: Final[bytes | None]  # from Cancun on
    requests_hash: Final[bytes | None]  # from Prague on
    block_access_list_hash: Final[bytes | None]  # from Amsterdam on
    slot_number: Final[int | None]  # from Amsterdam on

    def __new__(
        cls,
        *,
        parent_hash: bytes,
        beneficiary: bytes,
        state_root: bytes,
        number: int,
        gas_limit: int,
        timestamp: int,
        ommers_hash: bytes = ...,
        transactions_root: bytes = ...,
        receipts_root: bytes = ...,
        logs_bloom: bytes = ...,
        difficulty: int = 0,
        gas_used: int = 0,
        extra_data: bytes = b"",
        mix_hash: bytes = ...,
        nonce: bytes = ...,
        base_fee_per_gas: int | None = None,
        withdrawals_root: bytes | None = None,
        blob_gas_used: int | None = None,
        excess_blob_gas: int | None = None,
        parent_beacon_block_root: bytes | None = None,
        requests_hash: bytes | None = None,
        block_access_list_hash: bytes | None = None,
        slot_number: int | None = None,
    ) -> Self:
        """A header of these fields.

        The defaults are those of an empty block after the merge: no uncles, transactions,
        receipts or logs, and zeros.
        """
    def replace(self, **fields: Unpack[_HeaderFields]) -> Header:
        """The same header with other values for these fields."""
    def encode(self) -> bytes:
        """The RLP list of the fields: what is hashed."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Withdrawal:
    """A withdrawal from the consensus layer (EIP-4895)."""

    index: Final[int]
    validator_index: Final[int]
    address: Final[bytes]
    amount: Final[int]  # in gwei

    def __new__(cls, index: int, validator_index: int, address: bytes, amount: int) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Block:
    """A block as it is encoded: header, raw transactions, uncles, withdrawals.

    Whether header and body agree is not checked; the functions below compute the roots.
    """

    header: Final[Header]
    hash: Final[bytes]  # the hash of the header
    size: Final[int]  # the length of the encoding in bytes
    transactions: Final[tuple[bytes, ...]]  # EIP-2718 encodings
    uncles: Final[tuple[Header, ...]]
    withdrawals: Final[tuple[Withdrawal, ...] | None]  # None before Shanghai (Canyon on the L2)

    def __new__(
        cls,
        header: Header,
        transactions: Sequence[bytes] = ...,
        uncles: Sequence[Header] = ...,
        withdrawals: Sequence[Withdrawal] | None = None,
    ) -> Self:
        """A block of these parts.

        Raises `Undecodable` for bytes that are no transaction; signatures are not looked at.
        """
    def encode(self) -> bytes:
        """The RLP list of the parts, as in a file of blocks."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Log:
    """A log of a transaction, without its place in the block."""

    address: Final[bytes]
    topics: Final[tuple[bytes, ...]]
    data: Final[bytes]

    def __new__(cls, address: bytes, topics: Sequence[bytes], data: bytes) -> Self:
        """`InvalidArgument` for more than four topics."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Receipt:
    """A receipt as consensus hashes it into a header."""

    status: Final[bool | None]  # whether the transaction succeeded; None before Byzantium
    post_state: Final[bytes | None]  # the state root after the transaction; None from Byzantium on
    cumulative_gas_used: Final[int]  # gas used in the block up to and including this transaction
    logs: Final[tuple[Log, ...]]
    logs_bloom: Final[bytes]  # 256 bytes, computed on each access
    deposit_nonce: Final[int | None]  # the sender's nonce before a deposit ran, from Regolith on
    deposit_receipt_version: Final[int | None]  # 1 for deposits from Canyon on

    def __new__(
        cls,
        *,
        type: int,
        cumulative_gas_used: int,
        status: bool | None = None,
        post_state: bytes | None = None,
        logs: Sequence[Log] = ...,
        deposit_nonce: int | None = None,
        deposit_receipt_version: int | None = None,
    ) -> Self:
        """`InvalidArgument` unless exactly one of `status` and `post_state` is given."""
    def encode(self) -> bytes:
        """The EIP-2718 encoding, as in the receipts trie.

        The two deposit fields are part of it when the type is 0x7e and both are given.
        Before Canyon leave the version out: the nonce is then not hashed, as it was.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_receipt(encoded: bytes) -> Receipt:
    """Decode exactly one receipt as it is in its trie, or raise `Undecodable`."""

def decode_header(encoded: bytes) -> Header:
    """Decode exactly one header, or raise `Undecodable`."""

def decode_block(buffer: bytes, offset: int = 0) -> tuple[Block, int]:
    """Decode the block that starts at `offset`; also returns the offset after it.

    Raises `Undecodable` for garbage, a block that is cut short, and any encoding but the
    canonical one, down to each transaction. Signatures are not looked at. An offset
    beyond the end is `InvalidArgument`; the end itself is an `Undecodable` block.
    """

def transactions_root(raws: Sequence[bytes]) -> bytes:
    """The root of the trie of these EIP-2718 encodings by index."""

def receipts_root(receipts: Sequence[Receipt]) -> bytes:
    """The root of the trie of these receipts by index."""

def withdrawals_root(withdrawals: Sequence[Withdrawal]) -> bytes:
    """The root of the trie of these withdrawals by index."""

def ommers_hash(uncles: Sequence[Header]) -> bytes:
    """keccak256 of the RLP list of these headers."""

def logs_bloom(receipts: Sequence[Receipt]) -> bytes:
    """The bloom of a block with these receipts: 256 bytes."""

def deposit_requests(receipts: Sequence[Receipt], contract: bytes) -> bytes:
    """The data of the block's deposit request, whose type is 0 (EIP-6110).

    It joins the deposits that the contract at this address logged. Raises `Undecodable` for
    a malformed deposit event, which makes the block invalid.
    """

def requests_hash(requests: Sequence[tuple[int, bytes]]) -> bytes:
    """The hash of these requests, each a type and its data (EIP-7685).

    Their order does not matter: they are hashed by ascending type. Those without data do
    not count.
    """

def keccak256(data: bytes) -> bytes: ...
