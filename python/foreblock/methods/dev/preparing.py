"""Fill in missing fields of an account's transaction: sender, type, fees and gas.

All is as of the block in progress. One whose gas cannot be estimated, because it fails, gets
the gas of a block. Its nonce is chosen when it is sent (`unlocked`).
"""

from typing import Final

from msgspec import Raw, Struct, field, structs

from foreblock.bus.commands import SendUnsigned
from foreblock.errors import InvalidParams, NoSigner, RefusedCall, UnsupportedType
from foreblock.ledger.calls.call import FEE_LIMIT, Call, check_fields, message
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_rules import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    unsigned_source,
)
from foreblock.methods.dev.commanding import U64, Number, number, word
from foreblock.methods.params import Params, address, read_in_turn, reader
from foreblock.methods.pool.filling import FillMethods, check_parts, read_transaction_request
from foreblock.methods.sequencing import Keys, is_impersonated
from foreblock.scheduling.steps import Pace, Steps, paced
from foreblock.types import (
    Transaction,
    deposit_transaction,
    keccak256,
    sign_transaction,
    unsigned_transaction,
)

TRANSFER_GAS: Final = 21_000
BLOCK_START_GAS: Final = 70_000  # op-geth: gas of the first deposit of a block
MOST_GAS: Final = 1 << 24  # EIP-7825; of a transaction whose need is not known


class _Further(Struct, gc=False):
    """Fields of a transaction that a call does not have."""

    sender: str | None = field(default=None, name="from")
    type: Number | None = None


class FurtherParams(Params):
    """The arguments of eth_sendTransaction."""

    transaction: _Further


_read_further = reader(FurtherParams)


class Prepared(Struct, gc=False):
    """A transaction with gas and fees."""

    call: Call
    type: int
    nonce: int | None  # if the request has one
    chain_id: int
    is_unsigned: bool
    pays: bool = True  # fees; a deposit does not

    def unsigned(self, *, is_allowed: bool) -> SendUnsigned:
        """The command that sends it without a signature."""
        call = self.call
        command = SendUnsigned(
            sender=call.sender,
            to=call.to,
            value=word(call.value),
            data=call.data,
            gas=call.gas,
            nonce=self.nonce,
            is_allowed=is_allowed,
        )
        if not self.pays:
            return command
        made = unsigned_transaction(message(call, 0), self.chain_id, 0)
        return structs.replace(
            command,
            max_fee_per_gas=made.max_fee_per_gas,
            max_priority_fee_per_gas=made.max_priority_fee_per_gas,
            access_list=made.access_list or (),
        )

    def without_signature(self, nonce: int) -> Transaction:
        """The transaction itself, for a sender that does not sign."""
        call = self.call
        if self.pays:
            return unsigned_transaction(message(call, 0), self.chain_id, nonce)
        return deposit_transaction(
            source_hash=unsigned_source(keccak256(call.sender + nonce.to_bytes(8)), nonce),
            sender=call.sender,
            to=call.to,
            mint=0,
            value=call.value,
            gas_limit=call.gas,
            input=call.data,
        )

    def signed(self, nonce: int, secret: bytes) -> Transaction:
        """The transaction itself."""
        return sign_transaction(message(self.call, 0), self.type, self.chain_id, nonce, secret)


class Preparing:
    """Fills in transactions of the accounts."""

    def __init__(self, keys: Keys, filling: FillMethods) -> None:
        self._keys: Final = keys
        self._filling: Final = filling

    def steps(self, view: LedgerView, raw: Raw, anybody: bool, pace: Pace) -> Steps[Prepared]:  # noqa: FBT001, bound before
        """The transaction of the arguments.

        With `anybody`, also of accounts that are not impersonated. Raises `InvalidParams`,
        `RefusedCall`, `UnsupportedType`.
        """
        asked = yield from read_in_turn(read_transaction_request, raw)
        further = _read_further(raw).transaction
        sender = self._sender(further.sender, has_default=not anybody)
        is_unsigned = self._keys.secret(sender) is None
        if is_unsigned and not (anybody or is_impersonated(view, sender)):
            raise NoSigner
        call = structs.replace(asked.call, sender=sender)
        kind = _type_of(call, further.type)
        _check(kind, call)
        check_parts(call, asked.lists)
        pays = view.profile.unsigned or not is_unsigned
        if is_unsigned:
            kind = DYNAMIC_FEE
            _check_unsigned(call)
        if not pays:
            call = _unpriced(call)
        else:
            call = yield from paced(self._priced(view, call), pace)
            call = _with_fees_of(kind, call, view.resolve("pending").header.base_fee_per_gas)
        gas = asked.gas
        if gas is None:
            gas = yield from self._gas(view, call, pace)
        check_fields(call, view.profile.chain_id)
        call = structs.replace(call, gas=gas)
        return Prepared(call, kind, asked.nonce, view.profile.chain_id, is_unsigned, pays)

    def _sender(self, given: str | None, *, has_default: bool) -> bytes:
        if given is not None:
            return address(given, 0, "$.from")
        if has_default and self._keys.addresses:
            return self._keys.addresses[0]
        raise NoSigner

    def _priced(self, view: LedgerView, call: Call) -> Steps[Call]:
        """The call with fees; those that are given stay, also 0 if a block accepts that."""
        given = call.max_fee_per_gas is not None and call.max_priority_fee_per_gas is not None
        if call.gas_price is not None or given:
            return call
        return (yield from self._filling.priced(view, call))

    def _gas(self, view: LedgerView, call: Call, pace: Pace) -> Steps[int]:
        """The gas that it needs, or the most that it may have if it fails."""
        try:
            found = yield from self._filling.estimated(view, call, pace)
        except RefusedCall:
            return _most_gas(view, call)
        return found if isinstance(found, int) else _most_gas(view, call)


def _most_gas(view: LedgerView, call: Call) -> int:
    """The gas of a block, as far as transaction limits and the sender's funds allow.

    A sender that can pay for nothing gets the refusal of the pool.
    """
    head = view.resolve("pending")
    most = min(head.header.gas_limit - BLOCK_START_GAS, MOST_GAS)
    if call.fee_cap:
        left = view.state(head).balance(call.sender) - call.value
        if (affordable := left // call.fee_cap) >= TRANSFER_GAS:
            most = min(most, affordable)
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


def _check(kind: int, call: Call) -> None:
    """Refuse fields that do not form a valid transaction."""
    if kind == SET_CODE and call.to is None:
        raise RefusedCall('missing "to" in set code transaction')
    if call.highest_fee >= FEE_LIMIT:
        raise RefusedCall(f"a fee of {call.highest_fee} wei has more than 128 bits")


def _with_fees_of(kind: int, call: Call, base_fee: int | None) -> Call:
    """The call with one price of gas, where its type has one."""
    if kind not in {LEGACY, ACCESS_LIST} or call.gas_price is not None:
        return call
    price = call.price(base_fee)
    return structs.replace(
        call, gas_price=price, max_fee_per_gas=None, max_priority_fee_per_gas=None
    )


def _check_unsigned(call: Call) -> None:
    if call.authorizations is not None:
        raise InvalidParams("a transaction without a signature carries no authorizations")
    if call.highest_fee > U64:
        raise RefusedCall(f"a fee of {call.highest_fee} wei has more than 64 bits")


def _unpriced(call: Call) -> Call:
    """The fields of a deposit: it pays no fees and has no access list."""
    return Call(call.to, call.gas, call.sender, call.data, call.value, chain_id=call.chain_id)
