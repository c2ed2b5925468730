"""How much gas a call needs to succeed: a search between what it used and what it may have.

Gas used is not enough to ask for: refunds come at the end, a call within a call is given
63 parts of 64, and code may look at what is left. So the call is run at the most it may
have, then at a little more than it used there, which nearly always does, and then the range
is halved until it is narrow. The steps are geth's, and so are the numbers that come of it.

Runs are handed out as `Steps`: whoever drives them decides where they run and for how long.
"""

from functools import partial
from typing import Final

from msgspec import Struct, structs

from foreblock._engine import Outcome, Overlay, Precompiles, State
from foreblock.errors import RefusedCall
from foreblock.ledger.calls.call import overlaid, ready
from foreblock.ledger.calls.checks import check_fields, reason_beside_gas
from foreblock.ledger.calls.request import Call, Overrides
from foreblock.ledger.reading.block_context import Surroundings
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.intrinsic_gas import TRANSACTION, floor_gas, intrinsic_gas
from foreblock.scheduling.steps import Pace, Steps, paced

CALL_STIPEND: Final = 2_300  # yellow paper: what a call with value is given for nothing
ERROR_RATIO: Final = 0.015  # geth: an estimate may be so much above the least
OUT_OF_GAS: Final = "out of gas"


def estimate_gas(
    call: Call,
    state: State,
    around: Surroundings,
    overrides: Overrides | None,
    gas_cap: int,
    pace: Pace,
) -> Steps[int | Outcome]:
    """The gas to give a call, or how it fails whatever it is given.

    `call.gas` is 0 where nobody says how much it may have. Raises `RefusedOverride`, and
    `RefusedCall` where it may not begin or needs more gas than it may have.
    """
    check_fields(call, around.profile.chain_id)
    large = overrides is not None and overrides.is_large
    lay = partial(overlaid, state, around, overrides)
    overlay, precompiles = (yield lay) if large else lay()
    tries = _Tries(call, state, around, overlay, precompiles, offers_turns=large)
    return (yield from paced(_estimate(tries, gas_cap), pace))


def _estimate(tries: "_Tries", gas_cap: int) -> Steps[int | Outcome]:
    most = tries.most(gas_cap)
    if tries.is_plain_transfer and (yield from tries.just_enough(TRANSACTION)):
        return TRANSACTION
    tries.check(most)
    outcome = yield from tries.run(most)
    if outcome is None or outcome.halt == OUT_OF_GAS:
        raise RefusedCall(f"gas required exceeds allowance ({most})")
    if outcome.status != "success":
        return outcome
    return (yield from _search(tries, outcome, most))


def _search(tries: "_Tries", outcome: Outcome, enough: int) -> Steps[int]:
    """The least that is enough, nearly; `outcome` is of a run that had enough."""
    too_little = outcome.gas_used - 1
    guess = (outcome.max_gas_used + CALL_STIPEND) * 64 // 63
    if guess < enough:
        if (yield from tries.succeeds(guess)):
            enough = guess
        else:
            too_little = guess
    while too_little + 1 < enough and (enough - too_little) / enough >= ERROR_RATIO:
        # Most need hardly more than they used, so the middle is looked for below.
        middle = min((enough + too_little) // 2, too_little * 2)
        if (yield from tries.succeeds(middle)):
            enough = middle
        else:
            too_little = middle
    return enough


class _Tries(Struct, frozen=True, gc=False):
    """One call, to be run with this much gas or that."""

    call: Call
    state: State
    around: Surroundings
    overlay: Overlay | None
    precompiles: Precompiles | None
    offers_turns: bool = False  # after each run, as code of megabytes is not stopped in time

    @property
    def balance(self) -> int:
        """What the sender has."""
        account = (self.overlay or self.state).account(self.call.sender)
        return 0 if account is None else account.balance

    @property
    def is_plain_transfer(self) -> bool:
        """Whether it only moves ether, to an account without code."""
        call = self.call
        return (
            call.to is not None and not call.data and not (self.overlay or self.state).code(call.to)
        )

    @property
    def least(self) -> int:
        """Less than this, and it does not even begin."""
        call, rules = self.call, self.around.rules
        intrinsic = intrinsic_gas(
            call.data,
            creates=call.to is None,
            accessed=call.accessed,
            authorizations=len(call.authorizations or ()),
            rules=rules,
        )
        return max(intrinsic, floor_gas(call.data, rules))

    def most(self, gas_cap: int) -> int:
        """What it may have: as asked for, or a whole block, and no more than it can pay for."""
        call = self.call
        gas = call.gas if call.gas >= TRANSACTION else self.around.header.gas_limit
        cap = self.around.rules.transaction_gas_cap
        if cap is not None:
            gas = min(gas, cap)
        if call.fee_cap:
            gas = min(gas, self._affordable() // call.fee_cap)
        return min(gas, gas_cap)

    def _affordable(self) -> int:
        call, available = self.call, self.balance
        if call.value and call.value >= available:
            raise RefusedCall("insufficient funds for transfer")
        available -= call.value
        blobs = GAS_PER_BLOB * len(call.blob_hashes or ()) * (call.max_fee_per_blob_gas or 0)
        if blobs and blobs >= available:
            raise RefusedCall("insufficient funds for gas * price + value")
        return available - blobs

    def check(self, gas: int) -> None:
        """Raise `RefusedCall` for what no amount of gas helps against."""
        call = structs.replace(self.call, gas=gas)
        reason = reason_beside_gas(call, self.around, self.balance, strict=False)
        if reason is not None:
            raise RefusedCall(f"failed with {gas} gas: {reason[1]}")

    def run(self, gas: int) -> Steps[Outcome | None]:
        """How it ends with so much gas; none if it does not begin."""
        if gas < self.least:
            return None
        call = structs.replace(self.call, gas=gas)
        run = ready(call, self.state, self.around, self.overlay, self.precompiles)
        outcome: Outcome = yield run.here
        if self.offers_turns:
            yield None
        return outcome

    def succeeds(self, gas: int) -> Steps[bool]:
        """Whether so much is enough."""
        outcome = yield from self.run(gas)
        return outcome is not None and outcome.status == "success"

    def just_enough(self, gas: int) -> Steps[bool]:
        """The same, where a refusal is left for later."""
        try:
            return (yield from self.succeeds(gas))
        except RefusedCall:
            return False
