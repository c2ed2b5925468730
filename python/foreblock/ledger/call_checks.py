"""What a call must pass before it runs, in the order in which geth looks at it.

The order decides which refusal a client sees when several apply. The texts are geth's,
with checksummed addresses and decimal amounts. Sender's code and the gas limit of one
transaction are not looked at: nobody signed a call. Nonces are for simulations to judge.
"""

from collections.abc import Iterator
from typing import Final

from foreblock.errors import RefusedCall, Rule
from foreblock.ledger.call_request import Call
from foreblock.ledger.checksum import checksum_address
from foreblock.ledger.execution import BLOBS_PER_TRANSACTION
from foreblock.ledger.fees import GAS_PER_BLOB
from foreblock.ledger.forks import EthereumFork
from foreblock.ledger.intrinsic_gas import MAX_INIT_CODE, floor_gas, intrinsic_gas
from foreblock.ledger.surroundings import Surroundings

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


def check(call: Call, around: Surroundings, balance: int) -> None:
    """Raise `RefusedCall` with the first reason there is."""
    for _, why in reasons(call, around, balance, strict=False):
        raise RefusedCall(f"err: {why} (supplied gas {call.gas})")


def reasons(call: Call, around: Surroundings, balance: int, *, strict: bool) -> Iterator[Reason]:
    """Everything that is wrong, in order; made one by one, as only the first is needed.

    Unless `strict`, a call that offers nothing for gas, or for blob gas, need not offer
    what the block asks for.
    """
    yield from reasons_beside_gas(call, around, balance, strict=strict)
    yield from _gas(call, around)


def reasons_beside_gas(
    call: Call, around: Surroundings, balance: int, *, strict: bool
) -> Iterator[Reason]:
    """The same without those that more gas would help against."""
    yield from _fees(call, around, strict=strict)
    yield from _blobs(call, around, strict=strict)
    yield from _authorizations(call)
    yield from _init_code(call, around)
    yield from _funds(call, balance)


def _fees(call: Call, around: Surroundings, *, strict: bool) -> Iterator[Reason]:
    cap, tip = call.fee_cap, call.fee_tip
    if around.base_fee is None or not (cap or tip or strict):
        return
    sender = checksum_address(call.sender)
    if tip > cap:
        why = (
            f"max priority fee per gas higher than max fee per gas: address {sender}, "
            f"maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}"
        )
        yield Rule.TIP, why
    if cap < around.base_fee:
        why = (
            f"max fee per gas less than block base fee: address {sender}, "
            f"maxFeePerGas: {cap}, baseFee: {around.base_fee}"
        )
        yield Rule.BASE_FEE, why


def _blobs(call: Call, around: Surroundings, *, strict: bool) -> Iterator[Reason]:
    hashes = call.blob_hashes
    if hashes is None:
        return
    if call.to is None:
        yield Rule.OTHER, "blob transaction of type create"
    if not hashes:
        yield Rule.OTHER, "blob transaction missing blob hashes"
    if around.rules.ethereum >= EthereumFork.OSAKA and len(hashes) > BLOBS_PER_TRANSACTION:
        yield Rule.OTHER, "blob transaction has too many blobs"
    for index, each in enumerate(hashes):
        if each[0] != BLOB_HASH_VERSION:
            yield Rule.OTHER, f"blob {index} has invalid hash version"
    cap = call.max_fee_per_blob_gas or 0
    if (cap or strict) and cap < around.blob_fee:
        why = (
            "max fee per blob gas less than block blob gas fee: "
            f"address {checksum_address(call.sender)} "
            f"blobGasFeeCap: {cap}, blobBaseFee: {around.blob_fee}"
        )
        yield Rule.OTHER, why


def _authorizations(call: Call) -> Iterator[Reason]:
    if call.authorizations is None:
        return
    if call.to is None:
        yield Rule.OTHER, "EIP-7702 transaction cannot be used to create contract"
    if not call.authorizations:
        yield Rule.OTHER, "EIP-7702 transaction with empty auth list"


def _init_code(call: Call, around: Surroundings) -> Iterator[Reason]:
    limited = call.to is None and around.rules.ethereum >= EthereumFork.SHANGHAI
    if limited and len(call.data) > MAX_INIT_CODE:
        size = len(call.data)
        yield Rule.INIT_CODE, f"max initcode size exceeded: code size {size} limit {MAX_INIT_CODE}"


def _funds(call: Call, balance: int) -> Iterator[Reason]:
    blob_gas = GAS_PER_BLOB * len(call.blob_hashes or ())
    want = call.gas * call.fee_cap + call.value + blob_gas * (call.max_fee_per_blob_gas or 0)
    if balance < want:
        why = (
            "insufficient funds for gas * price + value: "
            f"address {checksum_address(call.sender)} have {balance} want {want}"
        )
        yield Rule.FUNDS, why


def _gas(call: Call, around: Surroundings) -> Iterator[Reason]:
    intrinsic = intrinsic_gas(
        call.data,
        creates=call.to is None,
        access_list=call.access_list,
        authorizations=len(call.authorizations or ()),
        rules=around.rules,
    )
    if call.gas < intrinsic:
        yield Rule.INTRINSIC_GAS, f"intrinsic gas too low: have {call.gas}, want {intrinsic}"
    floor = floor_gas(call.data, around.rules)
    if call.gas < floor:
        why = f"insufficient gas for floor data gas cost: have {call.gas}, want {floor}"
        yield Rule.OTHER, why
