"""Send signed transactions: eth_sendRawTransaction and eth_sendRawTransactionSync (EIP-7966).

Decoding and recovering the sender take the most time, so workers do both and spare the one
writer. They also refuse transactions that no pool could take. The pool decides whether the sender
can pay and whether its nonce is next; its reasons are passed on in its own words.

eth_sendRawTransactionSync waits for the receipt, which comes with the first commit that has it:
at pre-confirmation, or with the block in a sealed view. Each waiting request searches each new
commit (`commit_watch`) and holds neither a view nor a thread meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import Raw

from foreblock.errors import (
    ForeblockError,
    NonceTooLow,
    NonceUsedAboveLatest,
    OversizedData,
    RejectedTransaction,
    Rule,
    SyncTimedOut,
    TooManyWaiting,
    Undecodable,
    UnsupportedType,
    WrongChain,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.transaction_rules import BLOB, DEPOSIT, POST_EXEC, Sent, without_sidecar
from foreblock.methods import shapes
from foreblock.methods.events.commit_watch import CommitWatch
from foreblock.methods.params import Params, data, quantity, reader, refuse
from foreblock.methods.sequencing import Submissions
from foreblock.scheduling.admission import Lease, WorkerBudget
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import DetachedWait
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Settings
from foreblock.types import Transaction, decode_transaction

MAX_SIZE: Final = 128 * 1024  # bytes, as in geth's pool
MAX_BLOB_SIZE: Final = 1024 * 1024  # bytes with its blobs, as in geth's pool
# OP chains have no blobs, deposits come from L1, and sequencers end blocks.
UNSUPPORTED: Final = (BLOB, DEPOSIT, POST_EXEC)


class RawTransactionParams(Params):
    """The arguments of eth_sendRawTransaction."""

    transaction: str


_read_raw = reader(RawTransactionParams)


class SendMethods:
    """Methods that send a transaction."""

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions

    def send_raw_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The hash of the transaction, once the pool has it."""
        params = _read_raw(raw)
        transaction = read_transaction(data(params.transaction, 0), view.profile)
        with explaining(transaction, view.renewed):
            if self._submissions.try_submit(transaction):
                return shapes.write_data(transaction.hash)
        return self._submit(transaction, view.renewed)

    async def _submit(self, transaction: Transaction, renew: "Renew") -> bytes:
        with explaining(transaction, renew):
            await self._submissions.submit(transaction.raw, transaction.sender)
        return shapes.write_data(transaction.hash)


@contextmanager
def explaining(transaction: Transaction, renew: "Renew") -> Iterator[None]:
    """Refuse a nonce that only a pre-confirmed transaction has used with a hint."""
    try:
        yield
    except (RejectedTransaction, NonceTooLow) as refused:
        why = str(refused)
        if why.startswith(Rule.NONCE_TOO_LOW) and _is_unused_at_latest(transaction, renew):
            raise NonceUsedAboveLatest(why) from None
        raise


def _is_unused_at_latest(transaction: Transaction, renew: "Renew") -> bool:
    try:
        view = renew()
    except ForeblockError:
        return False
    try:
        state = view.state(view.resolve("latest"))
        return state.nonce(transaction.sender) <= transaction.nonce
    except ForeblockError:  # the state is not here
        return False
    finally:
        view.close()


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


DECIMAL_DIGITS: Final = 20  # of the largest number of 64 bits

# From a view and the hash of a transaction to its receipt, or null.
FindReceipt = Callable[[LedgerView, bytes], bytes]
# Returns a view of the last commit, which has to be closed.
Renew = Callable[[], LedgerView]
# Submits a transaction and returns its hash.
Submit = Callable[[Renew], Awaitable[bytes]]
Found = tuple[Text, bytes]  # a receipt, and the header lines of its snapshot


class SyncParams(Params):
    """The arguments of eth_sendRawTransactionSync."""

    transaction: str
    timeout: int | str | None = None


_read = reader(SyncParams)


