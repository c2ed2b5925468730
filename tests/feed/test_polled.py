"""A pending block polled occasionally: its growth as flashblocks."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import MalformedFlashblock
from foreblock.feed.messages import decode, encode
from foreblock.feed.polled import PolledPending
from foreblock.types import Flashblock, FlashblockId, Header

TRANSACTIONS = tuple(b"\x7e" + bytes([0xC1, n]) for n in range(20))


class Pending(NamedTuple):
    """A pending block as shown by an endpoint."""

    header: Header
    transactions: tuple[bytes, ...]


def block(number: int, count: int, *, salt: int = 0, first: int = 0) -> Pending:
    """A pending block with some of the transactions."""
    header = Header(
        parent_hash=bytes([number, salt]) * 16, ommers_hash=bytes(32), beneficiary=bytes(20),
        state_root=bytes(32), transactions_root=bytes(32), receipts_root=bytes([count]) * 32,
        logs_bloom=bytes(256), difficulty=0, number=number, gas_limit=30_000_000,
        gas_used=21_000 * count, timestamp=2 * number, extra_data=bytes(9), mix_hash=bytes(32),
        nonce=bytes(8), base_fee_per_gas=7, withdrawals_root=b"\x01" * 32, blob_gas_used=0,
        excess_blob_gas=0, parent_beacon_block_root=b"\x02" * 32,
    )  # fmt: skip
    return Pending(header, TRANSACTIONS[first : first + count])


def see(pending: PolledPending, seen: Pending) -> Flashblock | None:
    return pending.see(seen.header, seen.transactions, seen.header.hash)


def test_growth_is_one_index() -> None:
    pending = PolledPending()
    first, second = see(pending, block(5, 2)), see(pending, block(5, 6))
    assert first is not None
    assert second is not None
    assert (first.index, second.index) == (0, 1)
    assert first.base is not None
    assert second.base is None
    assert first.payload_id == second.payload_id
    assert first.diff.transactions + second.diff.transactions == TRANSACTIONS[:6]
    assert second.previous == FlashblockId(5, 0)
    assert second.diff.block_hash == block(5, 6).header.hash
    assert second.diff.gas_used == 6 * 21_000
    assert second.diff.receipts_root == bytes([6]) * 32


def test_what_is_no_news_is_nothing() -> None:
    pending = PolledPending()
    assert see(pending, block(5, 0)) is None, "not begun"
    assert see(pending, block(5, 4))
    assert see(pending, block(5, 4)) is None
    assert see(pending, block(5, 2)) is None, "a node that is behind"
    assert see(pending, block(4, 9)) is None, "far behind"
    grown = see(pending, block(5, 5))
    assert grown is not None
    assert grown.index == 1
    assert grown.diff.transactions == TRANSACTIONS[4:5]


def test_another_block_is_another_job() -> None:
    pending = PolledPending()
    first = see(pending, block(5, 4))
    others = [see(pending, block(5, 4, salt=1)), see(pending, block(5, 3, salt=1, first=1))]
    others.append(see(pending, block(6, 1)))
    assert all(each is not None and each.index == 0 and each.base for each in others)
    assert len({each.payload_id for each in (first, *others) if each}) == 4


def test_a_block_before_ecotone_is_refused() -> None:
    old = block(5, 1)
    fields = {
        name: getattr(old.header, name)
        for name in (
            "parent_hash", "ommers_hash", "beneficiary", "state_root", "transactions_root",
            "receipts_root", "logs_bloom", "difficulty", "number", "gas_limit", "gas_used",
            "timestamp", "extra_data", "mix_hash", "nonce", "base_fee_per_gas",
        )
    }  # fmt: skip
    with pytest.raises(MalformedFlashblock, match="parent_beacon_block_root: missing"):
        PolledPending().see(Header(**fields), TRANSACTIONS, bytes(32))


looks = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), max_size=60)


@given(looks)
def test_what_is_announced_is_the_longest_that_was_seen(seen: list[tuple[int, int]]) -> None:
    """Blocks of one chain in any order, as from nodes at different heights."""
    pending = PolledPending()
    announced: dict[bytes, list[Flashblock]] = {}
    highest, longest = 0, 0
    for number, count in seen:
        flashblock = see(pending, block(number, count))
        if count and number > highest:
            highest, longest = number, 0
        news = number == highest and count > longest
        assert (flashblock is not None) == news
        if flashblock is None:
            continue
        longest = count
        assert decode(encode(flashblock)) == flashblock, "as feeds send them"
        so_far = announced.setdefault(flashblock.payload_id, [])
        assert flashblock.index == len(so_far)
        assert (flashblock.base is not None) == (flashblock.index == 0)
        so_far.append(flashblock)
        whole = tuple(each for some in so_far for each in some.diff.transactions)
        assert whole == TRANSACTIONS[:count]
