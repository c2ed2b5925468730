"""eth_sign, personal_sign, eth_signTypedData_v4: signatures of accounts whose keys are here.

A message is signed with the prefix of EIP-191, so that it is never a transaction. Signatures have
65 bytes; the last is 27 or 28. The digest of typed data (EIP-712) is computed in steps:

    digest = keccak256(0x19 0x01 ‖ hash of the domain ‖ hash of the message)

The type of the domain may be left out; it then has the fields of the domain, in the order of the
standard. A struct that is null counts as 32 zero bytes, as in wallets. Numbers may be JSON
numbers, decimal or hexadecimal texts.
"""

import json
import re
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

from msgspec import Raw

from foreblock.errors import LimitExceeded
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import Params, address, data, read_in_turn, reader, refuse
from foreblock.methods.sequencing import Keys
from foreblock.methods.shapes import write_data
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import keccak256, sign_digest

MOST_BYTES: Final = 64 * 1024  # of the JSON text, which is read within a millisecond
MOST_TYPES: Final = 256
MOST_DEPTH: Final = 64  # of structs and arrays in each other

DOMAIN: Final = "EIP712Domain"
DOMAIN_FIELDS: Final = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}
ARGUMENT: Final = 1  # the argument of the methods that has typed data

_PREFIX: Final = b"\x19\x01"
_WORD: Final = 32
_ADDRESS: Final = 20
_ARRAY: Final = re.compile(r"(.+)\[(\d{0,9})\]", re.DOTALL)
_INTEGER: Final = re.compile(r"(u?)int(\d{0,3})")
_FIXED: Final = re.compile(r"bytes([1-9]|[12]\d|3[0-2])")
_LONGEST_NUMBER: Final = 80  # characters


def _refuse(path: str, why: str) -> NoReturn:
    refuse(ARGUMENT, path, why)


class Field(NamedTuple):
    """A member of a struct."""

    name: str
    type: str


class TypedData(NamedTuple):
    """Typed data, its form checked."""

    types: dict[str, tuple[Field, ...]]
    primary: str
    domain: Mapping[str, Any]
    message: Any


