"""eth_sign, personal_sign, eth_signTypedData_v4: signatures of accounts whose keys are here.

A message is signed with the prefix of EIP-191, so that it is never a transaction; typed data by
EIP-712 (`typed_data`). Signatures have 65 bytes, the last is 27 or 28.
"""

import json
from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import LimitExceeded
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.typed_data import MOST_BYTES, TypedData, digest_of, read_typed_data
from foreblock.methods.keys import Keys
from foreblock.methods.params import Params, address, data, read_in_turn, reader, refuse
from foreblock.methods.shapes import write_data
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import keccak256, sign_digest

MOST_MESSAGE: Final = 2 * MOST_BYTES + 128  # characters of the arguments


class SignParams(Params):
    """The arguments of eth_sign."""

    address: str
    data: str


class PersonalSignParams(Params):
    """The arguments of personal_sign; a passphrase means nothing here."""

    data: str
    address: str
    passphrase: str | None = None


class TypedDataParams(Params):
    """The arguments of eth_signTypedData_v4."""

    address: str
    typed_data: Raw


_read_sign = reader(SignParams)
_read_personal = reader(PersonalSignParams)
_read_typed = reader(TypedDataParams)


class SignMethods:
    """Methods that sign what is no transaction."""

    def __init__(self, keys: Keys, scheduler: Scheduler) -> None:
        self._keys: Final = keys
        self._scheduler: Final = scheduler

    def sign(self, _view: LedgerView, raw: Raw) -> bytes:
        """The signature of a message by one of the accounts, with the prefix of EIP-191."""
        _check_length(raw, MOST_MESSAGE)
        params = _read_sign(raw)
        return self._sign_message(address(params.address, 0), data(params.data, 1))

    def personal_sign(self, _view: LedgerView, raw: Raw) -> bytes:
        """The same as eth_sign, with the message first."""
        _check_length(raw, MOST_MESSAGE)
        params = _read_personal(raw)
        return self._sign_message(address(params.address, 1), data(params.data, 0))

    def sign_typed_data(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The signature of typed data by one of the accounts (EIP-712)."""
        _check_length(raw, MOST_BYTES)
        params = _read_typed(raw)
        secret = self._keys.required(address(params.address, 0))
        steps = partial(_typed_steps, params.typed_data, secret)
        return self._scheduler.run(steps, view.client)

    def _sign_message(self, who: bytes, message: bytes) -> bytes:
        secret = self._keys.required(who)
        prefix = b"\x19Ethereum Signed Message:\n%d" % len(message)
        return write_data(sign_digest(keccak256(prefix + message), secret))


def _typed_steps(raw: Raw, secret: bytes, pace: Pace) -> Steps[bytes]:
    typed = yield from read_in_turn(_parsed, raw)
    digest = yield from digest_of(typed, pace)
    return write_data(sign_digest(digest, secret))


def _parsed(raw: Raw) -> TypedData:
    try:
        given = json.loads(bytes(raw))  # exact for numbers of any size
    except (ValueError, RecursionError):
        refuse(1, "", "nested too deeply, or a number is too long")
    return read_typed_data(given)


def _check_length(raw: Raw, most: int) -> None:
    if len(raw) > most:
        raise LimitExceeded(f"the arguments have {len(raw)} bytes, limit {most}")
