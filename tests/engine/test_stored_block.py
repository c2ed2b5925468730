"""A block in the store as read by the engine: compared with a full decoding, and damaged."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import (
    Header,
    Receipt,
    Store,
    StoredBlock,
    Transaction,
    View,
    decode_receipt,
)
from foreblock.errors import StoreDamaged, Undecodable
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.partial_rows import Position, encode_senders
from support.payloads.small_store import append
from support.strategies.block_items import Log, logs, transactions

NUMBER = 7
Item = tuple[Transaction, bytes]

HEADER = Header(
    parent_hash=bytes(32),
    beneficiary=bytes(20),
    state_root=bytes(32),
    number=NUMBER,
    gas_limit=30_000_000,
    timestamp=1_700_000_000,
    base_fee_per_gas=7,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store"), write=True) as found:
        append(found)
        yield found


@st.composite
def bodies(draw: st.DrawFn) -> list[Item]:
    """Transactions and their receipts."""
    items: list[Item] = []
    gas = 0
    for transaction in draw(st.lists(transactions(), max_size=6)):
        gas += draw(st.integers(0, 2**40))
        deposit = transaction.type == 0x7E
        chosen: list[Log] = draw(st.lists(logs, max_size=3))
        receipt = Receipt(
            type=transaction.type,
            cumulative_gas_used=gas,
            status=draw(st.booleans()),
            logs=chosen,
            deposit_nonce=9 if deposit else None,
            deposit_receipt_version=1 if deposit else None,
        )
        items.append((transaction, receipt.encode()))
    return items


def position(items: Sequence[Item]) -> Position:
    """The position after these transactions, by decoding all of them."""
    receipts = [decode_receipt(receipt) for _, receipt in items]
    gas = receipts[-1].cumulative_gas_used if receipts else 0
    return Position(len(receipts), gas, sum(len(receipt.logs) for receipt in receipts))


def put(store: Store, items: Sequence[Item], ends: Sequence[int], *, old: bool = False) -> View:
    """Store a body in portions with these ends, or whole; old rows lack positions."""
    batch, start = store.batch(), 0
    for partial, end in enumerate((*ends, len(items)), 1):
        part = items[start:end]
        raws = rows.encode_items([transaction.raw for transaction, _ in part])
        receipts = rows.encode_items([receipt for _, receipt in part])
        senders = b"".join(transaction.sender for transaction, _ in part)
        if ends:
            place = (NUMBER, partial)
            batch.put(partial_rows.transactions_key(*place), raws)
            batch.put(partial_rows.receipts_key(*place), receipts)
            row = senders if old else encode_senders(senders, position(items[:start]))
            batch.put(partial_rows.senders_key(*place), row)
        else:
            batch.put(rows.body_key(NUMBER), raws)
            batch.put(rows.receipts_key(NUMBER), receipts)
            batch.put(rows.senders_key(NUMBER), senders)
        start = end
    store.commit(batch)
    return store.view()


@given(bodies(), st.lists(st.integers(0, 6), max_size=3), st.booleans())
def test_items_and_positions_are_those_of_the_whole_body(
    store: Store, items: list[Item], ends: list[int], old: bool
) -> None:
    ends = sorted(min(end, len(items)) for end in ends)
    portions = len(ends) + 1
    block = StoredBlock(HEADER, range(1, portions + 1) if ends else (), homestead=True)
    texts = block.texts([each.raw for each, _ in items], [receipt for _, receipt in items])
    with put(store, items, ends, old=old) as view:
        for index, (transaction, encoded) in enumerate(items):
            receipt = decode_receipt(encoded)
            deposit = (9, 1) if receipt.deposit_nonce is not None else None
            assert block.transaction(view, index) == (transaction, deposit)
            assert block.receipt(view, index) == texts[index]
        assert block.transaction(view, len(items)) is None
        assert block.receipt(view, 2**64 - 1) is None
        starts = [0, *ends, len(items)]
        for portion, start in enumerate(starts):
            before = position(items[:start])
            found = block.position(view, portion)
            assert found == (before.transactions, before.gas, before.logs)
        found, joined = (0, 0, 0), []
        while True:
            text, end = block.receipts(view, *found, 2)
            if end == found:
                break
            joined.append(text)
            found = end
        assert b",".join(joined) == b",".join(texts)


@given(bodies(), st.data())
def test_damaged_rows_are_reported_and_nothing_panics(
    store: Store, items: list[Item], data: st.DataObject
) -> None:
    put(store, items, [1]).close()
    block = StoredBlock(HEADER, (1, 2), homestead=True)
    batch = store.batch()
    for key in (partial_rows.transactions_key, partial_rows.receipts_key, partial_rows.senders_key):
        with store.view() as view:
            row = bytearray(view.row(key(NUMBER, 2)) or b"")
        for _ in range(data.draw(st.integers(0, 3))):
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
        batch.put(key(NUMBER, 2), bytes(row[: data.draw(st.integers(1, len(row)))]))
    store.commit(batch)
    with store.view() as view:
        for index in range(len(items) + 1):
            with suppress(StoreDamaged, Undecodable):
                block.transaction(view, index)
            with suppress(StoreDamaged, Undecodable):
                block.receipt(view, index)
            with suppress(StoreDamaged, Undecodable):
                block.receipts(view, index, 0, 0, 9)
        with suppress(StoreDamaged):
            block.position(view, 2)


def test_missing_rows_are_damage(store: Store) -> None:
    block = StoredBlock(HEADER, (8, 9), homestead=True)
    with store.view() as view:
        for read in (block.transaction, block.receipt, block.position):
            with pytest.raises(StoreDamaged):
                read(view, 1)
