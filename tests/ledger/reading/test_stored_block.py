"""Sizes against encodings made by hand."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Withdrawal
from foreblock.ledger.reading.stored_block import StoredBlock
from support.payloads import rlp
from support.payloads.headers import PRAGUE, header

HEADER = header(PRAGUE)


def number(value: int) -> bytes:
    return rlp.encode(value)


@given(
    st.lists(st.binary(min_size=1, max_size=400), max_size=5),
    st.integers(min_value=0, max_value=3),
    st.none()
    | st.lists(st.tuples(*[st.integers(min_value=0, max_value=2**64 - 1)] * 3), max_size=20),
)
def test_block_is_as_long_as_its_encoding(
    contents: list[bytes], uncles: int, withdrawals: list[tuple[int, int, int]] | None
) -> None:
    transactions = [b"\x02" + content for content in contents]
    parts = [
        HEADER.encode(),
        rlp.encode([rlp.encode(each) for each in transactions]),
        rlp.encode([HEADER.encode()] * uncles),
    ]
    paid = None
    if withdrawals is not None:
        address = b"\xaa" * 20
        paid = tuple(Withdrawal(index, who, address, amount) for index, who, amount in withdrawals)
        parts.append(
            rlp.encode(
                [
                    rlp.encode([number(index), number(who), rlp.encode(address), number(amount)])
                    for index, who, amount in withdrawals
                ]
            )
        )
    block = StoredBlock(HEADER, (HEADER,) * uncles, paid, ())
    size = block.size(sum(len(rlp.encode(each)) for each in transactions))
    assert size == len(rlp.encode(parts))
