"""Transactions: decoded, made and signed.

Decoding accepts the one canonical encoding, without a byte missing or left over, and
raises `Undecodable` with the reason for everything else.
"""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Header
from foreblock._engine.evm import Message

@final
class Transaction:
    """A decoded transaction with its sender.

    All types have all attributes. One that the type does not know is None, except where
    said otherwise. Made by `decode_transaction` and `decode_transactions`.
    """

    hash: Final[bytes]  # keccak256 of `raw`
    sender: Final[bytes]  # recovered from the signature; of a deposit, the account it names
    raw: Final[bytes]  # the EIP-2718 encoding it was decoded from
    type: Final[int]  # 0 legacy, 1 access list, 2 dynamic fee, 3 blob, 4 set code, 0x7e deposit
    # None for deposits and for legacy transactions signed without a chain.
    chain_id: Final[int | None]
    nonce: Final[int]  # 0 for deposits, whose nonce is known only when they run
    gas_limit: Final[int]
    to: Final[bytes | None]  # None when a contract is created
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

    def effective_gas_price(self, base_fee_per_gas: int | None) -> int:
        """The price of a unit of gas under this base fee, in wei.

        The price as signed, or base fee and tip up to the maximum. Without a base fee the
        maximum; 0 for deposits.
        """
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
        """An entry with these values; the signature is not checked."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_transaction(
    raw: bytes, *, homestead: bool = True, unsigned: bool = False
) -> Transaction:
    """Decode one EIP-2718 encoding and recover its sender.

    Raises `Undecodable` for anything but a canonical transaction of a known type with a
    signature that has a signer. Only without `homestead` may a legacy signature's s be
    above half the curve order, as in Frontier blocks (EIP-2). With `unsigned`, also one that
    names its sender (`unsigned_transaction`).
    """

def decode_transactions(
    raws: Sequence[bytes],
    threads: int = 0,
    *,
    homestead: bool = True,
    unsigned: bool = False,
    senders: Sequence[bytes] | None = None,
) -> list[Transaction]:
    """Decode many, in their order, with the interpreter released.

    Up to `threads` threads work on it, never more than there are cores, and as many for 0.
    `senders`, one for each transaction, come from an earlier decoding: nothing is recovered
    then, which takes a hundredth of the time. Raises `Undecodable` for the first that cannot
    be decoded, naming its index.
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

def unsigned_transaction(message: Message, chain_id: int, nonce: int) -> Transaction:
    """A message as a transaction of type 2 that names its sender instead of a signature.

    In place of the signature it has an even parity, the sender for r, and 0 for s, which no
    signature has. Chains with Ethereum's rules run it; a sender may have code.
    """

def sign_transaction(
    message: Message, type: int, chain_id: int, nonce: int, secret: bytes
) -> Transaction:
    """A message as a transaction of type 0, 1, 2 or 4, signed with a secret key.

    Its sender is the owner of the key, whatever the message says. `InvalidArgument` for
    another type, a secret that is no key, and a creation of type 4.
    """

def sign_digest(digest: bytes, secret: bytes) -> bytes:
    """The signature of 32 bytes as wallets give it: r, s, and 27 or 28; 65 bytes."""

def public_key(secret: bytes) -> bytes:
    """The compressed public key of a secret key: 33 bytes."""

def address_of(secret: bytes) -> bytes:
    """The account that a secret key controls."""

def estimated_compressed_size(raw: bytes) -> int:
    """An estimate of what a transaction adds to the data an L2 posts, in millionths of a byte.

    L1 fees and the data footprint are computed from it, from Fjord on.
    """
