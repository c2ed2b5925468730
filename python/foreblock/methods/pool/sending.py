"""eth_sendRawTransaction: decode a signed transaction and hand it to the sequencer.

Decoding and recovering the sender take the most time, so workers do both and spare the one
writer. A transaction that no pool could take is refused here as well. The pool decides whether
the sender can pay and whether its nonce is next; its reasons are passed on in its own words.
"""

from collections.abc import Awaitable
from typing import Final, Protocol

from msgspec import Raw

from foreblock.errors import (
    OversizedData,
    RejectedTransaction,
    SequencerUnavailable,
    Undecodable,
    UnsupportedType,
    WrongChain,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.transaction_rules import BLOB, DEPOSIT, Sent, without_sidecar
from foreblock.methods import shapes
from foreblock.methods.params import Params, data, reader
from foreblock.types import Transaction, decode_transaction

MAX_SIZE: Final = 128 * 1024  # bytes, as in geth's pool
MAX_BLOB_SIZE: Final = 1024 * 1024  # bytes with its blobs, as in geth's pool
UNSUPPORTED: Final = (BLOB, DEPOSIT)  # OP chains have no blobs, and deposits come from L1


class RawTransactionParams(Params):
    """The arguments of eth_sendRawTransaction."""

    transaction: str


_read = reader(RawTransactionParams)


class Submissions(Protocol):
    """The connection to one network's sequencer."""

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Return when the pool has the transaction.

        Raises `RejectedTransaction` with the pool's reason; `SequencerUnavailable` and
        `SequencerBusy` where it is certain that the pool will not have it; and
        `OutcomeUnknown` where it is not.
        """

    def try_submit(self, transaction: Transaction) -> bool:
        """Return whether the pool took the transaction without waiting; otherwise call `submit`.

        Raises the same.
        """

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the sender's transactions in the pool; 0 where nothing is known."""


class NoSequencer:
    """Submissions of a network without a sequencer, such as an imported chain."""

    async def submit(self, raw: bytes, sender: bytes) -> None:  # noqa: ARG002, as in the protocol
        raise SequencerUnavailable

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as in the protocol
        """False: there is no pool."""
        return False

    def next_nonce(self, sender: bytes) -> int:  # noqa: ARG002, as in the protocol
        """0: there is no pool."""
        return 0


class SendMethods:
    """Methods that send a transaction."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions

    def send_raw_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The hash of the transaction, once the pool has it."""
        params = _read(raw)
        transaction = read_transaction(data(params.transaction, 0), view.profile)
        if self._submissions.try_submit(transaction):
            return shapes.write_data(transaction.hash)
        return self._submit(transaction)

    async def _submit(self, transaction: Transaction) -> bytes:
        await self._submissions.submit(transaction.raw, transaction.sender)
        return shapes.write_data(transaction.hash)


def read_transaction(encoded: bytes, profile: ChainProfile) -> Transaction:
    """The transaction, if any pool of the chain could take it.

    Raises a `PoolRefusal`, or `RejectedTransaction` for bytes that are no transaction.
    """
    chain_id = profile.chain_id
    hashes: tuple[bytes, ...] | None = None
    if encoded and encoded[0] == BLOB and profile.blob_schedule:
        encoded, hashes = _without_sidecar(encoded)
    elif encoded and encoded[0] in UNSUPPORTED:
        raise UnsupportedType(encoded[0])
    if len(encoded) > MAX_SIZE:
        raise OversizedData(len(encoded), MAX_SIZE)
    try:
        transaction = decode_transaction(encoded)
    except Undecodable as failure:
        raise RejectedTransaction(f"transaction cannot be decoded: {failure.why}") from None
    if transaction.chain_id not in (None, chain_id):
        raise WrongChain(transaction.chain_id or 0, chain_id)
    if hashes is not None and hashes != transaction.blob_versioned_hashes:
        raise RejectedTransaction("blob hashes are not those of the commitments in the sidecar")
    return transaction


def _without_sidecar(encoded: bytes) -> Sent:
    """A blob transaction as it stands in blocks, and the hashes that its sidecar has."""
    if len(encoded) > MAX_BLOB_SIZE:
        raise OversizedData(len(encoded), MAX_BLOB_SIZE)
    try:
        sent = without_sidecar(encoded)
    except ValueError as wrong:
        raise RejectedTransaction(f"transaction cannot be decoded: {wrong}") from None
    if sent.hashes is None:
        raise RejectedTransaction("missing sidecar in blob transaction")
    return sent
