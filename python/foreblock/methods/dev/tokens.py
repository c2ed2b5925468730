"""anvil_dealERC20 and anvil_setERC20Allowance: what a token says of an account, set by hand.

The slot is found by trial (`find_slot`), and then set as anvil_setStorageAt does. A token
that computes its balances from several words has no such slot, and is refused.
"""

from collections.abc import Awaitable
from functools import partial
from inspect import isawaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import SetAccount
from foreblock.errors import RefusedCommand
from foreblock.ledger.calls.request import Call
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.traces import TraceBounds, find_slot
from foreblock.methods.calls.call_methods import UNCAPPED
from foreblock.methods.dev.commanding import U256, Commands, Number, number, word
from foreblock.methods.options import Options
from foreblock.methods.params import Params, address, reader
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps

BALANCE_OF: Final = bytes.fromhex("70a08231")
ALLOWANCE: Final = bytes.fromhex("dd62ed3e")


class DealParams(Params):
    """The arguments of anvil_dealERC20."""

    address: str
    token: str
    amount: Number


class AllowanceParams(Params):
    """The arguments of anvil_setERC20Allowance."""

    owner: str
    spender: str
    token: str
    amount: Number


_read_deal = reader(DealParams)
_read_allowance = reader(AllowanceParams)


class TokenMethods:
    """Methods about tokens."""

    def __init__(self, commands: Commands, options: Options, scheduler: Scheduler) -> None:
        self._execute: Final = commands.execute
        self._gas: Final = options.gas_cap or UNCAPPED
        self._bounds: Final = TraceBounds(options.trace_output)
        self._scheduler: Final = scheduler

    def set_balance(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Set the balance of an account in a token."""
        params = _read_deal(raw)
        data = BALANCE_OF + _argument(params.address, 0)
        call = Call(address(params.token, 1), self._gas, data=data)
        amount = number(params.amount, 2, most=U256)
        return self._set(view, call, amount, "balance")

    def set_allowance(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Set how much of a token an account may spend for another."""
        params = _read_allowance(raw)
        data = ALLOWANCE + _argument(params.owner, 0) + _argument(params.spender, 1)
        call = Call(address(params.token, 2), self._gas, data=data)
        amount = number(params.amount, 3, most=U256)
        return self._set(view, call, amount, "allowance")

    async def _set(self, view: LedgerView, call: Call, amount: int, what: str) -> bytes:
        steps = partial(_find, view, call, amount, self._bounds)
        found = self._scheduler.run(steps, view.client)
        place = await found if isawaitable(found) else found
        if place is None:
            raise RefusedCommand(f"Unable to set ERC20 {what}, no slot found")
        keeper, slot = place
        await self._execute(SetAccount(keeper, storage={word(slot): word(amount)}))
        return b"null"


def _find(
    view: LedgerView, call: Call, amount: int, bounds: TraceBounds, _pace: Pace
) -> Steps[tuple[bytes, int] | None]:
    return (yield from find_slot(view, call, amount, bounds))


def _argument(text: str, argument: int) -> bytes:
    """An address as an argument of a function."""
    return address(text, argument).rjust(32, b"\0")
