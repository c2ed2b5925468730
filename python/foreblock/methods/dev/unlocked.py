"""eth_sendTransaction, eth_signTransaction: transactions that the service signs, or sends unsigned.

Missing fields are filled in first (`preparing`). Accounts with keys sign; impersonated ones send
through a command without a signature.

Transactions of one account without a nonce are sent one after the other. Where another worker
was quicker with the nonce, the next is used; none replaces another.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import (
    PoolRefusal,
    RefusedCall,
    RejectedTransaction,
    TimedOut,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.preparing import Prepared, Preparing
from foreblock.methods.dev.signing import SignMethods
from foreblock.methods.params import Params, reader
from foreblock.methods.pool.filling import MOST_BYTES, FillMethods
from foreblock.methods.pool.raw_sending import Renew, SyncSendMethods
from foreblock.methods.sequencing import Commands, Keys, Submissions
from foreblock.methods.shapes import write_data
from foreblock.methods.table import Family, Method
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import DetachedWait, Mapped

TRIES: Final = 100  # to be the first with a nonce, against other workers
WAIT_SECONDS: Final = 5.0  # for transactions of the same account
# The error of a pool for a nonce that is in use.
TAKEN: Final = ("nonce too low", "replacement transaction underpriced", "already known")


class SyncTransactionParams(Params):
    """The arguments of eth_sendTransactionSync."""

    transaction: Raw
    timeout: int | str | None = None


_read_sync = reader(SyncTransactionParams)


class UnlockedMethods:
    """Methods that send and sign transactions of the accounts."""

    def __init__(
        self,
        keys: Keys,
        commands: Commands,
        submissions: Submissions,
        filling: FillMethods,
        sync: SyncSendMethods,
        scheduler: Scheduler,
    ) -> None:
        self._keys: Final = keys
        self._commands: Final = commands
        self._submissions: Final = submissions
        self._filling: Final = filling
        self._preparing: Final = Preparing(keys, filling)
        self._sync: Final = sync
        self._scheduler: Final = scheduler
        self._turns: Final = {each: asyncio.Lock() for each in keys.addresses}

    def send(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The hash of a transaction of one of the accounts, once the pool has it."""
        prepared = self._preparation(view, raw, anybody=False)
        if isinstance(prepared, Awaitable):
            return Mapped(prepared, partial(self._sent, view))
        sent = self._sent_now(view, prepared)
        return self._sent(view, prepared) if sent is None else write_data(sent)

    def send_unsigned(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """The hash of a transaction of any account, as if it were impersonated."""
        return self._answer(view, raw, partial(self._send, anybody=True))

    def sign(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """A transaction of one of the accounts, signed and encoded; it is not sent."""
        return self._answer(view, raw, self._sign)

    def send_sync(self, view: LedgerView, raw: Raw) -> DetachedWait[Text]:
        """The receipt of a transaction of one of the accounts, once the chain has it."""
        params = _read_sync(raw)
        alone = Raw(b"[%b]" % bytes(params.transaction))
        return self._sync.sending(view, partial(self._send_later, alone), params.timeout)

    async def _answer(
        self, view: LedgerView, raw: Raw, act: Callable[[LedgerView, Raw], Awaitable[bytes]]
    ) -> bytes:
        return write_data(await act(view, raw))

    async def _send_later(self, raw: Raw, renew: Renew) -> bytes:
        """Send it as of now: the view of the request may be closed already."""
        view = renew()
        try:
            return await self._send(view, raw)
        finally:
            view.close()

    async def _sign(self, view: LedgerView, raw: Raw) -> bytes:
        prepared = await self._prepared(view, raw, anybody=False)
        sender = prepared.call.sender
        secret = self._keys.required(sender)
        nonce = prepared.nonce
        if nonce is None:
            nonce = self._filling.next_nonce(view, sender)
        return prepared.signed(nonce, secret).raw

    async def _send(self, view: LedgerView, raw: Raw, *, anybody: bool = False) -> bytes:
        prepared = await self._prepared(view, raw, anybody=anybody)
        return await self._send_prepared(view, prepared, anybody=anybody)

    async def _sent(self, view: LedgerView, prepared: Prepared) -> bytes:
        return write_data(await self._send_prepared(view, prepared))

    def _sent_now(self, view: LedgerView, prepared: Prepared) -> bytes | None:
        """The hash of a transaction that could be sent without waiting."""
        sender = prepared.call.sender
        if prepared.is_unsigned or prepared.nonce is not None or self._turns[sender].locked():
            return None
        secret = self._keys.required(sender)
        transaction = prepared.signed(self._filling.next_nonce(view, sender), secret)
        try:
            return transaction.hash if self._commands.try_submit_next(transaction) else None
        except (RejectedTransaction, PoolRefusal) as refusal:
            if not str(refusal).startswith(TAKEN):
                raise
            return None  # the next nonce is tried

    async def _send_prepared(
        self, view: LedgerView, prepared: Prepared, *, anybody: bool = False
    ) -> bytes:
        if prepared.is_unsigned:
            return await self._send_without_signature(prepared, anybody=anybody)
        secret = self._keys.required(prepared.call.sender)
        if prepared.nonce is None:
            return await self._send_next(view, prepared, secret)
        transaction = prepared.signed(prepared.nonce, secret)
        await self._submissions.submit(transaction.raw, transaction.sender)
        return transaction.hash

    async def _send_next(self, view: LedgerView, prepared: Prepared, secret: bytes) -> bytes:
        """Send it with the next nonce of its account."""
        sender = prepared.call.sender
        turn = self._turns[sender]
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise TimedOut(int(WAIT_SECONDS * 1000)) from None
        try:
            for tried in range(1, TRIES + 1):
                transaction = prepared.signed(self._filling.next_nonce(view, sender), secret)
                try:
                    await self._commands.submit_next(transaction)
                except (RejectedTransaction, PoolRefusal) as refusal:
                    if tried == TRIES or not str(refusal).startswith(TAKEN):
                        raise
                else:
                    break
            return transaction.hash
        finally:
            turn.release()

    async def _send_without_signature(self, prepared: Prepared, *, anybody: bool) -> bytes:
        command = prepared.unsigned(is_allowed=anybody)
        sent: bytes | str = await self._commands.execute(command)
        if isinstance(sent, str):
            raise RejectedTransaction(sent)
        return sent

    async def _prepared(self, view: LedgerView, raw: Raw, *, anybody: bool) -> Prepared:
        found = self._preparation(view, raw, anybody=anybody)
        return await found if isinstance(found, Awaitable) else found

    def _preparation(
        self, view: LedgerView, raw: Raw, *, anybody: bool
    ) -> Prepared | Awaitable[Prepared]:
        if len(raw) > MOST_BYTES:
            raise RefusedCall(
                f"transaction too large: its arguments have {len(raw)} bytes, limit {MOST_BYTES}"
            )
        steps = partial(self._preparing.steps, view, raw, anybody)
        return self._scheduler.run(steps, view.client)


def sending_family(unlocked: UnlockedMethods, signing: SignMethods) -> Family:
    return Family(
        "Development chains: sending and signing",
        (
            Method(
                "eth_sendTransaction(transaction: Call) -> Hash",
                unlocked.send,
                ("wallet_sendTransaction",),
            ),
            Method(
                "eth_sendTransactionSync(transaction: Call, timeout?: Milliseconds) -> Receipt",
                unlocked.send_sync,
            ),
            Method("eth_signTransaction(transaction: Call) -> Data", unlocked.sign),
            Method("eth_sign(address: Address, data: Data) -> Data", signing.sign),
            Method("personal_sign(data: Data, address: Address) -> Data", signing.personal_sign),
            Method(
                "eth_signTypedData_v4(address: Address, typedData: TypedData) -> Data",
                signing.sign_typed_data,
                ("eth_signTypedData", "eth_signTypedData_v3"),
            ),
        ),
    )
