"""Checks before a call runs, in the order of geth.

The order decides which refusal a client sees when several apply. The texts are geth's, with
checksummed addresses and decimal amounts. The sender's code and the gas limit of a transaction
are not checked, because a call is not signed. Simulations check nonces themselves.
"""

from collections.abc import Sequence
from typing import Final

from foreblock.errors import RefusedCall, Rule
from foreblock.ledger.calls.request import Call
from foreblock.ledger.reading.blocks import BlockContext
from foreblock.ledger.rules.execution import BLOBS_PER_TRANSACTION
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OSAKA, SHANGHAI
from foreblock.ledger.rules.transaction_rules import checksum_address, floor_gas, intrinsic_gas

# A rule that is broken, and how.
Reason = tuple[Rule, str]

BLOB_HASH_VERSION: Final = 1  # EIP-4844, the first byte of a versioned hash


def check_fields(call: Call, chain_id: int) -> None:
    """Raise `RefusedCall` for fields that contradict each other or the chain."""
    priced = call.max_fee_per_gas is not None or call.max_priority_fee_per_gas is not None
    if call.gas_price is not None and priced:
        raise RefusedCall("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    if call.chain_id not in (None, chain_id):
        raise RefusedCall(f"chainId does not match node's (have={call.chain_id}, want={chain_id})")


def check(call: Call, context: BlockContext, balance: int) -> None:
    """Raise `RefusedCall` with the first reason."""
    reason = first_reason(call, context, balance, strict=False)
    if reason is not None:
        raise RefusedCall(f"err: {reason[1]} (supplied gas {call.gas})")


def first_reason(call: Call, context: BlockContext, balance: int, *, strict: bool) -> Reason | None:
    """The reason of the first check that a call fails.

    Unless `strict`, a call that offers nothing for gas, or for blob gas, need not meet the
    fees of the block.
    """
    return reason_beside_gas(call, context, balance, strict=strict) or _gas(call, context)


def reason_beside_gas(
    call: Call, context: BlockContext, balance: int, *, strict: bool
) -> Reason | None:
    """The reason without the checks that more gas would pass."""
    return (
        _fees(call, context, strict=strict)
        or _blobs(call, context, strict=strict)
        or _authorizations(call)
        or _init_code(call, context)
        or _funds(call, balance)
    )


def _fees(call: Call, context: BlockContext, *, strict: bool) -> Reason | None:
    cap, tip, base_fee = call.fee_cap, call.fee_tip, context.base_fee
    if base_fee is None or not (cap or tip or strict):
        return None
    if tip > cap:
        return Rule.TIP, (
            "max priority fee per gas higher than max fee per gas: "
            f"address {checksum_address(call.sender)}, "
            f"maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}"
        )
    if cap < base_fee:
        return Rule.BASE_FEE, (
            "max fee per gas less than block base fee: "
            f"address {checksum_address(call.sender)}, maxFeePerGas: {cap}, baseFee: {base_fee}"
        )
    return None


def _blobs(call: Call, context: BlockContext, *, strict: bool) -> Reason | None:
    if call.blob_hashes is None:
        return None
    return _blob_hashes(call, call.blob_hashes, context) or _blob_fee(call, context, strict=strict)


def _blob_hashes(call: Call, hashes: Sequence[bytes], context: BlockContext) -> Reason | None:
    if call.to is None:
        return Rule.OTHER, "blob transaction of type create"
    if not hashes:
        return Rule.OTHER, "blob transaction missing blob hashes"
    if context.rules.ethereum >= OSAKA and len(hashes) > BLOBS_PER_TRANSACTION:
        return Rule.OTHER, "blob transaction has too many blobs"
    for index, each in enumerate(hashes):
        if each[0] != BLOB_HASH_VERSION:
            return Rule.OTHER, f"blob {index} has invalid hash version"
    return None


def _blob_fee(call: Call, context: BlockContext, *, strict: bool) -> Reason | None:
    cap = call.max_fee_per_blob_gas or 0
    if (cap or strict) and cap < context.blob_fee:
        return Rule.OTHER, (
            "max fee per blob gas less than block blob gas fee: "
            f"address {checksum_address(call.sender)} "
            f"blobGasFeeCap: {cap}, blobBaseFee: {context.blob_fee}"
        )
    return None


def _authorizations(call: Call) -> Reason | None:
    if call.authorizations is None:
        return None
    if call.to is None:
        return Rule.OTHER, "EIP-7702 transaction cannot be used to create contract"
    if not call.authorizations:
        return Rule.OTHER, "EIP-7702 transaction with empty auth list"
    return None


def _init_code(call: Call, context: BlockContext) -> Reason | None:
    size, most = len(call.data), context.profile.init_code_size
    if call.to is not None or size <= most:
        return None
    if context.rules.ethereum < SHANGHAI:
        return None
    return Rule.INIT_CODE, f"max initcode size exceeded: code size {size} limit {most}"


def _funds(call: Call, balance: int) -> Reason | None:
    want = call.gas * call.fee_cap + call.value
    if call.blob_hashes:
        blob_gas = GAS_PER_BLOB * len(call.blob_hashes)
        want += blob_gas * (call.max_fee_per_blob_gas or 0)
    if balance >= want:
        return None
    return Rule.FUNDS, (
        "insufficient funds for gas * price + value: "
        f"address {checksum_address(call.sender)} have {balance} want {want}"
    )


def _gas(call: Call, context: BlockContext) -> Reason | None:
    intrinsic = intrinsic_gas(
        call.data,
        creates=call.to is None,
        accessed=call.accessed,
        authorizations=len(call.authorizations or ()),
        rules=context.rules,
    )
    if call.gas < intrinsic:
        return Rule.INTRINSIC_GAS, f"intrinsic gas too low: have {call.gas}, want {intrinsic}"
    floor = floor_gas(call.data, context.rules)
    if call.gas < floor:
        why = f"insufficient gas for floor data gas cost: have {call.gas}, want {floor}"
        return Rule.OTHER, why
    return None
