"""Headers, blocks and receipts in their encoding, and their roots.

Decoding accepts only the canonical encoding, without missing or trailing bytes, and raises
`Undecodable` with the reason for everything else. Objects are immutable, hashable, equal by value
and safe to share between threads. An attribute that is a tuple is created on each access: read it
once.
"""

from collections.abc import Sequence
from typing import Final, Self, TypeAlias, TypedDict, Unpack, final

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

    Each fork appended fields, and their number alone determines which are present. A field
    therefore requires all fields before it: `InvalidArgument` otherwise.
    """

    hash: Final[bytes]  # keccak256 of the encoding
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
    base_fee_per_gas: Final[int | None]  # in wei, since London
    # Since Shanghai; on the L2 a storage root since Isthmus.
    withdrawals_root: Final[bytes | None]
    # Since Cancun; on the L2 the data availability footprint since Jovian.
    blob_gas_used: Final[int | None]
    excess_blob_gas: Final[int | None]  # since Cancun
    parent_beacon_block_root: Final[bytes | None]  # since Cancun
    requests_hash: Final[bytes | None]  # since Prague
    block_access_list_hash: Final[bytes | None]  # since Amsterdam
    slot_number: Final[int | None]  # since Amsterdam

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
        """Create a header from its fields.

        The defaults are those of an empty block after the merge: no uncles, transactions, receipts
        or logs, and zeros.
        """
    timestamp_ms: Final[int | None]  # in milliseconds, if `with_milliseconds` set the part

    def with_milliseconds(self, milliseconds: int | None) -> Header:
        """A copy that knows the part of a second of its time, which is in the block's body.

        It is neither encoded nor compared, and `replace` drops it.
        """
    def replace(self, **fields: Unpack[_HeaderFields]) -> Header:
        """A copy of this header with these fields replaced."""
    def encode(self) -> bytes:
        """The RLP list of the fields, which is hashed."""
    def members(self, size: int | None = None) -> bytes:
        """The members of a block object that come from its header, without braces.

        `size` is that of the whole block; a header by itself has none.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# Its index, the index of the validator, the address, and the amount in gwei (EIP-4895).
_Withdrawal: TypeAlias = tuple[int, int, bytes, int]

@final
class Block:
    """A block: header, raw transactions, uncles, withdrawals.

    Consistency of header and body is not checked; the functions below compute the roots.
    """

    header: Final[Header]
    hash: Final[bytes]  # the hash of the header
    size: Final[int]  # the length of the encoding in bytes
    transactions: Final[tuple[bytes, ...]]  # EIP-2718 encodings
    uncles: Final[tuple[Header, ...]]
    withdrawals: Final[tuple[_Withdrawal, ...] | None]  # None before Shanghai (Canyon on the L2)

    def __new__(
        cls,
        header: Header,
        transactions: Sequence[bytes] = ...,
        uncles: Sequence[Header] = ...,
        withdrawals: Sequence[_Withdrawal] | None = None,
    ) -> Self:
        """Create a block from its parts.

        Raises `Undecodable` for bytes that are not a transaction; signatures are not checked.
        """
    def encode(self) -> bytes:
        """The RLP list of the parts, as in a block file."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# Address, topics, and data.
_Log: TypeAlias = tuple[bytes, tuple[bytes, ...], bytes]

@final
class Receipt:
    """A receipt in consensus encoding, as hashed into a header."""

    status: Final[bool | None]  # True if the transaction succeeded; None before Byzantium
    post_state: Final[bytes | None]  # the state root after the transaction; None since Byzantium
    cumulative_gas_used: Final[int]  # gas used in the block up to and including this transaction
    logs: Final[tuple[_Log, ...]]
    deposit_nonce: Final[int | None]  # the sender's nonce before a deposit, since Regolith
    deposit_receipt_version: Final[int | None]  # 1 for deposits since Canyon

    def __new__(
        cls,
        *,
        type: int,
        cumulative_gas_used: int,
        status: bool | None = None,
        post_state: bytes | None = None,
        logs: Sequence[tuple[bytes, Sequence[bytes], bytes]] = ...,
        deposit_nonce: int | None = None,
        deposit_receipt_version: int | None = None,
    ) -> Self:
        """Raises `InvalidArgument` unless exactly one of `status` and `post_state` is given.

        A log has at most four topics.
        """
    def encode(self) -> bytes:
        """The EIP-2718 encoding, as in the receipt trie.

        The two deposit fields are included if the type is 0x7e and both are given. Before Canyon,
        omit the version: the nonce is then not hashed, as required.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_receipt(encoded: bytes) -> Receipt:
    """Decode exactly one receipt in its trie encoding, or raise `Undecodable`."""

def decode_header(encoded: bytes) -> Header:
    """Decode exactly one header, or raise `Undecodable`."""

def decode_block(buffer: bytes, offset: int = 0) -> tuple[Block, int]:
    """Decode the block that starts at `offset`; also return the offset after it.

    Raises `Undecodable` for invalid or truncated data, and for any encoding but the canonical one,
    including each transaction. Signatures are not checked. An offset beyond the end raises
    `InvalidArgument`; the end itself raises `Undecodable`.
    """

def transactions_root(raws: Sequence[bytes]) -> bytes:
    """The trie root by index of these EIP-2718 encodings, of transactions or receipts."""

def withdrawals_root(withdrawals: Sequence[_Withdrawal]) -> bytes:
    """The trie root of these withdrawals by index."""

def ommers_hash(uncles: Sequence[Header]) -> bytes:
    """keccak256 of the RLP list of these headers."""

def logs_bloom(receipts: Sequence[Receipt]) -> bytes:
    """The bloom of a block with these receipts: 256 bytes."""

def deposit_requests(receipts: Sequence[bytes], contract: bytes) -> bytes:
    """The data of the block's deposit request, whose type is 0 (EIP-6110), from encoded receipts.

    These are the concatenated deposits logged by the contract at this address. Raises `Undecodable`
    for a malformed deposit event, which makes the block invalid.
    """

def requests_hash(requests: Sequence[tuple[int, bytes]]) -> bytes:
    """The hash of these requests, each a type and its data (EIP-7685).

    Their order does not matter: they are hashed by ascending type. Requests without data are
    skipped.
    """

def keccak256(data: bytes) -> bytes: ...
