"""One call of a simulated block: its defaults, its checks, and what came of it.

A failed check refuses the whole simulation; a call that fails is a result. Fees really
move: the sender pays, and whoever the chain pays is paid. Only a call that offers nothing
for gas pays nothing, unless validation is asked for.
"""

from functools import partial
from typing import Final

from msgspec import Struct, structs

from foreblock._engine import Log, Outcome, Transaction, unsigned_transaction
from foreblock.errors import InvalidMessage, InvalidParams, RefusedSimulation, Rule
from foreblock.ledger.call import FEE_LIMIT, message
from foreblock.ledger.call_checks import Reason, check_fields, reasons
from foreblock.ledger.call_request import Call
from foreblock.ledger.checksum import checksum_address
from foreblock.ledger.execution import BLOB
from foreblock.ledger.simulation.open_block import OpenBlock
from foreblock.ledger.simulation.request import CallRequest
from foreblock.ledger.simulation.steps import Steps

LAST_NONCE: Final = 2**64 - 1

# Types of transactions, EIP-2718.
LEGACY: Final = 0
DYNAMIC_FEE: Final = 2
SET_CODE: Final = 4


class CallResult(Struct, frozen=True):
    """What came of one call."""

    transaction: Transaction
    outcome: Outcome
    logs: tuple[tuple[int, Log], ...]  # with their indices in the block
    gas_lowered: bool  # whether it was given less gas than it could have had in the block


def run_call(block: OpenBlock, request: CallRequest) -> Steps[CallResult]:
    """Run the next call of a block and keep its effects."""
    overlay, around = block.branch.overlay, block.around
    _check_kind(block, request.call)
    account = overlay.account(request.call.sender)
    state_nonce, balance = (0, 0) if account is None else (account.nonce, account.balance)
    nonce = state_nonce if request.nonce is None else request.nonce
    gas, lowered = _gas(block, request)
    call = structs.replace(request.call, gas=gas)
    if not call.is_plain:
        check_fields(call, block.branch.profile.chain_id)

    if block.validation:
        _refuse(_nonce_reason(call, nonce, state_nonce), call)
    _refuse(next(reasons(call, around, balance, strict=block.validation), None), call)
    if call.highest_fee >= FEE_LIMIT:
        _refuse((Rule.OTHER, "fees above 2^128 - 1 are not supported"), call)

    waived = not block.validation and not (call.fee_cap or call.fee_tip)
    free_blobs = not block.validation and not call.max_fee_per_blob_gas
    asked = message(call, around.base_fee)
    try:
        outcome = yield partial(
            overlay.run,
            block.environment(free_blobs=free_blobs and bool(call.blob_hashes)),
            asked,
            check_base_fee=not waived,
            precompiles=block.precompiles,
            trace_transfers=block.trace_transfers,
            next_log_index=block.next_log_index,
        )
    except InvalidMessage as refused:
        _refuse((Rule.OTHER, refused.why), call)
    assert outcome is not None, "only system calls come to nothing"
    kind = _transaction_type(call, around.base_fee)
    transaction = unsigned_transaction(asked, kind, block.branch.profile.chain_id, nonce)
    block.add(transaction, outcome)
    return CallResult(transaction, outcome, tuple(outcome.collected or ()), lowered)


def _check_kind(block: OpenBlock, call: Call) -> None:
    """Kinds of transactions that no block of this chain could hold, whatever its state."""
    if call.blob_hashes is not None and block.rules.optimism is not None:
        raise InvalidParams("there are no blob transactions on this chain")
    if call.blob_hashes is not None and call.authorizations is not None:
        raise InvalidParams("a transaction has either blobs or authorizations")
    if call.to is None and call.blob_hashes is not None:
        raise InvalidParams("blob transaction of type create")
    if call.to is None and call.authorizations is not None:
        raise InvalidParams("EIP-7702 transaction cannot be used to create contract")


def _gas(block: OpenBlock, request: CallRequest) -> tuple[int, bool]:
    """The gas of a call, and whether it was lowered to what the request may still use."""
    left = block.gas_left
    gas = left if request.gas is None else request.gas
    if gas > left:
        why = f"block gas limit reached: remaining: {left}, required: {gas}"
        raise RefusedSimulation(Rule.BLOCK_GAS, why)
    return min(gas, block.budget.left), gas > block.budget.left


def _nonce_reason(call: Call, nonce: int, state_nonce: int) -> Reason | None:
    sender = checksum_address(call.sender)
    if nonce > state_nonce:
        why = f"nonce too high: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_HIGH, why
    if nonce < state_nonce:
        why = f"nonce too low: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_LOW, why
    if nonce == LAST_NONCE:
        return Rule.OTHER, f"nonce has max value: address {sender}, nonce: {nonce}"
    return None


def _refuse(reason: Reason | None, call: Call) -> None:
    if reason is not None:
        rule, why = reason
        raise RefusedSimulation(rule, f"err: {why} (supplied gas {call.gas})") from None


def _transaction_type(call: Call, base_fee: int | None) -> int:
    """The type of transaction that a call is shown as; geth's choice."""
    if call.gas_price is not None or base_fee is None:
        return LEGACY
    if call.authorizations is not None:
        return SET_CODE
    return DYNAMIC_FEE if call.blob_hashes is None else BLOB
