"""eth_fillTransaction: fill in what a transaction lacks to be signed.

Missing nonce, gas, fees and chain id are filled in, in the order and with the errors of geth. Gas
and fees are those of the block that new transactions build on: `pending`, or `latest` in a sealed
view. The nonce follows those of all waiting transactions.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct, structs

from foreblock._engine import read_call
from foreblock.errors import RefusedCall
from foreblock.ledger.calls.call import Outcome, check_fields
from foreblock.ledger.calls.gas_estimate import estimate_gas
from foreblock.ledger.calls.request import Call, state_and_context
from foreblock.ledger.reading.transaction_lookup import blob_fees_of, next_base_fee
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.calls.call_methods import UNCAPPED, read_fields, result_of
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.params import Params, read_in_turn, reader
from foreblock.methods.pool.unsigned_transaction import (
    AccessEntry,
    AuthorizationEntry,
    UnsignedTransaction,
    write_access_list,
    write_authorizations,
)
from foreblock.methods.sequencing import Submissions
from foreblock.methods.shapes import write_data
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, paced
from foreblock.settings import Settings

MOST_BLOBS: Final = 6  # geth: of one transaction
# Of the arguments. A pool takes transactions of 128 KiB, which have no more as JSON.
MOST_BYTES: Final = 512 * 1024


class Lists(Struct, rename="camel", gc=False):
    """The parts of a transaction that are copied as they are; the engine has checked them."""

    access_list: list[AccessEntry] | None = None
    authorization_list: list[AuthorizationEntry] | None = None
    blobs: Raw | None = None


class FillParams(Params):
    """The arguments of eth_fillTransaction."""

    transaction: Lists


_read_lists = reader(FillParams)


class TransactionRequest(Struct, gc=False):
    """A transaction as it came."""

    call: Call
    gas: int | None
    nonce: int | None
    lists: Lists


class FillMethods:
    """The method that fills in."""

    def __init__(
        self,
        settings: Settings,
        scheduler: Scheduler,
        submissions: Submissions,
        priority_fees: PriorityFees,
    ) -> None:
        self._unnamed = settings.unnamed_block
        self._gas_cap = settings.call.gas_cap or UNCAPPED
        self._scheduler = scheduler
        self._submissions = submissions
        self._priority_fees = priority_fees

    def fill(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The transaction with what it lacked, as an object and encoded without a signature."""
        if len(raw) > MOST_BYTES:
            raise RefusedCall(
                f"transaction too large: its arguments have {len(raw)} bytes, limit {MOST_BYTES}"
            )
        return self._scheduler.run(partial(self._steps, view, raw), view.client)

    def _steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[bytes]:
        request = yield from read_in_turn(read_transaction_request, raw)
        call = yield from paced(self.priced(view, request.call), pace)
        nonce = self.next_nonce(view, call.sender) if request.nonce is None else request.nonce
        check_parts(call, request.lists)
        gas = request.gas
        if gas is None:
            gas = yield from self._estimated(view, call, pace)
        check_fields(call, view.profile.chain_id)
        lists = request.lists
        accessed = yield from write_access_list(lists.access_list or (), pace)
        authorized = None
        if lists.authorization_list is not None:
            authorized = yield from write_authorizations(lists.authorization_list, pace)
        if accessed.length:
            yield None  # the rest in a slice of its own
        return _answer(
            UnsignedTransaction(
                chain_id=view.profile.chain_id,
                nonce=nonce,
                to=call.to,
                gas=gas,
                value=call.value,
                data=call.data,
                gas_price=call.gas_price,
                max_fee_per_gas=call.max_fee_per_gas,
                max_priority_fee_per_gas=call.max_priority_fee_per_gas,
                access_list=accessed,
                blob_hashes=call.blob_hashes,
                max_fee_per_blob_gas=call.max_fee_per_blob_gas,
                authorizations=authorized,
            )
        )

    def priced(self, view: LedgerView, call: Call) -> Steps[Call]:
        """The call with fees; those that it has are checked as by geth. Knows no pace."""
        head = view.resolve(self._unnamed)
        if call.max_fee_per_blob_gas == 0:
            raise RefusedCall("maxFeePerBlobGas, if specified, must be non-zero")
        if call.blob_hashes is not None and call.max_fee_per_blob_gas is None:
            call = structs.replace(call, max_fee_per_blob_gas=2 * blob_fees_of(head)[0])
        tip, cap = call.max_priority_fee_per_gas, call.max_fee_per_gas
        if call.gas_price is not None:
            check_fields(call, call.chain_id or view.profile.chain_id)
            if call.gas_price == 0 and head.header.base_fee_per_gas is not None:
                raise RefusedCall("gasPrice must be non-zero after london fork")
            return call
        if tip is not None and cap == 0:
            raise RefusedCall("maxFeePerGas must be non-zero")
        base_fee = head.header.base_fee_per_gas
        if base_fee is None:
            return (yield from self._priced_before_london(view, call))
        if tip is None:
            tip = yield from self._priority_fees.suggested(view)
        if cap is None:
            cap = tip + max(2 * base_fee, next_base_fee(view, head))
        if cap < tip:
            raise RefusedCall(f"maxFeePerGas ({cap:#x}) < maxPriorityFeePerGas ({tip:#x})")
        return structs.replace(
            call, is_plain=False, max_fee_per_gas=cap, max_priority_fee_per_gas=tip
        )

    def _priced_before_london(self, view: LedgerView, call: Call) -> Steps[Call]:
        if call.max_fee_per_gas is not None and call.max_priority_fee_per_gas is not None:
            return call
        if call.max_fee_per_gas is not None or call.max_priority_fee_per_gas is not None:
            raise RefusedCall(
                "maxFeePerGas and maxPriorityFeePerGas are not valid before London is active"
            )
        price = yield from self._priority_fees.suggested(view)
        return structs.replace(call, is_plain=False, gas_price=price)

    def next_nonce(self, view: LedgerView, sender: bytes) -> int:
        """The nonce after all transactions of a sender that wait."""
        nonce = view.state(view.resolve("pending")).nonce(sender)
        return max(nonce, self._submissions.next_nonce(sender))

    def estimated(self, view: LedgerView, call: Call, pace: Pace) -> Steps[int | Outcome]:
        """The gas that a call needs, or how it fails; raises `RefusedCall`."""
        # The estimate knows no chain id: a wrong one is refused afterwards.
        call = structs.replace(call, chain_id=None)
        state, context = state_and_context(view, self._unnamed, None)
        return (yield from estimate_gas(call, state, context, None, self._gas_cap, pace))

    def _estimated(self, view: LedgerView, call: Call, pace: Pace) -> Steps[int]:
        found = yield from self.estimated(view, call, pace)
        if not isinstance(found, int):
            result_of(found)
            raise RefusedCall("the gas cannot be estimated")
        return found


