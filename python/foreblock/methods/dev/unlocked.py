"""eth_sendTransaction, eth_signTransaction: transactions that the service signs, or sends unsigned.

What a transaction lacks is filled in as of the block in progress (`pool.filling`), so that
nothing depends on when a block is sealed. One whose gas cannot be estimated, because it fails,
is sent with the gas of a block. Accounts with keys sign; impersonated ones send through a
command without a signature.

Transactions of one account without a nonce are sent one after the other. Where another worker
was quicker with the nonce, the next is used; none replaces another.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Raw, Struct, field, structs

from foreblock.bus.commands import SendUnsigned
from foreblock.errors import (
    InvalidParams,
    PoolRefusal,
    RefusedCall,
    RejectedTransaction,
    TimedOut,
    UnsupportedType,
)
from foreblock.ledger.calls.call import Call, message
from foreblock.ledger.calls.checks import check_fields
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_types import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
)
from foreblock.methods.dev.commanding import Commands, Number, number, word
from foreblock.methods.keys import NO_SIGNER, Keys, is_impersonated
from foreblock.methods.params import Params, address, read_in_turn, reader
from foreblock.methods.pool.filling import MOST_BYTES, FillMethods, check_parts, read_asked
from foreblock.methods.pool.sending import Submissions
from foreblock.methods.pool.sync_sending import Renew, SyncSendMethods
from foreblock.methods.shapes import write_data
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import LongWait, Pace, Steps
from foreblock.types import Transaction, sign_transaction

TRANSFER_GAS: Final = 21_000
BLOCK_START_GAS: Final = 70_000  # op-geth: what the first deposit of a block may use
MOST_GAS: Final = 1 << 24  # EIP-7825; of a transaction whose need is not known
TRIES: Final = 100  # to be the first with a nonce, against other workers
WAIT_SECONDS: Final = 10.0  # for transactions of the same account
# What a pool says of a nonce that another transaction has.
TAKEN: Final = ("nonce too low", "replacement transaction underpriced", "already known")


class _Further(Struct, gc=False):
    """Fields of a transaction that a call does not have."""

    sender: str | None = field(default=None, name="from")
    type: Number | None = None


class FurtherParams(Params):
    """The arguments of eth_sendTransaction."""

    transaction: _Further


class SyncTransactionParams(Params):
    """The arguments of eth_sendTransactionSync."""

    transaction: Raw
    timeout: int | str | None = None


_read_further = reader(FurtherParams)
_read_sync = reader(SyncTransactionParams)


class Prepared(Struct, gc=False):
    """A transaction with gas and fees."""

    call: Call
    type: int
    nonce: int | None  # where the request has one
    chain_id: int
    is_unsigned: bool

    def signed(self, nonce: int, secret: bytes) -> Transaction:
        """The transaction itself."""
        return sign_transaction(message(self.call, 0), self.type, self.chain_id, nonce, secret)


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
        self._sync: Final = sync
        self._scheduler: Final = scheduler
        self._turns: Final = {each: asyncio.Lock() for each in keys.addresses}

    def send(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """The hash of a transaction of one of the accounts, once the pool has it."""
        return self._answer(view, raw, self._send)

    def send_unsigned(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """The same for any account, as if it were impersonated."""
        return self._answer(view, raw, partial(self._send, anybody=True))

    def sign(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """A transaction of one of the accounts, signed and encoded; it is not sent."""
        return self._answer(view, raw, self._sign)

    def send_sync(self, view: LedgerView, raw: Raw) -> LongWait[Text]:
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
                    await self._commands.submit_next(transaction.raw, sender)
                except (RejectedTransaction, PoolRefusal) as refusal:
                    if tried == TRIES or not str(refusal).startswith(TAKEN):
                        raise
                else:
                    break
            return transaction.hash
        finally:
            turn.release()

    async def _send_without_signature(self, prepared: Prepared, *, anybody: bool) -> bytes:
        call = prepared.call
        sent: bytes | str = await self._commands.execute(
            SendUnsigned(
                sender=call.sender,
                to=call.to,
                value=word(call.value),
                data=call.data,
                gas=call.gas,
                nonce=prepared.nonce,
                is_allowed=anybody,
            )
        )
        if isinstance(sent, str):
            raise RejectedTransaction(sent)
        return sent

    async def _prepared(self, view: LedgerView, raw: Raw, *, anybody: bool) -> Prepared:
        if len(raw) > MOST_BYTES:
            raise RefusedCall(
                f"transaction too large: its arguments have {len(raw)} bytes, limit {MOST_BYTES}"
            )
        steps = partial(self._prepare, view, raw, anybody)
        found = self._scheduler.run(steps, view.client)
        return await found if isinstance(found, Awaitable) else found

    def _prepare(self, view: LedgerView, raw: Raw, anybody: bool, pace: Pace) -> Steps[Prepared]:  # noqa: FBT001, bound before
        asked = yield from read_in_turn(read_asked, raw)
        further = _read_further(raw).transaction
        sender = self._sender(further.sender, has_default=not anybody)
        is_unsigned = self._keys.secret(sender) is None
        if is_unsigned and not (anybody or is_impersonated(view, sender)):
            raise InvalidParams(NO_SIGNER)
        call = structs.replace(asked.call, sender=sender)
        kind = _type_of(call, further.type)
        check_parts(call, asked.lists)
        if is_unsigned:
            call = _unpriced(call)
        else:
            call = yield from self._filling.priced(view, call)
            call = _with_fees_of(kind, call, view.resolve("pending").header.base_fee_per_gas)
        gas = asked.gas
        if gas is None:
            gas = yield from self._gas(view, call, pace)
        check_fields(call, view.profile.chain_id)
        call = structs.replace(call, gas=gas)
        return Prepared(call, kind, asked.nonce, view.profile.chain_id, is_unsigned)

    def _sender(self, given: str | None, *, has_default: bool) -> bytes:
        if given is not None:
            return address(given, 0, "$.from")
        if has_default and self._keys.addresses:
            return self._keys.addresses[0]
        raise InvalidParams(NO_SIGNER)

    def _gas(self, view: LedgerView, call: Call, pace: Pace) -> Steps[int]:
        """The gas that it needs, or the most that it may have where it fails."""
        try:
            found = yield from self._filling.estimated(view, call, pace)
        except RefusedCall:
            return _most_gas(view, call)
        return found if isinstance(found, int) else _most_gas(view, call)


def _most_gas(view: LedgerView, call: Call) -> int:
    """The gas of a block, as far as any chain takes it and the sender can pay for it."""
    head = view.resolve("pending")
    most = min(head.header.gas_limit - BLOCK_START_GAS, MOST_GAS)
    if call.fee_cap:
        left = view.state(head).balance(call.sender) - call.value
        most = min(most, left // call.fee_cap)
    return max(most, TRANSFER_GAS)


def _type_of(call: Call, given: Number | None) -> int:
    """The type that the request names, or that follows from its fields."""
    if given is not None:
        kind = number(given, 0, "$.type")
        if kind not in {LEGACY, ACCESS_LIST, DYNAMIC_FEE, SET_CODE}:
            raise UnsupportedType(kind)
        return kind
    if call.blob_hashes is not None:
        raise UnsupportedType(BLOB)
    if call.authorizations is not None:
        return SET_CODE
    if call.gas_price is None:
        return DYNAMIC_FEE
    return LEGACY if call.access_list is None else ACCESS_LIST


def _with_fees_of(kind: int, call: Call, base_fee: int | None) -> Call:
    """The call with one price of gas, where its type has one."""
    if kind not in {LEGACY, ACCESS_LIST} or call.gas_price is not None:
        return call
    price = call.price(base_fee)
    return structs.replace(
        call, gas_price=price, max_fee_per_gas=None, max_priority_fee_per_gas=None
    )


def _unpriced(call: Call) -> Call:
    """What an unsigned transaction can say: it pays no fees and lists nothing."""
    if call.authorizations is not None:
        raise InvalidParams("a transaction without a signature carries no authorizations")
    return Call(call.to, call.gas, call.sender, call.data, call.value, chain_id=call.chain_id)
