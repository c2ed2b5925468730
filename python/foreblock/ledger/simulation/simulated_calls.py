"""The calls of a simulated block: their defaults, their checks in order, and their runs.

A failed check refuses the whole simulation; a call that fails is a result. Fees are really
moved from the sender to their recipients. Without validation, a call that offers nothing for
gas pays nothing.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import structs

from foreblock._engine import PlainCalls
from foreblock.errors import (
    DeadlineExceeded,
    InvalidMessage,
    InvalidParams,
    RefusedSimulation,
    Rule,
)
from foreblock.ledger.calls.call import FEE_LIMIT, message
from foreblock.ledger.calls.checks import Reason, check_fields, first_reason
from foreblock.ledger.calls.request import Call
from foreblock.ledger.rules.addresses import checksum_address
from foreblock.ledger.rules.forks import BYZANTIUM
from foreblock.ledger.rules.transaction_types import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE
from foreblock.ledger.simulation.open_block import OpenBlock
from foreblock.ledger.simulation.simulation_request import CallRequest, plain_request
from foreblock.scheduling.steps import Steps, Work

Calls = Sequence[CallRequest] | PlainCalls

LAST_NONCE: Final = 2**64 - 1


def run_at_once(block: OpenBlock, calls: Calls, start: int = 0) -> int:
    """Run plain calls from `start` on; gives the first that needs the checks, or a new slice.

    Without validation the engine runs them for as long as there is nothing to decide: it
    refuses to begin any call that the checks would refuse.
    """
    judged = block.chain.validation or block.rules.ethereum < BYZANTIUM
    if judged or not isinstance(calls, PlainCalls):
        return start
    return block.run_plain(calls, start)


def run_calls(block: OpenBlock, calls: Calls, start: int) -> Steps[None]:
    """Run the calls of a block from `start` on, one after the other, and keep their effects.

    A call at which the engine stopped goes through the checks, which give the right refusal.
    """
    index = start
    while index < len(calls):
        if index and block.chain.pace.is_over():
            yield None
        request = plain_request(calls, index) if isinstance(calls, PlainCalls) else calls[index]
        yield from _run(block, request)
        index = run_at_once(block, calls, index + 1)


def _run(block: OpenBlock, request: CallRequest) -> Steps[None]:
    """Run a call of any kind, if it passes all checks."""
    chain = block.chain
    call, run = _judge(block, request)
    try:
        try:
            pace = chain.pace
            gas = run(timeout_us=pace.timeout_us, step_us=pace.step_us)
        except DeadlineExceeded:
            gas = yield run
    except InvalidMessage as refused:
        _refuse((Rule.OTHER, refused.why), call)
    block.use(gas)
    if block.rules.ethereum < BYZANTIUM:  # receipts hold the state root
        block.body.set_post_state((yield from chain.state_root()))


def _judge(block: OpenBlock, request: CallRequest) -> tuple[Call, Work]:
    """The call with its gas, and its run: after all checks, in their order."""
    chain, base_fee = block.chain, block.context.base_fee
    validation = chain.validation
    _check_kind(block, request.call)
    state_nonce, balance = _account(block, request.call)
    nonce = state_nonce if request.nonce is None else request.nonce
    gas, lowered = _gas(block, request)
    call = structs.replace(request.call, gas=gas)
    if not call.is_plain:
        check_fields(call, chain.profile.chain_id)

    if validation:
        _refuse(_nonce_reason(call, nonce, state_nonce), call)
    _refuse(first_reason(call, block.context, balance, strict=validation), call)
    if call.highest_fee >= FEE_LIMIT:
        _refuse((Rule.OTHER, "fees above 2^128 - 1 are not supported"), call)

    kind = _transaction_type(call, base_fee)
    if kind == BLOB:
        block.use_blobs(len(call.blob_hashes or ()))
    waived = not validation and not (call.fee_cap or call.fee_tip)
    free_blobs = not validation and not call.max_fee_per_blob_gas
    return call, partial(
        block.body.run,
        message(call, base_fee),
        kind,
        nonce,
        env=block.environment(free_blobs=free_blobs and bool(call.blob_hashes)),
        check_base_fee=not waived,
        lowered=lowered,
    )


def _account(block: OpenBlock, call: Call) -> tuple[int, int]:
    """The nonce and the balance of the sender."""
    account = block.chain.overlay.account(call.sender)
    return (0, 0) if account is None else (account.nonce, account.balance)


def _check_kind(block: OpenBlock, call: Call) -> None:
    """Refuse kinds of transactions that no block of this chain can hold."""
    if call.blob_hashes is not None and block.rules.optimism is not None:
        raise InvalidParams("there are no blob transactions on this chain")
    if call.blob_hashes is not None and call.authorizations is not None:
        raise InvalidParams("a transaction has either blobs or authorizations")
    if call.to is None and call.blob_hashes is not None:
        raise InvalidParams("blob transaction of type create")
    if call.to is None and call.authorizations is not None:
        raise InvalidParams("EIP-7702 transaction cannot be used to create contract")


def _gas(block: OpenBlock, request: CallRequest) -> tuple[int, bool]:
    """The gas of a call, and whether it was lowered to what the request has left.

    The engine applies the same rule to the plain calls that it runs by itself.
    """
    left, budget = block.gas_left, block.chain.budget
    gas = left if request.gas is None else request.gas
    if gas > left:
        why = f"block gas limit reached: remaining: {left}, required: {gas}"
        raise RefusedSimulation(Rule.BLOCK_GAS, why)
    return min(gas, budget), gas > budget


def _nonce_reason(call: Call, nonce: int, state_nonce: int) -> Reason | None:
    if nonce == state_nonce < LAST_NONCE:
        return None
    sender = checksum_address(call.sender)
    if nonce > state_nonce:
        why = f"nonce too high: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_HIGH, why
    if nonce < state_nonce:
        why = f"nonce too low: address {sender}, tx: {nonce} state: {state_nonce}"
        return Rule.NONCE_TOO_LOW, why
    return Rule.OTHER, f"nonce has max value: address {sender}, nonce: {nonce}"


def _refuse(reason: Reason | None, call: Call) -> None:
    if reason is not None:
        rule, why = reason
        raise RefusedSimulation(rule, f"err: {why} (supplied gas {call.gas})") from None


def _transaction_type(call: Call, base_fee: int | None) -> int:
    """The type of transaction that a call is shown as, as in geth."""
    if call.gas_price is not None or base_fee is None:
        return LEGACY
    if call.authorizations is not None:
        return SET_CODE
    return DYNAMIC_FEE if call.blob_hashes is None else BLOB
