"""Read the responses to a plan, strictly: JSON to values, or a refusal with its name. No I/O.

A failure never becomes a value: a null, a missing field, a wrong length, another key, an error or a
missing response leaves its keys without one. Nothing is corrected, except that an absent account
may have zeros in place of the empty hashes. The values are still claims; only codes and headers are
checked here, by their hashes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import CallerError
from foreblock.follow import extractor
from foreblock.follow.fetch_result import (
    EMPTY_CODE,
    ClaimedAccount,
    ClaimedHeader,
    ClaimedProof,
    ClaimedSlot,
    FetchResult,
)
from foreblock.follow.requests import (
    GetBalance,
    GetCode,
    GetHeader,
    GetProof,
    GetStorageAt,
    GetStorageValues,
    GetTransactionCount,
    ReadByCall,
    StateRequest,
)
from foreblock.primitives import (
    HASH_BYTES,
    ZERO_HASH,
    format_data,
    parse_address,
    parse_data,
    parse_hash,
    parse_quantity,
)
from foreblock.types import keccak256
from foreblock.upstream.block_json import rebuild_header
from foreblock.upstream.json_rpc import RefusalKind, is_null, refuse

T = TypeVar("T")

# Bounds of a proof: a path has 64 nibbles, and no node of a state is longer than a full branch.
DEEPEST_PROOF: Final = 65
LONGEST_NODE: Final = 1024
_EMPTY_ROOT: Final = keccak256(b"\x80")


class _SlotJson(Struct):
    key: str
    value: str
    proof: list[str]


class _ProofJson(Struct, rename="camel"):
    address: str
    balance: str
    nonce: str
    code_hash: str
    storage_hash: str
    account_proof: list[str]
    storage_proof: list[_SlotJson]


_text: Final = msgspec.json.Decoder(str)
_proof: Final = msgspec.json.Decoder(_ProofJson)
_values: Final = msgspec.json.Decoder(dict[str, list[str]])

SlotValues = dict[bytes, list[tuple[int, int]]]


class ResponseReader:
    """Reads the results of one plan, one by one; `found` has the values at the end."""

    def __init__(self, source: str = "") -> None:
        """`source` names the upstream whose results they are."""
        self._source: Final = source
        self._found: Final = FetchResult()
        self._balances: Final[dict[bytes, int]] = {}
        self._nonces: Final[dict[bytes, int]] = {}
        self.is_elsewhere = False  # a number is not the expected block

    @property
    def found(self) -> FetchResult:
        """All values that were read; none if they are of another block."""
        if self.is_elsewhere:
            return FetchResult()
        for address in self._balances.keys() & self._nonces.keys() & self._found.codes_of.keys():
            account = ClaimedAccount(
                self._nonces[address],
                self._balances[address],
                self._found.codes_of[address],
                None,
            )
            self._found.accounts.setdefault(address, account)
        said = self._found.accounts.keys() | self._found.slots.keys()
        self._found.said_by = dict.fromkeys(said, self._source)
        return self._found

    def take(self, request: StateRequest, result: Raw) -> None:
        """Read one result. Raises `RefusedAnswer`; nothing of it is kept then."""
        if is_null(result):
            # geth has null for a block that it does not know.
            kind = RefusalKind.NO_BLOCK if isinstance(request, GetHeader) else RefusalKind.NULL
            raise refuse(kind, request.method)
        match request:
            case GetProof():
                proof = read_proof(request, result)
                self._found.put_proof(proof._replace(source=self._source))
            case GetHeader():
                self._take_header(request, result)
            case GetStorageValues() | ReadByCall() | GetStorageAt():
                for address, values in _read_slots(request, result).items():
                    self._found.put_slots(address, values)
            case _:
                self._take_piece(request, result)

    def _take_piece(self, request: GetBalance | GetTransactionCount | GetCode, result: Raw) -> None:
        match request:
            case GetBalance(address):
                self._balances[address] = _quantity(_decoded(_text, result), 256)
            case GetTransactionCount(address):
                self._nonces[address] = _quantity(_decoded(_text, result), 64)
            case GetCode(address):
                self._found.put_code(address, read_code(request, result))

    def _take_header(self, request: GetHeader, result: Raw) -> None:
        header = read_header(request.number, result)
        if not request.hash:
            self._found.headers[header.number] = header
        elif header.hash != request.hash:
            self.is_elsewhere = True
            raise refuse(RefusalKind.WRONG_BLOCK, f"{header.number} is {format_data(header.hash)}")


def read_proof(request: GetProof, result: Raw) -> ClaimedProof:
    """The proof of an account with its slots."""
    json = _decoded(_proof, result)
    if _hex(parse_address, json.address) != request.address:
        raise refuse(RefusalKind.WRONG_KEY, f"a proof of {json.address}")
    code_hash, root = _fixed(json.code_hash), _fixed(json.storage_hash)
    account = ClaimedAccount(
        _quantity(json.nonce, 64),
        _quantity(json.balance, 256),
        EMPTY_CODE if code_hash == ZERO_HASH else code_hash,
        _EMPTY_ROOT if root == ZERO_HASH else root,
    )
    slots = {_key(each.key): each for each in json.storage_proof}
    if slots.keys() != set(request.slots) or len(json.storage_proof) != len(slots):
        raise refuse(RefusalKind.WRONG_KEY, "slots that were not requested, or not all")
    return ClaimedProof(
        request.address,
        account,
        _nodes(json.account_proof),
        tuple(
            ClaimedSlot(slot, _quantity(each.value, 256), _nodes(each.proof))
            for slot, each in slots.items()
        ),
    )


def _read_slots(request: GetStorageValues | ReadByCall | GetStorageAt, result: Raw) -> SlotValues:
    match request:
        case GetStorageValues(slots):
            return read_values(slots, result)
        case ReadByCall(slots):
            return read_call(slots, result)
        case GetStorageAt(address, slot):
            return {address: [(slot, _word(_decoded(_text, result)))]}


def read_values(slots: Mapping[bytes, Sequence[int]], result: Raw) -> SlotValues:
    """The values of eth_getStorageValues."""
    lists = {_hex(parse_address, at): each for at, each in _decoded(_values, result).items()}
    if lists.keys() != slots.keys():
        raise refuse(RefusalKind.WRONG_KEY, "accounts that were not requested, or not all")
    found = {}
    for address, keys in slots.items():
        if len(lists[address]) != len(keys):
            why = f"{len(lists[address])} values for {len(keys)} slots"
            raise refuse(RefusalKind.WRONG_LENGTH, why)
        found[address] = list(zip(keys, map(_word, lists[address]), strict=True))
    return found


def read_call(slots: Mapping[bytes, Sequence[int]], result: Raw) -> SlotValues:
    """The values that a call with overrides returns."""
    output = _hex(parse_data, _decoded(_text, result))
    try:
        return extractor.words(slots, output)
    except ValueError as why:
        raise refuse(RefusalKind.WRONG_LENGTH, str(why)) from why


def read_code(request: GetCode, result: Raw) -> bytes:
    """Return a code with the requested hash."""
    code = _hex(parse_data, _decoded(_text, result))
    if request.hash and keccak256(code) != request.hash:
        why = f"{len(code)} bytes with the hash {format_data(keccak256(code))}"
        raise refuse(RefusalKind.WRONG_CODE, why)
    return code


def read_header(number: int, result: Raw) -> ClaimedHeader:
    """A header, whose hash is computed from all of it."""
    answer = _decoded(msgspec.json.Decoder(dict[str, Any]), result)
    try:
        header = rebuild_header(answer)
        claimed = parse_hash(answer.get("hash"))
    except (ValueError, CallerError, OverflowError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, str(why)) from why
    if header.number != number:
        raise refuse(RefusalKind.WRONG_KEY, f"block {header.number}")
    if header.hash != claimed:
        raise refuse(RefusalKind.WRONG_BLOCK, f"its header has the hash {format_data(header.hash)}")
    return ClaimedHeader(number, header.hash, header.parent_hash, header.state_root)


def _decoded(decoder: msgspec.json.Decoder[T], result: Raw) -> T:
    try:
        return decoder.decode(result)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, str(why)) from why


def _hex(parse: Callable[[object], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as why:
        raise refuse(RefusalKind.BAD_HEX, f"{text[:80]}: {why}") from why


def _quantity(text: str, bits: int) -> int:
    return _hex(lambda value: parse_quantity(value, bits), text)


def _word(text: str) -> int:
    return int.from_bytes(_fixed(text))


def _fixed(text: str) -> bytes:
    data = _hex(parse_data, text)
    if len(data) != HASH_BYTES:
        raise refuse(RefusalKind.WRONG_LENGTH, f"{len(data)} bytes in place of {HASH_BYTES}")
    return data


def _key(text: str) -> int:
    """Return the slot of a proof: as requested, or as a quantity, as some nodes write it."""
    return _word(text) if len(text) == 2 + 2 * HASH_BYTES else _quantity(text, 256)


def _nodes(texts: Sequence[str]) -> tuple[bytes, ...]:
    if len(texts) > DEEPEST_PROOF:
        raise refuse(RefusalKind.LONG_PROOF, f"{len(texts)} nodes on one path")
    longest = max(map(len, texts), default=0)
    if longest > 2 + 2 * LONGEST_NODE:
        raise refuse(RefusalKind.LONG_PROOF, f"a node of {(longest - 2) // 2} bytes")
    return tuple(_hex(parse_data, each) for each in texts)
