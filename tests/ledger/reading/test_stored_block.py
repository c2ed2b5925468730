"""Stored blocks: sizes compared with handmade encodings, receipts, and transactions by index."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import keccak256
from foreblock.ledger.reading.blocks import PreconfirmedBlock, SealedBlock
from foreblock.ledger.reading.stored_block import BlockParts
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.types import Flashblock
from support.chains.following import Following, Truth
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
        paid = tuple((index, who, address, amount) for index, who, amount in withdrawals)
        parts.append(
            rlp.encode(
                [
                    rlp.encode([number(index), number(who), rlp.encode(address), number(amount)])
                    for index, who, amount in withdrawals
                ]
            )
        )
    block = BlockParts(HEADER, (HEADER,) * uncles, paid, ())
    size = block.size(sum(len(rlp.encode(each)) for each in transactions))
    assert size == len(rlp.encode(parts))


PLAN = [[], [(0, 1), (1, 2)], [(2, 3)]]


@pytest.fixture
def chains(tmp_path: Path) -> Iterator[tuple[Truth, Following]]:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    yield truth, following
    following.close()
    truth.close()


def found(following: Following, message: Flashblock) -> tuple[bytes, int, type] | None:
    """The hash, position and kind of the block with the first transaction of a message."""
    view = following.ledger.view()
    try:
        at = find_transaction(view, keccak256(message.diff.transactions[0]))
        return None if at is None else (at[0].hash, at[1], type(at[0]))
    finally:
        view.close()


def test_a_transaction_of_a_block_that_is_not_sealed_yet_is_found_below_pending(
    chains: tuple[Truth, Following],
) -> None:
    truth, following = chains
    first = truth.job("1p", PLAN)
    sealed = truth.seal(first)
    second = truth.job("2p", PLAN)
    following.receive(*first.messages, *second.messages[:2])
    assert (following.latest, following.pending) == (0, (2, 1)), "stacked, and proven later"
    end = first.messages[2].diff.block_hash
    assert found(following, first.messages[1]) == (end, 1, PreconfirmedBlock)
    pending = second.messages[1].diff.block_hash
    assert found(following, second.messages[1]) == (pending, 1, PreconfirmedBlock)
    following.run_until_idle()
    assert found(following, first.messages[1]) == (sealed.hash, 1, SealedBlock)
    assert found(following, second.messages[1]) == (pending, 1, PreconfirmedBlock)
