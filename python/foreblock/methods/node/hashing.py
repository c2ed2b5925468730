"""web3_sha3: the Keccak-256 hash of some bytes."""

from collections.abc import Awaitable
from functools import partial

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import Params, data, read_in_turn, reader
from foreblock.methods.shapes import write_data
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import keccak256


class DataParams(Params):
    """The arguments of web3_sha3."""

    data: str


_read_data = reader(DataParams)


class HashMethods:
    """The method that hashes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def sha3(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The Keccak-256 hash of the data."""
        return self._scheduler.run(partial(_hashed, raw), view.client)


def _hashed(raw: Raw, _pace: Pace) -> Steps[bytes]:
    return (yield from read_in_turn(_hash, raw))


def _hash(raw: Raw) -> bytes:
    return write_data(keccak256(data(_read_data(raw).data, 0)))
