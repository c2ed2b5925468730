"""eth_getBalance, eth_getTransactionCount, eth_getCode, eth_getStorageAt: what an account has.

The nonce at `pending` is the one answer that does not come from the snapshot alone. It
counts the sender's transactions that wait in the pool, because whoever sends two within
one flashblock would give both the same nonce otherwise.
"""

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.block_param import BlockParam, find_block, read_block
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, address, explain, slot
from foreblock.methods.submissions import Submissions


class AccountParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of a method that asks for one thing of an account."""

    address: str | None = None
    block: BlockParam = None


class SlotParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getStorageAt."""

    address: str | None = None
    slot: str | None = None
    block: BlockParam = None


_decode = Decoder(AccountParams).decode
_decode_slot = Decoder(SlotParams).decode


class StateMethods:
    """Methods that read an account."""

    def __init__(self, options: Options, submissions: Submissions) -> None:
        self._required = 2 if options.block_required else 1
        self._pooled = options.pending_nonce == "pool"
        self._submissions = submissions

    def get_balance(self, view: LedgerView, raw: Raw) -> bytes:
        """The balance in wei; at `latest` and `pending` the engine mostly answers by itself."""
        who, block = self._read(raw)
        return b'"0x%x"' % view.state(find_block(view, block, 1)).balance(who)

    def get_transaction_count(self, view: LedgerView, raw: Raw) -> bytes:
        """The nonce of the sender's next transaction."""
        who, block = self._read(raw)
        named = "latest" if block is None else read_block(block, 1)
        nonce = view.state(view.resolve(named)).nonce(who)
        if named == "pending" and self._pooled:
            nonce = max(nonce, self._submissions.next_nonce(who))
        return b'"0x%x"' % nonce

    def get_code(self, view: LedgerView, raw: Raw) -> bytes:
        """The code of an account; that of a delegated one says whom it delegates to."""
        who, block = self._read(raw)
        return shapes.data(view.state(find_block(view, block, 1)).code(who))

    def get_storage_at(self, view: LedgerView, raw: Raw) -> bytes:
        """The word in a slot, all 32 bytes of it."""
        try:
            params = _decode_slot(raw)
        except DECODING:
            params = explain(raw, SlotParams, self._required + 1)
        missing = params.address is None or params.slot is None
        if missing or (params.block is None and self._required == 2):
            params = explain(raw, SlotParams, self._required + 1)
        assert params.address is not None, "explain refuses a missing one"
        assert params.slot is not None, "the same"
        who, key = address(params.address, 0), slot(params.slot, 1)
        value = view.state(find_block(view, params.block, 2)).storage(who, key)
        return b'"0x%064x"' % value

    def _read(self, raw: Raw) -> tuple[bytes, BlockParam]:
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, AccountParams, self._required)
        if params.address is None or (params.block is None and self._required == 2):
            params = explain(raw, AccountParams, self._required)
        assert params.address is not None, "explain refuses a missing one"
        return address(params.address, 0), params.block
