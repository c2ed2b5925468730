"""Prepare a call, check it and run it. No I/O.

A call runs on the state after a block and in the context of that block, and leaves no trace. The
engine validates it as it begins; only when the engine refuses are the checks made here.

The order of the checks is geth's. It decides which refusal a client sees when several apply. The
texts are geth's, with checksummed addresses and decimal amounts. The sender's code and the gas
limit of a transaction are not checked, because a call is not signed. Simulations check nonces
themselves.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import (
    Authorization,
    Env,
    Message,
    Outcome,
    Overlay,
    Pool,
    Precompiles,
    State,
)
from foreblock.errors import InvalidMessage, RefusedCall, Rule
from foreblock.ledger.calls.request import Call, Overrides
from foreblock.ledger.reading.blocks import BlockContext
from foreblock.ledger.rules.execution import BLOBS_PER_TRANSACTION
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OSAKA, SHANGHAI
from foreblock.ledger.rules.transaction_rules import checksum_address, floor_gas, intrinsic_gas

__all__ = [
    "FEE_LIMIT",
    "Authorization",
    "Call",
    "Outcome",
    "Pool",
    "Run",
    "State",
    "message",
    "overlaid",
    "prepare",
    "ready",
]
# Overrides above a state, and the precompiles that they change.
Overlaid = tuple[Overlay | None, Precompiles | None]
FEE_LIMIT: Final = 1 << 128  # the engine counts fees in 128 bits


class Run(Struct, frozen=True, gc=False):
    """A call that is ready: it can run here, or on a thread of a pool."""

    call: Call
    state: State
    overlay: Overlay | None  # overrides above the state
    context: BlockContext
    env: Env
    message: Message
    precompiles: Precompiles | None

    @property
    def kind(self) -> tuple[int, bytes | None, bytes, bool]:
        """The network, contract and selector, and whether state is overridden."""
        call = self.call
        chain_id = self.context.profile.chain_id
        return chain_id, call.to, call.data[:4], self.overlay is not None

    def here(self, timeout_us: int | None = None, step_us: int | None = None) -> Outcome:
        """Run it on this thread; raises `RefusedCall`, `DeadlineExceeded`."""
        try:
            if self.overlay is None:
                return self.state.call(
                    self.env, self.message, timeout_us=timeout_us, step_us=step_us
                )
            return self.overlay.call(
                self.env,
                self.message,
                precompiles=self.precompiles,
                timeout_us=timeout_us,
                step_us=step_us,
            )
        except InvalidMessage as refused:
            self.check()
            raise self.refused(refused) from None

    def submit(self, pool: Pool, number: int, address: int, timeout_us: int) -> None:
        """Hand it to a pool; raises `RefusedCall`, `PoolFull`."""
        self.check()
        overlay = self.state.overlay() if self.overlay is None else self.overlay
        pool.submit(
            number,
            overlay,
            self.env,
            self.message,
            address=address,
            precompiles=self.precompiles,
            timeout_us=timeout_us,
        )

    def check(self) -> None:
        """Raise `RefusedCall` if the call may not begin."""
        _check(self.call, self.context, self.state, self.overlay)

    def refused(self, refusal: InvalidMessage) -> RefusedCall:
        """A refusal that only the engine makes, worded like the others."""
        return RefusedCall(f"err: {refusal.why} (supplied gas {self.call.gas})")


def prepare(
    call: Call,
    state: State,
    context: BlockContext,
    overrides: Overrides | None,
    **_limits: int | None,
) -> Run:
    """Prepare a call; raises `RefusedOverride`, `RefusedCall`."""
    return ready(call, state, context, *overlaid(state, context, overrides))


def overlaid(
    state: State, context: BlockContext, overrides: Overrides | None, **_limits: int | None
) -> Overlaid:
    """The overrides above a state, if there are any; raises `RefusedOverride`."""
    if overrides is None:
        return None, None
    overlay = state.overlay()
    return overlay, overrides.apply_to(overlay, context.rules.engine_name)


def ready(
    call: Call,
    state: State,
    context: BlockContext,
    overlay: Overlay | None,
    precompiles: Precompiles | None,
) -> Run:
    """Prepare a call on the result of `overlaid`; raises `RefusedCall`."""
    if call.is_plain:
        return Run(call, state, overlay, context, context.unpriced, _plain(call), precompiles)
    check_fields(call, context.profile.chain_id)
    free_gas = call.price(context.base_fee) == 0
    free_blobs = call.blob_hashes is not None and not call.max_fee_per_blob_gas
    env = context.environment(free_gas=free_gas, free_blobs=free_blobs)
    # The engine reads empty lists as absent ones, and no fees above its width.
    _check(call, context, state, overlay)
    if call.highest_fee >= FEE_LIMIT:
        raise RefusedCall(f"err: fees above 2^128 - 1 are not supported (supplied gas {call.gas})")
    return Run(call, state, overlay, context, env, message(call, context.base_fee), precompiles)


def _check(call: Call, context: BlockContext, state: State, overlay: Overlay | None) -> None:
    account = (state if overlay is None else overlay).account(call.sender)
    check(call, context, 0 if account is None else account.balance)


def _plain(call: Call) -> Message:
    return Message(sender=call.sender, to=call.to, value=call.value, data=call.data, gas=call.gas)


def message(call: Call, base_fee: int | None) -> Message:
    """The engine's message of a call, in a block with this base fee."""
    if call.is_plain:
        return _plain(call)
    cap, tip = call.max_fee_per_gas, call.max_priority_fee_per_gas
    if base_fee is None:
        cap = tip = None  # before London these fields have no effect
    elif call.blob_hashes or call.authorizations:
        # Their transactions have the fees of EIP-1559, whatever was given.
        cap, tip = call.fee_cap, call.fee_tip
    return Message(
        sender=call.sender,
        to=call.to,
        value=call.value,
        data=call.data,
        gas=call.gas,
        gas_price=call.gas_price if cap is None and tip is None else None,
        max_fee_per_gas=cap,
        max_priority_fee_per_gas=tip,
        access_list=call.access_list,
        blob_hashes=None if call.blob_hashes is None else list(call.blob_hashes),
        max_fee_per_blob_gas=call.max_fee_per_blob_gas,
        authorization_list=None if call.authorizations is None else list(call.authorizations),
    )


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

    Unless `strict`, a call without a price for gas, or for blob gas, need not meet the fees of the
    block.
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
