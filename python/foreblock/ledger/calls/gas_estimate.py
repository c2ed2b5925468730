"""Estimate the gas that a call needs: a search between the gas it used and its maximum.

The gas used is not enough: refunds come at the end, an inner call gets 63/64 of what is left,
and code may read the remaining gas. So the call runs with its maximum, then with a little
more than it used there, which is nearly always enough, and then the range is halved until it
is narrow. The steps are geth's, and so are the results.

Runs are yielded as `Steps`; the scheduler decides where and for how long they run.
"""

from functools import partial
from typing import Final

from msgspec import Struct, structs

from foreblock._engine import Outcome, Overlay, Precompiles, State
from foreblock.errors import RefusedCall
from foreblock.ledger.calls.call import check_fields, overlaid, ready, reason_beside_gas
from foreblock.ledger.calls.request import Call, Overrides
from foreblock.ledger.reading.blocks import BlockContext
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.transaction_rules import TRANSACTION, floor_gas, intrinsic_gas
from foreblock.scheduling.steps import Pace, Steps, paced

CALL_STIPEND: Final = 2_300  # yellow paper: free gas of a call with value
ERROR_RATIO: Final = 0.015  # geth: the tolerated excess of an estimate
OUT_OF_GAS: Final = "out of gas"


def estimate_gas(
    call: Call,
    state: State,
    context: BlockContext,
    overrides: Overrides | None,
    gas_cap: int,
    pace: Pace,
) -> Steps[int | Outcome]:
    """The gas limit that a call needs, or its failure if no limit is enough.

    `call.gas` is 0 if no limit was given. Raises `RefusedOverride`, and `RefusedCall` if it fails a
    check or needs more gas than its limit.
    """
    check_fields(call, context.profile.chain_id)
    large = overrides is not None and overrides.is_large
    apply = partial(overlaid, state, context, overrides)
    overlay, precompiles = (yield apply) if large else apply()
    trial = _GasTrial(call, state, context, overlay, precompiles, offers_turns=large)
    return (yield from paced(_estimate(trial, gas_cap), pace))


def _estimate(trial: "_GasTrial", gas_cap: int) -> Steps[int | Outcome]:
    most = trial.most(gas_cap)
    if trial.is_plain_transfer and (yield from trial.just_enough(TRANSACTION)):
        return TRANSACTION
    trial.check(most)
    outcome = yield from trial.run(most)
    if outcome is None or outcome.halt == OUT_OF_GAS:
        raise RefusedCall(f"gas required exceeds allowance ({most})")
    if outcome.status != "success":
        return outcome
    return (yield from _search(trial, outcome, most))


def _search(trial: "_GasTrial", outcome: Outcome, enough: int) -> Steps[int]:
    """Nearly the minimum that is enough; `outcome` is of a run that succeeded."""
    too_little = outcome.gas_used - 1
    guess = (outcome.max_gas_used + CALL_STIPEND) * 64 // 63
    if guess < enough:
        if (yield from trial.succeeds(guess)):
            enough = guess
        else:
            too_little = guess
    while too_little + 1 < enough and (enough - too_little) / enough >= ERROR_RATIO:
        # Most calls need hardly more than they used, so the middle is moved down.
        middle = min((enough + too_little) // 2, too_little * 2)
        if (yield from trial.succeeds(middle)):
            enough = middle
        else:
            too_little = middle
    return enough


class _GasTrial(Struct, frozen=True, gc=False):
    """One call, run with different amounts of gas."""

    call: Call
    state: State
    context: BlockContext
    overlay: Overlay | None
    precompiles: Precompiles | None
    offers_turns: bool = False  # after each run, as code of megabytes is not stopped in time

    @property
    def balance(self) -> int:
        account = (self.overlay or self.state).account(self.call.sender)
        return 0 if account is None else account.balance

    @property
    def is_plain_transfer(self) -> bool:
        """True if it only moves ether, to an account without code."""
        call = self.call
        return (
            call.to is not None and not call.data and not (self.overlay or self.state).code(call.to)
        )

    @property
    def least(self) -> int:
        """The minimum with which the call begins."""
        call, rules = self.call, self.context.rules
        intrinsic = intrinsic_gas(
            call.data,
            creates=call.to is None,
            accessed=call.accessed,
            authorizations=len(call.authorizations or ()),
            rules=rules,
        )
        return max(intrinsic, floor_gas(call.data, rules))

    def most(self, gas_cap: int) -> int:
        """The limit of the request, or a whole block, and no more than can be paid for."""
        call = self.call
        gas = call.gas if call.gas >= TRANSACTION else self.context.header.gas_limit
        cap = self.context.profile.transaction_gas_cap(self.context.rules)
        if cap is not None:
            gas = min(gas, cap)
        if call.fee_cap:
            gas = min(gas, self._affordable() // call.fee_cap)
        return min(gas, gas_cap)

    def _affordable(self) -> int:
        call, available = self.call, self.balance
        if call.value >= available:
            raise RefusedCall("insufficient funds for transfer")
        available -= call.value
        blobs = GAS_PER_BLOB * len(call.blob_hashes or ()) * (call.max_fee_per_blob_gas or 0)
        if blobs and blobs >= available:
            raise RefusedCall("insufficient funds for gas * price + value")
        return available - blobs

    def check(self, gas: int) -> None:
        """Raise `RefusedCall` for reasons that more gas does not remove."""
        call = structs.replace(self.call, gas=gas)
        reason = reason_beside_gas(call, self.context, self.balance, strict=False)
        if reason is not None:
            raise RefusedCall(f"failed with {gas} gas: {reason[1]}")

    def run(self, gas: int) -> Steps[Outcome | None]:
        """The outcome with this amount of gas; none if the call does not begin."""
        if gas < self.least:
            return None
        call = structs.replace(self.call, gas=gas)
        run = ready(call, self.state, self.context, self.overlay, self.precompiles)
        outcome: Outcome = yield run.here
        if self.offers_turns:
            yield None
        return outcome

    def succeeds(self, gas: int) -> Steps[bool]:
        outcome = yield from self.run(gas)
        return outcome is not None and outcome.status == "success"

    def just_enough(self, gas: int) -> Steps[bool]:
        """True if this amount is enough; a refusal counts as False and is raised later."""
        try:
            return (yield from self.succeeds(gas))
        except RefusedCall:
            return False
