"""Rows of blocks, read in place: compared with plain decoding, and damaged in every way."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import (
    BlockTips,
    Header,
    Receipt,
    Store,
    StoredBlock,
    StoredItems,
    Transaction,
    View,
    decode_transaction,
    deposit_transaction,
    keccak256,
)
from foreblock.errors import InvalidArgument, StoreDamaged
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.rows import encode_items
from foreblock.methods import shapes
from foreblock.upstream.block_json import Fields, encode_transaction
from support.payloads.signing import BLOB, SET_CODE
from support.payloads.small_store import append
from support.strategies.block_items import logs, transactions

FIRST, SECOND = rows.body_key(7), rows.receipts_key(7)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store"), write=True) as found:
        append(found)
        yield found


def put(store: Store, first: bytes, second: bytes = b"", *, senders: bytes | None = None) -> View:
    """A view of the store with these rows of transactions, of receipts and of senders."""
    batch = store.batch()
    batch.put(FIRST, first)
    batch.put(SECOND, second)
    if senders is not None:
        batch.put(rows.senders_key(7), senders)
    store.commit(batch)
    return store.view()


receipts = st.builds(
    lambda kind, gas, logs, status: Receipt(
        type=kind, cumulative_gas_used=gas, status=status, logs=logs
    ),
    st.sampled_from([0, 1, 2, 4, 0x7E]),
    st.integers(0, 2**64 - 1),
    st.lists(logs, max_size=4),
    st.booleans(),
) | st.builds(
    lambda gas, root: Receipt(type=0, cumulative_gas_used=gas, post_state=root),
    st.integers(0, 2**40),
    st.binary(min_size=32, max_size=32),
)


def readings(view: View, row: bytes) -> Sequence[Callable[[], object]]:
    """The results of all readers of the two rows."""
    return (
        lambda: stored().raws(view, 3),
        lambda: BlockTips(stored(), 7).read(view, 9),
        lambda: StoredItems(row),
    )


@given(st.data(), st.lists(receipts, min_size=3, max_size=4))
def test_a_damaged_row_is_called_so_and_nothing_panics(
    store: Store, data: st.DataObject, chosen: list[Receipt]
) -> None:
    whole = encode_items([receipt.encode() for receipt in chosen])
    cut = data.draw(st.integers(0, len(whole)))
    row = bytearray(whole[:cut] + data.draw(st.binary(max_size=8)) or b"\0")
    for _ in range(data.draw(st.integers(0, 4))):
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    with put(store, bytes(row), whole) as view:
        for read in readings(view, bytes(row)):
            with suppress(StoreDamaged):
                read()


def test_what_a_row_claims_is_never_believed(store: Store) -> None:
    for row in (b"\0", b"\xff\xff\xff\xff", b"\0\0\0\3\xff\xff\xff\xff", b"\0\0\0\3\0\0\0\1a"):
        with put(store, row, row) as view:
            for read in readings(view, row):
                with pytest.raises(StoreDamaged):
                    read()
    with put(store, b"\0\0\0\0") as view, pytest.raises(StoreDamaged):
        BlockTips(StoredBlock(header(7), [1], homestead=True), 7).read(view, 9)


def header(base_fee: int | None) -> Header:
    return Header(
        parent_hash=bytes(32),
        beneficiary=bytes(20),
        state_root=bytes(32),
        number=7,
        gas_limit=30_000_000,
        timestamp=1_700_000_000,
        base_fee_per_gas=base_fee,
    )


def stored() -> StoredBlock:
    """The block whose rows `put` writes, as if it was imported."""
    return StoredBlock(header(7), [], homestead=True)


@given(st.lists(transactions(), max_size=5), st.integers(0, 6))
def test_the_first_transactions_have_their_senders(
    store: Store, chosen: list[Transaction], stop: int
) -> None:
    raws, senders = [each.raw for each in chosen], b"".join(each.sender for each in chosen)
    ends = [min(stop, len(raws))]
    with put(store, encode_items(raws)) as view:
        assert stored().raws(view, stop) == (raws[:stop], None, ends)
    for row in (senders, senders[: 20 * stop]):
        with put(store, encode_items(raws), senders=row) as view:
            assert stored().raws(view, stop) == (raws[:stop], senders[: 20 * stop], ends)
    if chosen and stop:
        row = senders[: 20 * ends[0] - 1]
        with put(store, encode_items(raws), senders=row) as view, pytest.raises(StoreDamaged):
            stored().raws(view, stop)
    batch = store.batch()
    batch.delete(rows.senders_key(7))
    store.commit(batch)


def receipt_for(transaction: Transaction, gas: int) -> bytes:
    deposit = transaction.type == 0x7E
    return Receipt(
        type=transaction.type,
        cumulative_gas_used=gas,
        status=True,
        deposit_nonce=9 if deposit else None,
        deposit_receipt_version=1 if deposit else None,
    ).encode()


@given(st.lists(transactions(), min_size=1, max_size=5), st.none() | st.integers(0, 2**64 - 1))
def test_a_transaction_can_be_read_back_from_its_json(
    chosen: list[Transaction], base_fee: int | None
) -> None:
    block, first = header(base_fee), 100
    raws = [each.raw for each in chosen]
    encoded = [receipt_for(each, 21_000 * place) for place, each in enumerate(chosen, 1)]
    items, theirs = StoredItems(encode_items(raws)), StoredItems(encode_items(encoded))
    expected = [
        each.fragment(block, first + place, (9, 1) if each.type == 0x7E else None)
        for place, each in enumerate(chosen)
    ]
    assert [encode_transaction(Fields(json.loads(b"{%b}" % text))) for text in expected] == raws
    senders = b"".join(each.sender for each in chosen)
    for known in (senders, senders + bytes(16), None):
        found = items.fragments(
            theirs, 0, 99, header=block, first=first, homestead=True, senders=known
        )
        assert found == expected
    part = items.fragments(theirs, 1, 2, header=block, first=first, homestead=True, senders=senders)
    assert part == expected[1:2]
    texts = [shapes.write_data(keccak256(raw)) for raw in raws]
    assert items.hashes(0, 99) == b",".join(texts)
    assert b",".join([items.hashes(place, place + 1) for place in range(len(raws))]) == b",".join(
        texts
    )


@pytest.mark.parametrize(
    ("raw", "member"), [(BLOB, "blobVersionedHashes"), (SET_CODE, "authorizationList")]
)
def test_blobs_and_authorizations_can_be_read_back_from_their_json(raw: bytes, member: str) -> None:
    transaction = decode_transaction(raw)
    receipt = StoredItems(encode_items([receipt_for(transaction, 21_000)]))
    items = StoredItems(encode_items([raw]))
    found = items.fragments(receipt, 0, 1, header=header(7), first=0, homestead=True)
    assert found == [transaction.fragment(header(7), 0)]
    shown = json.loads(b"{%b}" % found[0])
    assert shown[member]
    assert encode_transaction(Fields(shown)) == raw


def test_a_sender_that_is_missing_is_damage() -> None:
    raw = deposit_transaction(
        source_hash=bytes(32), sender=bytes(20), to=None, mint=0, value=0, gas_limit=1, input=b""
    )
    items = StoredItems(encode_items([raw.raw]))
    receipt = StoredItems(encode_items([receipt_for(raw, 1)]))
    with pytest.raises(StoreDamaged):
        items.fragments(receipt, 0, 1, header=header(7), first=0, homestead=True, senders=bytes(19))
    with pytest.raises(StoreDamaged):
        items.fragments(
            StoredItems(encode_items([])), 0, 1, header=header(7), first=0, homestead=True
        )


@given(st.lists(transactions(), max_size=8), st.none() | st.integers(0, 10**12), st.data())
def test_tips_are_what_decoded_transactions_paid(
    store: Store, chosen: list[Transaction], base_fee: int | None, data: st.DataObject
) -> None:
    used = data.draw(st.lists(st.integers(1, 2**33), min_size=len(chosen), max_size=len(chosen)))
    ends = [sum(used[: place + 1]) for place in range(len(used))]
    encoded = [receipt_for(each, end) for each, end in zip(chosen, ends, strict=True)]
    bids = sorted(
        (max(each.effective_gas_price(base_fee) - (base_fee or 0), 0), gas)
        for each, gas in zip(chosen, used, strict=True)
        if each.type != 0x7E
    )
    with put(store, encode_items([each.raw for each in chosen]), encode_items(encoded)) as view:
        tips = BlockTips(stored(), base_fee)
        for read in range(3, len(chosen), 3):
            assert not tips.read(view, 3), read
            with pytest.raises(InvalidArgument):
                tips.lowest(1)
        assert tips.read(view, 3)
    assert len(tips) == len(bids)
    assert tips.lowest(99) == [tip for tip, _ in bids]
    total, wanted = sum(gas for _, gas in bids), [0, 12.5, 50, 99.9, 100]
    expected = []
    for percent in wanted:
        reached, at = int(total * percent / 100), 0
        for tip, gas in bids:
            at += gas
            if at >= reached:
                expected.append(hex(tip))
                break
    assert json.loads(tips.percentiles(wanted)) == (expected or ["0x0"] * len(wanted))