def read_transaction_request(raw: Raw) -> TransactionRequest:
    """The transaction of the arguments; raises `InvalidParams`."""
    fields: tuple[Any, ...]
    fields, *_ = read_call(raw, 1, True)  # noqa: FBT003, as declared
    lists = _read_lists(raw).transaction  # refuses further arguments
    return TransactionRequest(read_fields(fields, 0, UNCAPPED), fields[4], fields[5], lists)


def check_parts(call: Call, lists: Lists) -> None:
    """The checks that geth makes between the nonce and the gas."""
    if lists.blobs is not None:
        raise RefusedCall('"blobs" is not supported: name them by blobVersionedHashes')
    if call.blob_hashes is not None:
        if not call.blob_hashes:
            raise RefusedCall("need at least 1 blob for a blob transaction")
        if len(call.blob_hashes) > MOST_BLOBS:
            raise RefusedCall(
                f"too many blobs in transaction (have={len(call.blob_hashes)}, max={MOST_BLOBS})"
            )
    if call.to is None:
        if call.blob_hashes is not None:
            raise RefusedCall('missing "to" in blob transaction')
        if lists.authorization_list is not None:
            raise RefusedCall('missing "to" in set code transaction')
        if not call.data:
            raise RefusedCall("contract creation without any data provided")


def _answer(transaction: UnsignedTransaction) -> bytes:
    encoded = transaction.encode()
    return b'{"raw":%b,"tx":%b}' % (write_data(encoded), transaction.render(encoded))
