"""eth_sendRawTransaction: a signed transaction on its way to the sequencer.

Decoding and recovering the sender take the longest and are done here, in a worker, so that
the one writer need not. What no pool could ever take is refused here too. Whether the
sender can pay and whether it is the sender's turn are for the pool to judge, and its
reasons come back in its own words.
"""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import (
    OversizedData,
    RejectedTransaction,
    Undecodable,
    UnsupportedType,
    WrongChain,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.params import DECODING, data, explain
from foreblock.methods.submissions import Submissions
from foreblock.types import Transaction, decode_transaction

MAX_SIZE: Final = 128 * 1024  # bytes, as in geth's pool
UNSUPPORTED: Final = (3, 0x7E)  # first bytes of blob transactions, and of deposits: from L1 only


class RawParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_sendRawTransaction."""

    transaction: str | None = None


_decode = Decoder(RawParams).decode


class SendMethods:
    """Methods that send a transaction."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions

    def send_raw_transaction(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """The hash of the transaction, once the pool has it."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, RawParams, 1)
        if params.transaction is None:
            params = explain(raw, RawParams, 1)
        assert params.transaction is not None, "explain refuses a missing one"
        transaction = read_transaction(data(params.transaction, 0), view.profile.chain_id)
        return self._submit(transaction)

    async def _submit(self, transaction: Transaction) -> bytes:
        await self._submissions.submit(transaction.raw, transaction.sender)
        return shapes.data(transaction.hash)


def read_transaction(encoded: bytes, chain_id: int) -> Transaction:
    """The transaction, if any pool of the chain could take it.

    Raises a `PoolRefusal`, or `RejectedTransaction` for what is no transaction.
    """
    if encoded and encoded[0] in UNSUPPORTED:
        raise UnsupportedType(encoded[0])
    if len(encoded) > MAX_SIZE:
        raise OversizedData(len(encoded), MAX_SIZE)
    try:
        transaction = decode_transaction(encoded)
    except Undecodable as failure:
        raise RejectedTransaction(f"transaction cannot be decoded: {failure.why}") from None
    if transaction.chain_id not in (None, chain_id):
        raise WrongChain(transaction.chain_id or 0, chain_id)
    return transaction
