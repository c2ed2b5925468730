"""A polled pending block as flashblocks. No I/O.

For chains whose feed is closed, and whose endpoints show the block in progress as `pending`. Each
time it has grown, its new transactions are one flashblock. The polling interval decides how
many there are, so indices are not those of the chain's own feed.

Endpoints of many nodes go back: a block that is older than what was seen, or a shorter form of it,
is no news. Another block at the same height, or other transactions in it, is a new build job.
"""

from typing import Final, TypeVar

from msgspec import Struct

from foreblock.errors import MalformedFlashblock
from foreblock.primitives import ZERO_HASH
from foreblock.types import Base, Diff, Flashblock, FlashblockId, Header, keccak256

T = TypeVar("T")

_PAYLOAD_ID_BYTES: Final = 8


class _Job(Struct, frozen=True):
    """The growing block: its base, and the announced transactions."""

    base: Base
    payload_id: bytes
    index: int
    transactions: tuple[bytes, ...]


class PolledPending:
    """Turns polled `pending` blocks into flashblocks."""

    def __init__(self) -> None:
        self._job: _Job | None = None
        self._jobs = 0

    def see(
        self, header: Header, transactions: tuple[bytes, ...], block_hash: bytes
    ) -> Flashblock | None:
        """Return the flashblock with the new transactions of this block; None without any.

        `block_hash` is the hash that the endpoint provides, or zero. Raises
        `MalformedFlashblock` for a block of no OP chain from Ecotone on.
        """
        base, job = _base(header), self._job
        if not transactions or (job and base.block_number < job.base.block_number):
            return None
        if job is None or base != job.base or not _agree(job.transactions, transactions):
            self._job = self._begin(base, transactions)
            return _flashblock(self._job, transactions, header, block_hash)
        new = transactions[len(job.transactions) :]
        if not new:
            return None
        self._job = _Job(base, job.payload_id, job.index + 1, transactions)
        return _flashblock(self._job, new, header, block_hash)

    def _begin(self, base: Base, transactions: tuple[bytes, ...]) -> _Job:
        self._jobs += 1
        name = base.parent_hash + base.timestamp.to_bytes(8) + self._jobs.to_bytes(8)
        return _Job(base, keccak256(name)[:_PAYLOAD_ID_BYTES], 0, transactions)


def _agree(announced: tuple[bytes, ...], seen: tuple[bytes, ...]) -> bool:
    """Return whether one is a prefix of the other."""
    return all(map(bytes.__eq__, announced, seen))


def _base(header: Header) -> Base:
    return Base(
        parent_hash=header.parent_hash,
        parent_beacon_block_root=_needed(
            header.parent_beacon_block_root, "parent_beacon_block_root"
        ),
        prev_randao=header.mix_hash,
        fee_recipient=header.beneficiary,
        block_number=header.number,
        gas_limit=header.gas_limit,
        timestamp=header.timestamp,
        extra_data=header.extra_data,
        base_fee_per_gas=_needed(header.base_fee_per_gas, "base_fee_per_gas"),
    )


def _flashblock(job: _Job, new: tuple[bytes, ...], header: Header, block_hash: bytes) -> Flashblock:
    number = job.base.block_number
    return Flashblock(
        payload_id=job.payload_id,
        index=job.index,
        base=job.base if job.index == 0 else None,
        diff=Diff(
            state_root=header.state_root,
            receipts_root=header.receipts_root,
            logs_bloom=header.logs_bloom,
            gas_used=header.gas_used,
            block_hash=block_hash,
            transactions=new,
            withdrawals_root=header.withdrawals_root or ZERO_HASH,
            blob_gas_used=header.blob_gas_used or 0,
        ),
        block_number=number,
        previous=FlashblockId(number, job.index - 1) if job.index else None,
    )


def _needed(value: T | None, field: str) -> T:
    if value is None:
        raise MalformedFlashblock(f"base.{field}", "missing in the pending block")
    return value