def read_typed_data(given: object) -> TypedData:
    """Typed data from an object or its JSON text; raises `InvalidParams`."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            _refuse("", "expected typed data, found a text that is no JSON")
    if not isinstance(given, dict):
        _refuse("", "expected typed data: an object with types, primaryType, domain and message")
    domain = given.get("domain")
    if not isinstance(domain, dict):
        _refuse("$.domain", "expected an object")
    types = _read_types(given.get("types"))
    if DOMAIN not in types:
        present = (Field(*each) for each in DOMAIN_FIELDS.items() if each[0] in domain)
        types[DOMAIN] = tuple(present)
    primary = given.get("primaryType")
    if not isinstance(primary, str) or primary not in types:
        _refuse("$.primaryType", "expected the name of one of the types")
    return TypedData(types, primary, domain, given.get("message"))


def digest_of(data: TypedData, pace: Pace) -> Steps[bytes]:
    """The 32 bytes that are signed; raises `InvalidParams`."""
    encoder = _Encoder(data.types, pace)
    parts = [_PREFIX, (yield from encoder.struct(DOMAIN, data.domain, "$.domain", 0))]
    if data.primary != DOMAIN:
        parts.append((yield from encoder.struct(data.primary, data.message, "$.message", 0)))
    return keccak256(b"".join(parts))


class _Encoder:
    """Hashes values by their types; the hash of each type is made once."""

    def __init__(self, types: Mapping[str, Sequence[Field]], pace: Pace) -> None:
        self._types: Final = types
        self._pace: Final = pace
        self._hashes: Final[dict[str, bytes]] = {}

    def struct(self, name: str, value: object, path: str, depth: int) -> Steps[bytes]:
        """The hash of a struct."""
        if not isinstance(value, dict):
            _refuse(path, f"expected an object, of type {name[:80]}")
        parts = [self._type_hash(name)]
        for field in self._types[name]:
            place = f"{path}.{field.name[:80]}"
            if field.name not in value:
                _refuse(place, "is missing")
            parts.append((yield from self._word(field.type, value[field.name], place, depth + 1)))
        return keccak256(b"".join(parts))

    def _word(self, kind: str, value: object, path: str, depth: int) -> Steps[bytes]:
        """The 32 bytes that encode a value."""
        if depth > MOST_DEPTH:
            _refuse(path, f"nested more than {MOST_DEPTH} deep")
        if self._pace.is_over():
            yield None
        if kind in self._types:
            if value is None:
                return bytes(_WORD)
            return (yield from self.struct(kind, value, path, depth))
        array = _ARRAY.fullmatch(kind)
        if array is None:
            return _atom(kind, value, path)
        return (yield from self._array(array, value, path, depth))

    def _array(self, kind: re.Match[str], value: object, path: str, depth: int) -> Steps[bytes]:
        member, length = kind[1], kind[2]
        if not isinstance(value, list):
            _refuse(path, "expected an array")
        if length and len(value) != int(length):
            _refuse(path, f"expected {int(length)} items, found {len(value)}")
        words = []
        for number, each in enumerate(value):
            words.append((yield from self._word(member, each, f"{path}[{number}]", depth + 1)))
        return keccak256(b"".join(words))

    def _type_hash(self, name: str) -> bytes:
        found = self._hashes.get(name)
        if found is None:
            found = self._hashes[name] = keccak256(self._encoded_type(name).encode())
        return found

    def _encoded_type(self, name: str) -> str:
        """A type and those that it refers to, which follow in the order of their names."""
        reached, ahead = {name}, [name]
        while ahead:
            for field in self._types[ahead.pop()]:
                base = field.type.partition("[")[0]
                if base in self._types and base not in reached:
                    reached.add(base)
                    ahead.append(base)
        return "".join(map(self._declared, (name, *sorted(reached - {name}))))

    def _declared(self, name: str) -> str:
        fields = ",".join(f"{each.type} {each.name}" for each in self._types[name])
        return f"{name}({fields})"


def _read_types(given: object) -> dict[str, tuple[Field, ...]]:
    if not isinstance(given, dict):
        _refuse("$.types", "expected an object")
    if len(given) > MOST_TYPES:
        _refuse("$.types", f"{len(given)} types are too many, the most is {MOST_TYPES}")
    return {name: _read_fields(name, fields) for name, fields in given.items()}


def _read_fields(name: str, given: object) -> tuple[Field, ...]:
    place = f"$.types.{name[:80]}"
    if not isinstance(given, list):
        _refuse(place, "expected an array")
    fields = []
    for each in given:
        match each:
            case {"name": str(member), "type": str(kind)}:
                fields.append(Field(member, kind))
            case _:
                _refuse(place, "expected members with a name and a type")
    return tuple(fields)


def _atom(kind: str, value: object, path: str) -> bytes:
    """The word of a value that is neither a struct nor an array."""
    if kind == "string":
        if not isinstance(value, str):
            _refuse(path, "expected a string")
        return keccak256(value.encode("utf-8", "replace"))
    if kind == "bytes":
        return keccak256(_hex(value, None, path))
    if kind == "bool":
        if not isinstance(value, bool):
            _refuse(path, "expected true or false")
        return int(value).to_bytes(_WORD)
    if kind == "address":
        return _hex(value, _ADDRESS, path).rjust(_WORD, b"\0")
    if (fixed := _FIXED.fullmatch(kind)) is not None:
        return _hex(value, int(fixed[1]), path).ljust(_WORD, b"\0")
    if (integer := _INTEGER.fullmatch(kind)) is not None:
        return _number(value, int(integer[2] or 256), path, signed=not integer[1])
    _refuse(path, f"unknown type {kind[:80]!r}")


def _hex(value: object, length: int | None, path: str) -> bytes:
    if isinstance(value, str) and value.startswith("0x"):
        try:
            found = bytes.fromhex(value[2:])
        except ValueError:
            _refuse(path, "expected hexadecimal digits")
        if length is None or (len(found) == length and len(value) == 2 + 2 * length):
            return found
    what = "" if length is None else f" of {length} bytes"
    _refuse(path, f"expected a hexadecimal text{what}")


def _number(value: object, bits: int, path: str, *, signed: bool) -> bytes:
    if not 0 < bits <= 256 or bits % 8:
        _refuse(path, f"there is no integer of {bits} bits")
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        try:
            value = int(value, 16 if value.lower().lstrip("-").startswith("0x") else 10)
        except ValueError:
            _refuse(path, f"expected a number, found {value!r}")
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse(path, "expected a whole number")
    least, above = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not least <= value < above:
        _refuse(path, f"the number does not fit into {bits} bits")
    return value.to_bytes(_WORD, signed=signed)


MOST_MESSAGE: Final = 2 * MOST_BYTES + 128  # characters of the arguments


class SignParams(Params):
    """The arguments of eth_sign."""

    address: str
    data: str


class PersonalSignParams(Params):
    """The arguments of personal_sign; a passphrase is ignored."""

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
    """Methods that sign messages and typed data."""

    def __init__(self, keys: Keys, scheduler: Scheduler) -> None:
        self._keys: Final = keys
        self._scheduler: Final = scheduler

    def sign(self, _view: LedgerView, raw: Raw) -> bytes:
        """The signature of a message by one of the accounts, with the prefix of EIP-191."""
        _check_length(raw, MOST_MESSAGE)
        params = _read_sign(raw)
        return self._sign_message(address(params.address, 0), data(params.data, 1))

    def personal_sign(self, _view: LedgerView, raw: Raw) -> bytes:
        """Sign a message, which comes first, as eth_sign does."""
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
