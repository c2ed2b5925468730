"""eth_getBalance, eth_getCode, eth_getStorageAt, eth_getStorageValues and others: account fields.

The nonce at `pending` is the one result that does not come from the snapshot alone: it counts
the sender's transactions in the pool. Otherwise a client that sends two within one flashblock
would give both the same nonce.
"""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.errors import InvalidParams, LimitExceeded, StateMissing
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.params import (
    BlockParam,
    Params,
    address,
    explain,
    find_block,
    hash32,
    key_digits,
    read_account,
    read_block,
    reader,
    slot,
)
from foreblock.methods.proofs import ProofMethods
from foreblock.methods.sequencing import Submissions
from foreblock.methods.shapes import write_data
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Settings


class SlotParams(Params):
    """The arguments of eth_getStorageAt."""

    address: str
    slot: str
    block: BlockParam = None


_read_slot = reader(SlotParams)


class StateMethods:
    """Methods that read an account."""

    def __init__(self, settings: Settings, submissions: Submissions) -> None:
        self._block_required = settings.block_required
        self._bare_keys = settings.dialect == "ethereum"
        self._pooled = settings.pending_nonce == "pool"
        self._submissions = submissions

    def get_balance(self, view: LedgerView, raw: Raw) -> bytes:
        """The balance in wei; at `latest` and `pending` the fast path answers most requests."""
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
        """The code of an account; for a delegated one, its delegation."""
        who, block = self._read(raw)
        return shapes.write_data(view.state(find_block(view, block, 1)).code(who))

    def get_storage_at(self, view: LedgerView, raw: Raw) -> bytes:
        """The word in a slot, all 32 bytes."""
        params = _read_slot(raw)
        if params.block is None and self._block_required:
            params = explain(raw, SlotParams, 3)
        text = f"0x{key_digits(params.slot)}" if self._bare_keys else params.slot
        who, key = address(params.address, 0), slot(text, 1)
        value = view.state(find_block(view, params.block, 2)).storage(who, key)
        return b'"0x%064x"' % value

    def get_account_info(self, view: LedgerView, raw: Raw) -> bytes:
        """Balance, nonce and code of an account in one answer."""
        who, block = self._read(raw)
        state = view.state(find_block(view, block, 1))
        account = state.account(who)
        return b'{"balance":"0x%x","nonce":"0x%x","code":%b}' % (
            0 if account is None else account.balance,
            0 if account is None else account.nonce,
            shapes.write_data(state.code(who)),
        )

    def _read(self, raw: Raw) -> tuple[bytes, BlockParam]:
        return read_account(raw, block_required=self._block_required)


MOST_SLOTS: Final = 1024  # as in geth


class StorageValuesParams(Params):
    """The arguments of eth_getStorageValues."""

    slots: dict[str, list[str]]
    block: BlockParam = None


_read_values = reader(StorageValuesParams)


class StorageValuesMethods:
    """The method that reads many slots."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._block_required = settings.block_required
        self._scheduler = scheduler

    def get_storage_values(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The words in these slots, by account."""
        return self._scheduler.read(self._read_and_show(view, raw))

    def _read_and_show(self, view: LedgerView, raw: Raw) -> Steps[bytes]:
        wanted, block = self._read(raw)
        yield None
        return (yield from _values(view, find_block(view, block, 1), wanted))

    def _read(self, raw: Raw) -> tuple[dict[bytes, list[int]], BlockParam]:
        if len(raw) > THRESHOLDS.thread_params_bytes:
            raise _too_many()
        params = _read_values(raw)
        if params.block is None and self._block_required:
            params = explain(raw, StorageValuesParams, 2)
        count = sum(map(len, params.slots.values()))
        if count > MOST_SLOTS:
            raise _too_many()
        if count == 0:
            raise InvalidParams("empty request")
        wanted = {
            address(who, 0): [
                int.from_bytes(hash32(key, 0, f"$.{who}[{place}]"))
                for place, key in enumerate(keys)
            ]
            for who, keys in params.slots.items()
        }
        return wanted, params.block


def _too_many() -> LimitExceeded:
    return LimitExceeded(f"too many slots (max {MOST_SLOTS})")


def _values(view: LedgerView, block: ReadableBlock, wanted: dict[bytes, list[int]]) -> Steps[bytes]:
    """The result in steps of a few slots each."""
    state = view.state(block)
    accounts = []
    for who, keys in wanted.items():
        words: list[bytes] = []
        for start in range(0, len(keys), THRESHOLDS.read_slots):
            some = keys[start : start + THRESHOLDS.read_slots]
            try:
                words += [b'"0x%064x"' % state.storage(who, key) for key in some]
            except StateMissing as missing:
                # All that is not known is fetched in one round.
                raise StateMissing(state.missing([], wanted) or missing.misses) from None
            yield None
        accounts.append(b"%b:[%b]" % (write_data(who), b",".join(words)))
    return b"{%b}" % b",".join(accounts)


def state_family(settings: Settings, scheduler: Scheduler, submissions: Submissions) -> Family:
    """The methods that read state."""
    state = StateMethods(settings, submissions)
    proofs = ProofMethods(settings, scheduler)
    values = StorageValuesMethods(settings, scheduler)
    return Family(
        "Accounts and storage",
        (
            Method(
                "eth_getBalance(address: Address, block!: BlockParameter) -> Quantity",
                state.get_balance,
            ),
            Method(
                "eth_getTransactionCount(address: Address, block!: BlockParameter) -> Quantity",
                state.get_transaction_count,
            ),
            Method("eth_getCode(address: Address, block!: BlockParameter) -> Data", state.get_code),
            Method(
                "eth_getStorageAt(address: Address, slot: Slot, block!: BlockParameter) -> Word",
                state.get_storage_at,
            ),
            Method(
                "eth_getStorageValues(slots: SlotsByAddress, block!: BlockParameter) "
                "-> WordsByAddress",
                values.get_storage_values,
            ),
            Method(
                "eth_getAccountInfo(address: Address, block!: BlockParameter) -> AccountInfo",
                state.get_account_info,
            ),
            Method(
                "eth_getAccount(address: Address, block!: BlockParameter) -> Account?",
                proofs.get_account,
            ),
            Method(
                "eth_getProof(address: Address, storageKeys: StorageKey[], "
                "block!: BlockParameter) -> AccountProof",
                proofs.get_proof,
            ),
        ),
    )
