"""Rows of partial blocks: contents and keys."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Header
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.partial_rows import PartialRow
from foreblock.ledger.storage.partials import Freshness, decode_freshness

NUMBERS = st.integers(0, 2**64 - 1)
HEADER = Header(
    parent_hash=b"\1" * 32,
    beneficiary=b"\2" * 20,
    state_root=bytes(32),
    number=7,
    gas_limit=60_000_000,
    timestamp=1_700_000_000,
    base_fee_per_gas=9,
)


@given(
    st.binary(min_size=8, max_size=8),
    NUMBERS,
    NUMBERS,
    st.integers(0, 2**32 - 1),
    st.lists(NUMBERS, max_size=20).map(tuple),
)
def test_a_partial_is_read_as_it_was_written(
    payload_id: bytes, index: int, received: int, before: int, partials: tuple[int, ...]
) -> None:
    row = PartialRow(payload_id, index, received, before, partials, HEADER)
    assert partial_rows.decode_partial_row(row.encode()) == row


@given(NUMBERS, NUMBERS)
def test_all_rows_of_a_partial_stand_under_its_block(block: int, partial: int) -> None:
    prefix = partial_rows.block_prefix(block)
    kinds = set()
    for key_of in (
        partial_rows.partial_key,
        partial_rows.transactions_key,
        partial_rows.senders_key,
        partial_rows.receipts_key,
        partial_rows.seals_as_key,
    ):
        key = key_of(block, partial)
        assert key.startswith(prefix)
        found, kind = partial_rows.partial_of_key(key)
        assert found == partial
        kinds.add(kind)
    assert len(kinds) == 5


def test_a_hash_may_name_a_block_and_a_partial_of_it() -> None:
    assert partial_rows.decode_by_hash(partial_rows.encode_by_hash(7, 9)) == (7, 9)
    assert partial_rows.decode_by_hash(partial_rows.encode_by_hash(7)) == (7, 0)


def test_senders_are_told_apart() -> None:
    senders = [bytes([number]) * 20 for number in range(3)]
    assert partial_rows.split_senders(b"".join(senders)) == senders


@given(st.binary(min_size=16, max_size=16), st.integers(1, 2**64 - 1))
def test_a_deadline_counts_only_in_the_start_of_the_machine_that_set_it(
    boot_id: bytes, until: int
) -> None:
    freshness = decode_freshness(Freshness(boot_id, until).encode())
    assert freshness is not None
    assert freshness.deadline_ns(boot_id) == until
    other = bytes(byte ^ 1 for byte in boot_id)
    assert freshness.deadline_ns(other) == 0


def test_where_nothing_was_pending_there_is_no_deadline() -> None:
    assert decode_freshness(b"") is None
