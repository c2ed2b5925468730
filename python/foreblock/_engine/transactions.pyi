"""Transactions: decoding, creation and signing.

Decoding accepts only the canonical encoding, without missing or trailing bytes, and raises
`Undecodable` with the reason for everything else.
"""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Header
from foreblock._engine.evm import Message

@final
class Transaction:
    """A decoded transaction with its sender.

    All types have all attributes. An attribute that the type does not have is None, unless stated
    otherwise. Created by `decode_transaction` and `decode_transactions`.
    """

    hash: Final[bytes]  # keccak256 of `raw`
    # Recovered from the signature; for a deposit, its `from` field; zero for post-execution.
    sender: Final[bytes]
    raw: Final[bytes]  # the EIP-2718 encoding it was decoded from
    type: Final[int]  # 0 legacy, 1 access list, 2 dynamic fee, 3 blob, 4 set code, 0x7e deposit,
    # 0x7d post-execution
    # None for deposits and for legacy transactions without replay protection.
    chain_id: Final[int | None]
    nonce: Final[int]  # 0 for deposits, whose nonce is only known at execution
    gas_limit: Final[int]
    to: Final[bytes | None]  # None for a contract creation and post-execution
    value: Final[int]  # in wei
    input: Final[bytes]
    gas_price: Final[int | None]  # in wei, as signed: legacy and access list only; 0 for deposits
    max_fee_per_gas: Final[int | None]  # in wei: dynamic fee, blob and set code
    max_priority_fee_per_gas: Final[int | None]  # in wei: dynamic fee, blob and set code
    # Pairs of an address and its storage keys; None for legacy and deposits.
    access_list: Final[tuple[tuple[bytes, tuple[bytes, ...]], ...] | None]
    blob_versioned_hashes: Final[tuple[bytes, ...] | None]  # blob only
    max_fee_per_blob_gas: Final[int | None]  # blob only, wei
    authorization_list: Final[tuple[Authorization, ...] | None]  # set code only
    # Post-execution only: the version, the block number, and the refunds (index and gas), which
    # are known of version 1 only.
    post_exec: Final[tuple[int, int, list[tuple[int, int]]] | None]

    def effective_gas_price(self, base_fee_per_gas: int | None) -> int:
        """The price per gas at this base fee, in wei.

        This is the signed price, or base fee plus tip up to the maximum. Without a base fee it is
        the maximum; 0 for deposits.
        """
    def fragment(self, header: Header, index: int, deposit: tuple[int, int] | None = None) -> bytes:
        """The members of its JSON object in the block of `header`, without braces.

        The block hash is omitted, because that of a block in progress changes with every
        flashblock. `deposit` is a deposit's nonce and its receipt version, if known.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Authorization:
    """One entry of a set-code transaction's authorization list (EIP-7702)."""

    def __new__(
        cls, chain_id: int, address: bytes, nonce: int, y_parity: int, r: int, s: int
    ) -> Self:
        """Create an entry; the signature is not checked."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_transaction(
    raw: bytes, *, homestead: bool = True, unsigned: bool = False
) -> Transaction:
    """Decode one EIP-2718 encoding and recover its sender.

    Recent senders are kept by transaction hash, for all functions that decode transactions.

    Raises `Undecodable` for anything but a canonical transaction of a known type with a valid
    signature. Without `homestead`, the s of a legacy signature may be above half the curve order,
    as in Frontier blocks (EIP-2). With `unsigned`, a transaction that names its sender is accepted
    too (`unsigned_transaction`).
    """

def decode_transactions(
    raws: Sequence[bytes],
    threads: int = 0,
    *,
    homestead: bool = True,
    unsigned: bool = False,
    senders: Sequence[bytes] | None = None,
) -> list[Transaction]:
    """Decode many transactions in order, with the interpreter's lock released.

    Up to `threads` threads are used, at most one per core; 0 means one per core. `senders`, one for
    each transaction, are those of an earlier decoding: recovery is skipped then, which takes a
    hundredth of the time. Raises `Undecodable` for the first that cannot be decoded, with its
    index.
    """

def deposit_transaction(
    *,
    source_hash: bytes,
    sender: bytes,
    to: bytes | None,
    mint: int,
    value: int,
    gas_limit: int,
    input: bytes,
) -> Transaction:
    """Create the deposit with these fields, as in a block of the L2."""

def post_exec_transaction(block_number: int, refunds: Sequence[tuple[int, int]]) -> Transaction:
    """Create the transaction that ends a block with these refunds: index and gas."""

def unsigned_transaction(message: Message, chain_id: int, nonce: int) -> Transaction:
    """Create a transaction of type 2 that names its sender instead of being signed.

    Its signature has an even parity, the sender as r, and 0 as s, which no valid signature has.
    Chains with Ethereum's rules execute it; the sender may have code.
    """

def sign_transaction(
    message: Message, type: int, chain_id: int, nonce: int, secret: bytes
) -> Transaction:
    """Sign a message as a transaction of type 0, 1, 2 or 4.

    The sender is the address of the key, regardless of the message. Raises `InvalidArgument` for
    other types, an invalid key, and a contract creation of type 4.
    """

def sign_digest(digest: bytes, secret: bytes) -> bytes:
    """Sign 32 bytes in the format of wallets: r, s, and 27 or 28; 65 bytes."""

def public_key(secret: bytes) -> bytes:
    """The compressed public key of a secret key: 33 bytes."""

def address_of(secret: bytes) -> bytes:
    """The address of a secret key."""

def estimated_compressed_size(raw: bytes) -> int:
    """Estimate what a transaction adds to the data an L2 posts, in millionths of a byte.

    L1 fees and the data footprint are computed from it, since Fjord.
    """
