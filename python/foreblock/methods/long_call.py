"""The params of eth_call and eth_estimateGas where they are too long to be decoded at once.

What makes them long is nearly always state overrides, which are read in steps. All else is
read as by the methods themselves, and in their order, which decides which refusal speaks.
"""

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Raw, Struct

from foreblock.ledger.calls.block_overrides import overridden
from foreblock.ledger.calls.call import Call, State
from foreblock.ledger.calls.overrides import AccountOverride
from foreblock.ledger.reading.block_context import BlockContext
from foreblock.ledger.reading.view import LedgerView
from foreblock.long_json import is_long
from foreblock.methods.block_overrides import BlockOverridesObject, read_block_overrides
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.call_object import CallObject
from foreblock.methods.long_overrides import read_long_overrides
from foreblock.methods.long_params import check_object, read_arguments
from foreblock.methods.overrides import read_many_overrides
from foreblock.methods.params import complete, decode
from foreblock.scheduling.steps import Pace, Steps

STATE_OVERRIDES: Final = 2  # the place of this argument


class LongCallParams(Struct, rename="camel", gc=False):
    """The arguments of both; state overrides that are long are left as they are."""

    transaction: CallObject | None = None
    block: BlockParam = None
    state_overrides: dict[str, Raw] | Raw | None = None
    block_overrides: BlockOverridesObject | None = None


KINDS: Final = (CallObject | None, BlockParam, dict[str, Raw] | None, BlockOverridesObject | None)


class LongCall(Struct, frozen=True):
    """A call, what it runs on and in, and what is to be laid over the state before."""

    call: Call
    state: State
    context: BlockContext
    overrides: dict[bytes, AccountOverride] | None


class LongCallReader:
    """Reads the params of a method that says what it requires and means."""

    def __init__(
        self,
        read: Callable[[CallObject], Call],
        required: int,
        unnamed: Literal["latest", "pending"],
    ) -> None:
        """`unnamed` is the block that is meant where none is named."""
        self._read: Final = read
        self._required: Final = required
        self._unnamed: Final = unnamed

    def steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[LongCall]:
        """The call; raises `InvalidParams`, `RefusedOverride`, `NotHere`."""
        params = yield from _read_params(raw, self._required, pace)
        assert params.transaction is not None, "a missing one is refused"
        call = self._read(params.transaction)
        named = self._unnamed if params.block is None else read_block(params.block, 1)
        overrides = yield from _read_overrides(params.state_overrides, pace)
        changes = None
        if params.block_overrides is not None:
            changes = read_block_overrides(params.block_overrides, 3)
        block = view.resolve(named)
        context = block.context if changes is None else overridden(block, changes)
        return LongCall(call, view.state(block), context, overrides)


def _read_params(raw: Raw, required: int, pace: Pace) -> Steps[LongCallParams]:
    items = yield from read_arguments(raw, len(KINDS), pace)
    values = []
    for argument, (item, kind) in enumerate(zip(items, KINDS, strict=False)):
        if argument == STATE_OVERRIDES and is_long(item):
            check_object(item, argument)
            values.append(item)
        else:
            values.append(decode(item, kind, argument))
        if pace.is_over():
            yield None
    return complete(values, LongCallParams, required)


def _read_overrides(
    given: dict[str, Raw] | Raw | None, pace: Pace
) -> Steps[dict[bytes, AccountOverride] | None]:
    if given is None:
        return None
    if isinstance(given, Raw):
        return (yield from read_long_overrides(given, STATE_OVERRIDES, pace))
    return (yield from read_many_overrides(given, STATE_OVERRIDES, pace))