class SyncSendMethods:
    """The method that sends and waits."""

    def __init__(
        self,
        settings: Settings,
        submissions: Submissions,
        find_receipt: FindReceipt,
        budget: WorkerBudget,
        commits: CommitWatch,
    ) -> None:
        self._budget = budget
        self._default_ms = round(settings.sync.timeout * 1_000)
        self._most_ms = round(settings.sync.longest_timeout * 1_000)
        self._submissions = submissions
        self._receipts = AwaitedReceipts(find_receipt, commits)

    def send(self, view: LedgerView, raw: Raw) -> DetachedWait[Text]:
        """The receipt of the transaction, once the chain has it; a timeout is an error."""
        params = _read(raw)
        transaction = read_transaction(data(params.transaction, 0), view.profile)
        return self.sending(view, partial(self._submit, transaction), params.timeout)

    def sending(
        self, view: LedgerView, submit: Submit, timeout: int | str | None
    ) -> DetachedWait[Text]:
        """Submit a transaction and wait for its receipt."""
        timeout_ms = min(_read_timeout(timeout) or self._default_ms, self._most_ms)
        lease = self._budget.long_waits.lease()
        if lease is None:  # before the pool has the transaction
            raise TooManyWaiting(self._budget.long_waits.total)
        return _Sending(submit, self._receipts, view, timeout_ms, lease)

    async def _submit(self, transaction: Transaction, renew: Renew) -> bytes:
        with explaining(transaction, renew):
            await self._submissions.submit(transaction.raw, transaction.sender)
        return transaction.hash


class _Sending(DetachedWait[Text]):
    """A transaction on its way into a block."""

    def __init__(
        self,
        submit: Submit,
        receipts: "AwaitedReceipts",
        view: LedgerView,
        timeout_ms: int,
        lease: Lease,
    ) -> None:
        self._lease: Final = lease  # until this is released
        self._submit: Final = submit
        self._receipts: Final = receipts
        self._renew: Final = view.renewed
        self._timeout_ms: Final = timeout_ms

    def __await__(self) -> Generator[Any, None, Text]:
        in_batch = int(THRESHOLDS.batch_wait_seconds * 1000)
        text, _ = yield from self._send(min(self._timeout_ms, in_batch)).__await__()
        return text

    async def apart(self) -> Found:
        """The receipt, and the snapshot that has it."""
        return await self._send(self._timeout_ms)

    async def _send(self, timeout_ms: int) -> Found:
        transaction_hash = await self._submit(self._renew)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._receipts.wait_for(transaction_hash, self._renew)
        except TimeoutError:
            raise SyncTimedOut(transaction_hash, timeout_ms) from None


class AwaitedReceipts:
    """Receipts that requests wait for, on one network."""

    def __init__(self, find_receipt: FindReceipt, commits: CommitWatch) -> None:
        self._find: Final = find_receipt
        self._commits: Final = commits

    async def wait_for(self, transaction_hash: bytes, renew: Renew) -> Found:
        """Return the receipt of a transaction, once a commit has it."""
        with self._commits.following():
            while True:
                commit, found = self._search(transaction_hash, renew)
                if found is not None:
                    return found
                await self._commits.changed(commit)

    def _search(self, transaction_hash: bytes, renew: Renew) -> tuple[int | None, Found | None]:
        """Return the number of the last commit, and the receipt if the commit has it."""
        try:
            view = renew()
        except ForeblockError:
            return None, None  # the store is away; the timeout ends the wait
        try:
            text = self._find(view, transaction_hash)
            return view.commit, None if text == b"null" else (text, view.headers)
        finally:
            view.close()


def _read_timeout(given: int | str | None) -> int:
    """Milliseconds; a number as the specification has it, or a quantity as libraries send it."""
    if given is None:
        return 0
    if isinstance(given, str):
        if not given.isascii() or not given.isdecimal() or len(given) > DECIMAL_DIGITS:
            return quantity(given, 64, 1)
        given = int(given)
    if not 0 <= given < 1 << 64:
        refuse(1, "", "a timeout is a number of milliseconds of 64 bits")
    return given
