"""Values of a partial base that the writer sends to a worker, and that the worker keeps.

The writer has proven the values, or the operator trusts upstreams; workers on the same machine use
them as they are. As bytes they are MessagePack, which has no integers of 256 bits: slots and
balances are bytes without leading zeros.

A worker accepts a value if its key is unknown in a view that was opened after the value came from a
block which that view has: then no block has changed the key, and the value is that of the base,
for old views and new ones. A key that is known there is not accepted: the store has it. Slots of an
account that was deleted since are known at the latest block, as zeros; they are accepted from a
proof of an earlier block, if they are unknown at that one.

The writer stores the same values. When the values here exceed their bound, they are cleared.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from foreblock.errors import BusBroken
from foreblock.follow.fetch_result import FetchResult
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.open_store import FetchedState
from foreblock.ledger.storage.state_keys import packed_int
from foreblock.types import Account

LIMIT: Final = 64 << 20  # bytes


class KnownValues(NamedTuple):
    """Values that are proven, or trusted; `blocks` are hashes of blocks before the base."""

    accounts: Mapping[bytes, Account | None]
    slots: Mapping[bytes, Mapping[int, int]]
    codes: Sequence[bytes] = ()
    blocks: Mapping[int, bytes] = {}


class LearnedState:
    """Values beside the store of one ledger; they belong to one epoch of its base."""

    def __init__(self, ledger: Ledger, limit: int = LIMIT) -> None:
        self._ledger: Final = ledger
        self._limit: Final = limit
        self._learned: FetchedState | None = None

    @property
    def size(self) -> int:
        """The bytes that it takes, about."""
        return 0 if self._learned is None else self._learned.size

    def learn(self, view: LedgerView, values: KnownValues, at: ReadableBlock | None = None) -> None:
        """Take what is unknown in this view, whose blocks the values come from.

        Values that come from the block `at` are taken if they are unknown there.
        """
        learned = self._of_epoch(view.base.epoch)
        slots = {address: list(keys) for address, keys in values.slots.items()}
        missing = view.state(at or view.latest).missing(list(values.accounts), slots)
        for address in missing.accounts:
            if address in values.accounts:
                learned.put_account(address, values.accounts[address])
        for address, unknown in missing.slots.items():
            known = values.slots.get(address, {})
            taken = {slot: known[slot] for slot in unknown if slot in known}
            learned.put_slots(address, taken)
        for code in values.codes:
            learned.put_code(code)
        for number, block_hash in values.blocks.items():
            learned.put_block(number, block_hash)

    def put_nodes(self, view: LedgerView, nodes: Sequence[bytes]) -> None:
        """Take trie nodes; they are right for every block."""
        self._of_epoch(view.base.epoch).put_nodes(nodes)

    def _of_epoch(self, epoch: int) -> FetchedState:
        learned = self._learned
        if learned is None or learned.epoch != epoch or learned.size > self._limit:
            learned = self._learned = FetchedState(epoch, limit=2 * self._limit, nodes=False)
            self._ledger.set_fallback_state(learned)
        return learned


class _Packed(Struct, frozen=True, array_like=True):
    accounts: dict[bytes, tuple[int, bytes, bytes] | None]  # nonce, balance, hash of the code
    slots: dict[bytes, list[tuple[bytes, bytes]]]
    codes: list[bytes]
    blocks: dict[int, bytes]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode


def pack_values(result: FetchResult, blocks: Mapping[int, bytes]) -> bytes:
    """Return the values of a result, and hashes of blocks before the base, as bytes."""
    accounts = {address: claim.account for address, claim in result.accounts.items()}
    return _encode(
        _Packed(
            {
                address: each and (each.nonce, packed_int(each.balance), each.code_hash)
                for address, each in accounts.items()
            },
            {
                address: [(packed_int(slot), packed_int(value)) for slot, value in values.items()]
                for address, values in result.slots.items()
            },
            list(result.codes.values()),
            dict(blocks),
        )
    )


def unpack_values(data: bytes) -> KnownValues:
    """Return the values in these bytes. Raises `BusBroken`."""
    try:
        packed = _decode(data)
        return KnownValues(
            {
                address: each
                and Account(nonce=each[0], balance=int.from_bytes(each[1]), code_hash=each[2])
                for address, each in packed.accounts.items()
            },
            {
                address: {int.from_bytes(slot): int.from_bytes(value) for slot, value in values}
                for address, values in packed.slots.items()
            },
            packed.codes,
            packed.blocks,
        )
    except (msgspec.MsgspecError, ValueError, OverflowError) as why:
        raise BusBroken(str(why)) from None
