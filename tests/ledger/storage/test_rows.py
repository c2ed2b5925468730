from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.storage import rows
from support.payloads.headers import MINED, PRAGUE, header

U64 = st.integers(0, 2**64 - 1)


@given(U64, st.integers(0, 2**256 - 1))
def test_header_row_keeps_header_and_total_difficulty(number: int, total: int) -> None:
    before = header(PRAGUE, number=number)
    after, difficulty = rows.decode_header_row(rows.encode_header_row(before, total))
    assert after.hash == before.hash
    assert difficulty == total


@given(
    st.lists(st.binary()),
    st.integers(0, 2),
    st.none() | st.lists(st.tuples(U64, U64, st.binary(min_size=20, max_size=20), U64)),
)
def test_body_row_keeps_everything(
    transactions: list[bytes],
    uncles: int,
    withdrawals: list[tuple[int, int, bytes, int]] | None,
) -> None:
    headers = [header(MINED, number=number) for number in range(uncles)]
    body = rows.decode_body(rows.encode_body(transactions, headers, withdrawals))
    assert list(body.transactions) == transactions
    assert [uncle.hash for uncle in body.uncles] == [uncle.hash for uncle in headers]
    assert body.withdrawals == (None if withdrawals is None else tuple(withdrawals))


def test_rows_of_different_kinds_never_share_a_key() -> None:
    keys = {rows.CONFIG}
    for number in (0, 1, 2**64 - 1):
        keys |= {rows.header_key(number), rows.body_key(number), rows.receipts_key(number)}
        keys.add(rows.senders_key(number))
    assert len(keys) == 13


def test_keys_sort_by_number() -> None:
    numbers = [0, 1, 255, 256, 2**32, 2**64 - 1]
    keys = [rows.header_key(number) for number in numbers]
    assert keys == sorted(keys)
