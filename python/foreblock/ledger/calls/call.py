"""Prepare a call and run it.

A call runs on the state after a block and in the context of that block, and leaves no trace.
The engine validates it as it begins; only when the engine refuses are the checks of `checks`
made, whose order decides the text of the refusal.
"""

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
from foreblock.errors import InvalidMessage, RefusedCall
from foreblock.ledger.calls.checks import check, check_fields
from foreblock.ledger.calls.request import Call, Overrides
from foreblock.ledger.reading.blocks import BlockContext

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
    return overlay, overrides.lay(overlay, context.rules.engine_name)


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
    # The engine takes empty lists for absent ones, and no fees above its width.
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
        cap = tip = None  # before London these fields mean nothing
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
