"""A part of a real block for a mirror: transactions with their receipts, and what they changed.

It is read from the store of the real chain, where it was executed on the real state. The mirror
takes the results: of the state, all but the keys that were written locally.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import (
    Account,
    Changes,
    Header,
    Overlay,
    State,
    Transaction,
    View,
    decode_transactions,
)
from foreblock.ledger.building.closed_index import base_of
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_header, read_row
from foreblock.ledger.storage.mirror_rows import StateKey, encode_number
from foreblock.ledger.storage.partials import pending_partial, read_partial, transactions_in
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Base, keccak256

_ADDRESS: Final = 20
_NO_CODE: Final = keccak256(b"")


class AccountAfter(Struct, frozen=True):
    """An account that a part of a block changed, and the slots that it changed."""

    address: bytes
    account: Account | None
    is_changed: bool  # not only its slots
    is_new: bool  # its slots from before are gone
    code: bytes | None  # if it is another one
    slots: dict[int, int]


class RealBlock(Struct, frozen=True):
    """A block of the real chain, as far as it is known there."""

    base: Base
    partials: tuple[int, ...]  # that it is made of; none if it came as a whole
    hash: bytes = b""  # of one that came as a whole

    @property
    def end(self) -> bytes:
        """The end that a mirror stores once it has the whole block."""
        return encode_number(self.partials[-1]) if self.partials else self.hash

    def since(self, taken: bytes | None) -> int | None:
        """The partial after which a mirror continues that has it up to there."""
        return None if taken is None else int.from_bytes(taken)

    def follows(self, taken: bytes | None) -> bool:
        """True if a mirror that has a block up to here has this one, and may continue."""
        return taken is None or taken == self.end or taken in map(encode_number, self.partials)


def read_blocks(view: View, first: int) -> list[RealBlock]:
    """The blocks from this number on, the block in progress included."""
    assert view.heads.latest is not None, "a followed chain has its anchor"
    latest, _ = view.heads.latest
    blocks = [_sealed(view, number) for number in range(first, latest + 1)]
    unsealed, last = [], pending_partial(view)
    while last is not None:
        row = read_partial(view, last)
        if row.header.number <= latest:
            break
        partials = (*row.before, last)
        unsealed.append(RealBlock(base_of(row.header), partials))
        below = view.partial(partials[0])
        last = None if below is None else below.stacked_on
    return blocks + [each for each in reversed(unsealed) if each.base.block_number >= first]


def _sealed(view: View, number: int) -> RealBlock:
    header, _ = read_header(view, number)
    return RealBlock(base_of(header), partials_of_sealed(view, number), header.hash)


def hash_of(view: View, number: int) -> bytes | None:
    """The hash of a sealed block; None if it is not there."""
    sealed = view.sealed(number)
    return None if sealed is None else sealed[0]


class RealIndex(Struct, frozen=True):
    """Transactions of a real block, and what they changed."""

    end: bytes  # as that of the block
    transactions: Sequence[Transaction]
    receipts: Sequence[bytes]
    gas_before: int
    da_footprint: int
    blobs: int
    accounts: Sequence[AccountAfter]


def read_real_index(
    view: View, block: RealBlock, since: int | None, *, optimism: bool
) -> RealIndex:
    """Read the part of a block after the partial `since`, or the whole block if it is None."""
    number, parts = block.base.block_number, block.partials
    new = parts if since is None else parts[parts.index(since) + 1 :]
    transactions, receipts = _body(view, number, new)
    before = None if since is None else _header(view, number, since)
    if block.hash and since is None:  # it is sealed, and its partials may be pruned
        header, _ = read_header(view, number)
        changes, state = view.changes(number), view.state(number)
    else:
        header = _header(view, number, parts[-1])
        changes, state = view.changes_of_partial(parts[-1], since), view.state_of_partial(parts[-1])
    blob_gas = (header.blob_gas_used or 0) - ((before and before.blob_gas_used) or 0)
    return RealIndex(
        end=block.end,
        transactions=transactions,
        receipts=receipts,
        gas_before=0 if before is None else before.gas_used,
        da_footprint=blob_gas if optimism else 0,
        blobs=0 if optimism else blob_gas // GAS_PER_BLOB,
        accounts=[*_accounts_after(changes, state)],
    )


def _body(
    view: View, number: int, partials: Sequence[int]
) -> tuple[list[Transaction], list[bytes]]:
    """The transactions and receipts in these partials; without any, of a whole block."""
    if not partials:
        raws = rows.decode_body(read_row(view, rows.body_key(number), number)).transactions
        senders = read_row(view, rows.senders_key(number), number)
        split = [senders[at : at + _ADDRESS] for at in range(0, len(senders), _ADDRESS)]
        whole = decode_items(read_row(view, rows.receipts_key(number), number))
        return decode_transactions(raws, senders=split), [*whole]
    receipts: list[bytes] = []
    for each in partials:
        key = partial_rows.receipts_key(number, each)
        receipts += decode_items(read_row(view, key, number))
    return transactions_in(view, number, partials), receipts


def _header(view: View, block: int, partial: int) -> Header:
    key = partial_rows.partial_key(block, partial)
    return partial_rows.decode_partial_row(read_row(view, key, block)).header


def _accounts_after(changes: Changes, state: State) -> Iterator[AccountAfter]:
    for address, before, after, slots in changes.accounts:
        code_before = _NO_CODE if before is None else before.code_hash
        has_other_code = after is not None and after.code_hash != code_before
        yield AccountAfter(
            address=address,
            account=after,
            is_changed=before != after,
            is_new=after is not None and (before is None or before.generation != after.generation),
            code=state.code(address) if has_other_code else None,
            slots=slots,
        )


def changed_keys(changes: Changes) -> Iterator[StateKey]:
    """The accounts and the slots that changed."""
    for address, before, after, slots in changes.accounts:
        if before != after:
            yield address, None
        for slot in slots:
            yield address, slot


def take_over(
    overlay: Overlay, accounts: Sequence[AccountAfter], is_local: Callable[[StateKey], bool]
) -> None:
    """Give an overlay these changes, but for keys that are local. All keys are known there."""
    for each in accounts:
        slots = {at: to for at, to in each.slots.items() if not is_local((each.address, at))}
        if not each.is_changed or is_local((each.address, None)):
            if slots:
                overlay.set(each.address, state_diff=slots)
        elif each.account is None:
            overlay.set(each.address, balance=0, nonce=0, code=b"", state={})
            overlay.credit(each.address, 0)  # removes what is empty
        else:
            account = each.account
            overlay.set(
                each.address,
                balance=account.balance,
                nonce=account.nonce,
                code=each.code,
                state=slots if each.is_new else None,
                state_diff=None if each.is_new else slots or None,
            )
