"""eth_getBalance: what an account holds."""

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, address, explain


class BalanceParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getBalance."""

    address: str | None = None
    block: BlockParam = None


_decode = Decoder(BalanceParams).decode


class StateMethods:
    """Methods that read an account."""

    def __init__(self, options: Options) -> None:
        self._required = 2 if options.block_required else 1

    def get_balance(self, view: LedgerView, raw: Raw) -> bytes:
        """The balance in wei, as a quantity."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, BalanceParams, self._required)
        if params.address is None or (params.block is None and self._required == 2):
            params = explain(raw, BalanceParams, self._required)
        assert params.address is not None, "explain refuses a missing one"
        who = address(params.address, 0)
        block = find_block(view, params.block, 1)
        return b'"0x%x"' % view.state(block).balance(who)
