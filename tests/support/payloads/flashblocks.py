"""Flashblocks for tests: arbitrary ones, and small ones with fields to override."""

from dataclasses import replace

from hypothesis import strategies as st

from foreblock.types import Base, Diff, Flashblock, FlashblockId

NUMBERS = st.integers(0, 2**64 - 1)
HASHES = st.binary(min_size=32, max_size=32)
BASES = st.builds(
    Base,
    parent_hash=HASHES,
    parent_beacon_block_root=HASHES,
    prev_randao=HASHES,
    fee_recipient=st.binary(min_size=20, max_size=20),
    block_number=NUMBERS,
    gas_limit=NUMBERS,
    timestamp=NUMBERS,
    extra_data=st.binary(max_size=32),
    base_fee_per_gas=st.integers(0, 2**256 - 1),
)
DIFFS = st.builds(
    Diff,
    state_root=HASHES,
    receipts_root=HASHES,
    logs_bloom=st.binary(min_size=256, max_size=256),
    gas_used=NUMBERS,
    block_hash=HASHES,
    transactions=st.lists(st.binary(min_size=1, max_size=200), max_size=4).map(tuple),
    withdrawals_root=HASHES,
    blob_gas_used=NUMBERS,
    post_exec_tx=st.none() | st.binary(min_size=1, max_size=200),
)
# On the wire, position 0-0 means that there is none.
PLACES = st.builds(FlashblockId, NUMBERS, NUMBERS).filter(lambda at: at != FlashblockId(0, 0))


@st.composite
def flashblocks(draw: st.DrawFn) -> Flashblock:
    """Any flashblock that can occur on a feed."""
    index = draw(st.just(0) | st.integers(1, 2**64 - 1))
    base = draw(BASES) if index == 0 else None
    return Flashblock(
        payload_id=draw(st.binary(min_size=8, max_size=8)),
        index=index,
        base=base,
        diff=draw(DIFFS),
        block_number=base.block_number if base else draw(NUMBERS),
        previous=draw(st.none() | PLACES),
    )


def hash_of(name: str) -> bytes:
    """A hash from a name of up to 32 letters."""
    return name.encode().rjust(32, b".")


def job(name: str) -> bytes:
    """A payload id from a name of up to 8 letters."""
    return name.encode().rjust(8, b".")


def first(
    block: int, payload: str, on: bytes, block_hash: bytes, previous: FlashblockId | None = None
) -> Flashblock:
    """Index 0 of a job, on the sealed block of this hash; `block_hash` is its receipts root too."""
    base = Base(on, bytes(32), bytes(32), bytes(20), block, 30_000_000, 1_000 + 2 * block, b"", 7)
    return Flashblock(job(payload), 0, base, _diff(block_hash), block, previous)


def later(
    block: int,
    payload: str,
    index: int,
    block_hash: bytes,
    previous: FlashblockId | None = None,
) -> Flashblock:
    """A later index of a job."""
    return Flashblock(job(payload), index, None, _diff(block_hash), block, previous)


def with_transactions(flashblock: Flashblock, *transactions: bytes) -> Flashblock:
    """Return the flashblock with these transactions."""
    return replace(flashblock, diff=replace(flashblock.diff, transactions=transactions))


def _diff(block_hash: bytes) -> Diff:
    return Diff(bytes(32), block_hash, bytes(256), 21_000, block_hash, (), bytes(32), 0)
