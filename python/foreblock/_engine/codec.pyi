"""Headers, blocks and receipts as they are encoded, and the roots over them.

Decoding is exact: what is accepted is the one canonical encoding, without a byte missing
or left over, and everything else is `Undecodable` with the reason. Objects are immutable,
hashable, equal by value and safe to share between threads. Attributes that hold tuples
make them anew on each access: take them once.
"""

from collections.abc import Sequence
from typing import Self, TypedDict, Unpack, final

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

        What is not given is as in an empty block after the merge: no uncles, transactions,
        receipts or logs, and zeros.
        """
    def replace(self, **fields: Unpack[_HeaderFields]) -> Header:
        """The same header with other values for these fields."""
    def encode(self) -> bytes:
        """The RLP list of the fields: what is hashed."""
    @property
    def hash(self) -> bytes:
        """keccak256 of the encoding."""
    @property
    def size(self) -> int:
        """The length of the encoding in bytes."""
    @property
    def parent_hash(self) -> bytes: ...
    @property
    def ommers_hash(self) -> bytes:
        """`sha3Uncles` of JSON-RPC."""
    @property
    def beneficiary(self) -> bytes:
        """`miner` of JSON-RPC."""
    @property
    def state_root(self) -> bytes: ...
    @property
    def transactions_root(self) -> bytes: ...
    @property
    def receipts_root(self) -> bytes: ...
    @property
    def logs_bloom(self) -> bytes:
        """256 bytes."""
    @property
    def difficulty(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def gas_limit(self) -> int: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """In seconds."""
    @property
    def extra_data(self) -> bytes: ...
    @property
    def mix_hash(self) -> bytes:
        """The randao value after the merge."""
    @property
    def nonce(self) -> bytes:
        """8 bytes, zero after the merge."""
    @property
    def base_fee_per_gas(self) -> int | None:
        """In wei, from London on."""
    @property
    def withdrawals_root(self) -> bytes | None:
        """From Shanghai on; on the L2 from Isthmus on a storage root."""
    @property
    def blob_gas_used(self) -> int | None:
        """From Cancun on; on the L2 from Jovian on the data availability footprint."""
    @property
    def excess_blob_gas(self) -> int | None:
        """From Cancun on."""
    @property
    def parent_beacon_block_root(self) -> bytes | None:
        """From Cancun on."""
    @property
    def requests_hash(self) -> bytes | None:
        """From Prague on."""
    @property
    def block_access_list_hash(self) -> bytes | None:
        """From Amsterdam on."""
    @property
    def slot_number(self) -> int | None:
        """From Amsterdam on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Withdrawal:
    """A withdrawal from the consensus layer (EIP-4895)."""

    def __new__(cls, index: int, validator_index: int, address: bytes, amount: int) -> Self: ...
    @property
    def index(self) -> int: ...
    @property
    def validator_index(self) -> int: ...
    @property
    def address(self) -> bytes: ...
    @property
    def amount(self) -> int:
        """In gwei."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Block:
    """A block as it is encoded: header, raw transactions, uncles, withdrawals.

    Whether header and body agree is not checked; the functions below compute the roots.
    """

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
    @property
    def header(self) -> Header: ...
    @property
    def hash(self) -> bytes:
        """The hash of the header."""
    @property
    def size(self) -> int:
        """The length of the encoding in bytes."""
    @property
    def transactions(self) -> tuple[bytes, ...]:
        """EIP-2718 encodings."""
    @property
    def uncles(self) -> tuple[Header, ...]: ...
    @property
    def withdrawals(self) -> tuple[Withdrawal, ...] | None:
        """None before Shanghai (Canyon on the L2)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Log:
    """What a transaction logged: where it stands in the block is not part of it."""

    def __new__(cls, address: bytes, topics: Sequence[bytes], data: bytes) -> Self:
        """`InvalidArgument` for more than four topics."""
    @property
    def address(self) -> bytes: ...
    @property
    def topics(self) -> tuple[bytes, ...]: ...
    @property
    def data(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Receipt:
    """A receipt as consensus sees it: what is hashed into a header."""

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
    @property
    def status(self) -> bool | None:
        """Whether the transaction succeeded; None before Byzantium."""
    @property
    def post_state(self) -> bytes | None:
        """The state root after the transaction; None from Byzantium on."""
    @property
    def cumulative_gas_used(self) -> int:
        """Gas used in the block up to and including this transaction."""
    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def logs_bloom(self) -> bytes:
        """256 bytes, computed on each access."""
    @property
    def deposit_nonce(self) -> int | None:
        """The sender's nonce before a deposit ran, from Regolith on."""
    @property
    def deposit_receipt_version(self) -> int | None:
        """1 for deposits from Canyon on."""
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

    It is the deposits that the contract at this address logged, joined. Raises
    `Undecodable` for a deposit event that is not laid out as it must be, which makes the
    block invalid.
    """

def requests_hash(requests: Sequence[tuple[int, bytes]]) -> bytes:
    """The hash of these requests, each a type and its data (EIP-7685).

    Their order does not matter: they are hashed by ascending type. Those without data do
    not count.
    """

def keccak256(data: bytes) -> bytes: ...
