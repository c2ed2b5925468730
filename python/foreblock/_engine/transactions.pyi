"""Transactions: decoded, made and signed.

Decoding is exact: what is accepted is the one canonical encoding, without a byte missing
or left over, and everything else is `Undecodable` with the reason.
"""

from collections.abc import Sequence
from typing import Self, final

from foreblock._engine.codec import Header
from foreblock._engine.evm import Message

@final
class Transaction:
    """A decoded transaction with its sender.

    All types have all attributes. One that the type does not know is None, except where
    said otherwise. Made by `decode_transaction` and `decode_transactions`.
    """

    @property
    def hash(self) -> bytes:
        """keccak256 of `raw`."""
    @property
    def sender(self) -> bytes:
        """Recovered from the signature; of a deposit, the account it names."""
    @property
    def raw(self) -> bytes:
        """The EIP-2718 encoding it was decoded from."""
    @property
    def type(self) -> int:
        """0 legacy, 1 access list, 2 dynamic fee, 3 blob, 4 set code, 0x7e deposit."""
    @property
    def chain_id(self) -> int | None:
        """None for deposits and for legacy transactions signed without a chain."""
    @property
    def nonce(self) -> int:
        """0 for deposits, whose nonce is known only when they run."""
    @property
    def gas_limit(self) -> int: ...
    @property
    def to(self) -> bytes | None:
        """None when a contract is created."""
    @property
    def value(self) -> int:
        """In wei."""
    @property
    def input(self) -> bytes: ...
    @property
    def gas_price(self) -> int | None:
        """In wei, as signed: legacy and access list only; 0 for deposits."""
    @property
    def max_fee_per_gas(self) -> int | None:
        """In wei: dynamic fee, blob and set code."""
    @property
    def max_priority_fee_per_gas(self) -> int | None:
        """In wei: dynamic fee, blob and set code."""
    def effective_gas_price(self, base_fee_per_gas: int | None) -> int:
        """What a unit of gas costs under this base fee, in wei.

        The price as signed, or base fee and tip up to the maximum. Without a base fee the
        maximum; 0 for deposits.
        """
    @property
    def access_list(self) -> tuple[tuple[bytes, tuple[bytes, ...]], ...] | None:
        """Pairs of an address and its storage keys; None for legacy and deposits."""
    @property
    def blob_versioned_hashes(self) -> tuple[bytes, ...] | None:
        """Blob only."""
    @property
    def authorization_list(self) -> tuple[Authorization, ...] | None:
        """Set code only."""
    def fragment(self, header: Header, index: int, deposit: tuple[int, int] | None = None) -> bytes:
        """The members of its JSON object in the block of `header`, without braces.

        The block's hash is left out: that of a block in progress changes with every
        flashblock. `deposit` are a deposit's nonce and the version of its receipt, if known.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Authorization:
    """One entry of a set-code transaction's authorization list (EIP-7702)."""

    def __new__(
        cls, chain_id: int, address: bytes, nonce: int, y_parity: int, r: int, s: int
    ) -> Self:
        """An entry with these values, whoever signed it, if anybody did."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_transaction(raw: bytes, *, homestead: bool = True) -> Transaction:
    """Decode one EIP-2718 encoding and recover its sender.

    Raises `Undecodable` for anything but a canonical transaction of a known type with a
    signature that has a signer. Only without `homestead` may a legacy signature's s be
    above half the curve order, as in Frontier blocks (EIP-2).
    """

def decode_transactions(
    raws: Sequence[bytes],
    threads: int = 0,
    *,
    homestead: bool = True,
    senders: Sequence[bytes] | None = None,
) -> list[Transaction]:
    """Decode many, in their order, with the interpreter released.

    Up to `threads` threads work on it, never more than there are cores, and as many for 0.
    `senders`, as many as there are transactions, are whom an earlier decoding found: nothing
    is recovered then, which takes a hundredth of the time. Raises `Undecodable` for the
    first that cannot be decoded, naming its index.
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
    """The deposit with these fields, as it stands in a block of the L2."""

def sign_transaction(
    message: Message, type: int, chain_id: int, nonce: int, secret: bytes
) -> Transaction:
    """A message as a transaction of type 0, 1, 2 or 4, signed with a secret key.

    Its sender is the owner of the key, whatever the message says. `InvalidArgument` for
    another type, a secret that is no key, and a creation of type 4.
    """

def public_key(secret: bytes) -> bytes:
    """The compressed public key of a secret key: 33 bytes."""

def address_of(secret: bytes) -> bytes:
    """The account that a secret key controls."""

def estimated_compressed_size(raw: bytes) -> int:
    """What a transaction adds to the data that an L2 posts, in millionths of a byte.

    The estimate that L1 fees and the data footprint go by from Fjord on.
    """
