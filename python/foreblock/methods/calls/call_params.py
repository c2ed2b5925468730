"""The params of eth_call and eth_estimateGas, read by the engine.

The engine reads them at any size and says what is wrong with them; here defaults are filled
in. The block parameter is left as JSON, because all methods read it alike.
"""

from typing import Any, Final, Literal

from msgspec import Raw, Struct

from foreblock._engine import read_call
from foreblock.ledger.calls.block_overrides import BlockOverrides
from foreblock.ledger.calls.request import Call, Overrides
from foreblock.ledger.reading.blocks import BlockId
from foreblock.methods.block_param import named_block, read_block

UNCAPPED: Final = (1 << 63) - 1  # the gas of a call where nobody says how much


class CallParams(Struct, frozen=True, gc=False):
    """A call, the block it runs in, and what is to be seen otherwise there."""

    call: Call
    block: BlockId
    overrides: Overrides | None
    changes: BlockOverrides | None


class CallReader:
    """Reads params by what a method requires and an operator chose."""

    def __init__(
        self,
        gas_cap: int,
        required: int,
        unnamed: Literal["latest", "pending"],
        *,
        creates: bool,
        gas: int | None = None,
    ) -> None:
        """`unnamed` is the block where none is named, `gas` that of a call that names none."""
        self.gas_cap: Final = gas_cap or UNCAPPED
        self._required: Final = required
        self._unnamed: Final[BlockId] = unnamed
        self._creates: Final = creates
        self._gas: Final = self.gas_cap if gas is None else gas

    def read(self, raw: Raw) -> CallParams:
        """The arguments; raises `InvalidParams`, `RefusedOverride`."""
        fields, named, overrides, changes, refusal = read_call(raw, self._required, self._creates)
        block = self._unnamed if named is None else read_block(named_block(named), 1)
        if refusal is not None:
            raise refusal
        call = read_fields(fields, self._gas, self.gas_cap)
        return CallParams(
            call, block, overrides, None if changes is None else BlockOverrides(*changes)
        )


def read_fields(fields: tuple[Any, ...], gas: int, gas_cap: int) -> Call:
    """The call of fields as the engine gives them; `gas` is for one that names none."""
    to, sender, data, value, asked, _nonce, rest = fields
    if asked is not None:
        gas = min(asked, gas_cap)
    if rest is None:
        return Call(to, gas, sender, data, value)
    return Call(to, gas, sender, data, value, *rest)
