"""An unsigned transaction: its encoding and JSON as geth writes them. No I/O.

Its signature is zero. Which type it has follows from what it holds, as in geth: a gas price
makes it legacy. Lists of thousands of entries are written before the rest, in steps.
"""

from collections.abc import Sequence

from msgspec import Struct

from foreblock.methods.shapes import array, members, write_data, write_quantity
from foreblock.primitives import RlpItem, encode_rlp, encode_rlp_list
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import keccak256

LEGACY, DYNAMIC_FEE, BLOB, SET_CODE = 0, 2, 3, 4


class AccessEntry(Struct, rename="camel"):
    """An address and the slots of it that will be used, as hex texts."""

    address: str
    storage_keys: list[str] | None = None


class AuthorizationEntry(Struct, rename="camel"):
    """An authorization to set code, as hex texts."""

    chain_id: str
    address: str
    nonce: str
    y_parity: str
    r: str
    s: str


class WrittenList(Struct, frozen=True):
    """A list of a transaction, encoded and as JSON."""

    encoded: bytes = b"\xc0"
    text: bytes = b"[]"
    length: int = 0


class UnsignedTransaction(Struct, kw_only=True):
    """The fields; `gas_price` or both fees are set."""

    chain_id: int
    nonce: int
    to: bytes | None
    gas: int
    value: int
    data: bytes
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    access_list: WrittenList = WrittenList()
    blob_hashes: Sequence[bytes] | None = None
    max_fee_per_blob_gas: int | None = None
    authorizations: WrittenList | None = None

    @property
    def type(self) -> int:
        """Its number by EIP-2718."""
        if self.gas_price is not None:
            return LEGACY
        if self.authorizations is not None:
            return SET_CODE
        return DYNAMIC_FEE if self.blob_hashes is None else BLOB

    def encode(self) -> bytes:
        """The EIP-2718 encoding with a signature of zeros."""
        to, type_ = self.to or b"", self.type
        signature: tuple[RlpItem, ...] = (0, 0, 0)
        if type_ == LEGACY:
            price = self.gas_price or 0
            return encode_rlp((self.nonce, price, self.gas, to, self.value, self.data, *signature))
        before: tuple[RlpItem, ...] = (
            self.chain_id,
            self.nonce,
            self.max_priority_fee_per_gas or 0,
            self.max_fee_per_gas or 0,
            self.gas,
            to,
            self.value,
            self.data,
        )
        parts = [*map(encode_rlp, before), self.access_list.encoded]
        if type_ == BLOB:
            parts += [
                encode_rlp(self.max_fee_per_blob_gas or 0),
                encode_rlp(list(self.blob_hashes or ())),
            ]
        if self.authorizations is not None:
            parts.append(self.authorizations.encoded)
        return bytes([type_]) + encode_rlp_list([*parts, *map(encode_rlp, signature)])

    def render(self, encoded: bytes) -> bytes:
        """The JSON object; fields of other types are null or absent, as in geth."""
        type_ = self.type
        typed = type_ != LEGACY
        fields = {b"type": write_quantity(type_)}
        if typed:
            fields[b"chainId"] = write_quantity(self.chain_id)
        fields |= {
            b"nonce": write_quantity(self.nonce),
            b"to": b"null" if self.to is None else write_data(self.to),
            b"gas": write_quantity(self.gas),
            b"gasPrice": _optional(None if typed else self.gas_price),
            b"maxPriorityFeePerGas": _optional(self.max_priority_fee_per_gas if typed else None),
            b"maxFeePerGas": _optional(self.max_fee_per_gas if typed else None),
        }
        if type_ == BLOB:
            fields[b"maxFeePerBlobGas"] = write_quantity(self.max_fee_per_blob_gas or 0)
        fields |= {b"value": write_quantity(self.value), b"input": write_data(self.data)}
        if typed:
            fields[b"accessList"] = self.access_list.text
        if type_ == BLOB:
            hashes = [write_data(each) for each in self.blob_hashes or ()]
            fields[b"blobVersionedHashes"] = array(hashes)
        if typed and self.authorizations is not None and self.authorizations.length:
            fields[b"authorizationList"] = self.authorizations.text
        zero = b'"0x0"'
        fields |= {b"v": zero, b"r": zero, b"s": zero}
        if typed:
            fields[b"yParity"] = zero
        fields[b"hash"] = write_data(keccak256(encoded))
        return b"{%b}" % members(fields)


def write_access_list(entries: Sequence[AccessEntry], pace: Pace) -> Steps[WrittenList]:
    """An access list, entry by entry."""
    encoded, texts = [], []
    for entry in entries:
        address, keys, shown = _bytes(entry.address), [], []
        for text in entry.storage_keys or ():
            key = _bytes(text)
            keys.append(encode_rlp(key))
            shown.append(write_data(key))
            if pace.is_over():
                yield None
        encoded.append(encode_rlp_list([encode_rlp(address), encode_rlp_list(keys)]))
        texts.append(b'{"address":%b,"storageKeys":%b}' % (write_data(address), array(shown)))
        if pace.is_over():
            yield None
    return WrittenList(encode_rlp_list(encoded), array(texts), len(texts))


def write_authorizations(entries: Sequence[AuthorizationEntry], pace: Pace) -> Steps[WrittenList]:
    """A list of authorizations, one by one."""
    encoded, texts = [], []
    for entry in entries:
        encoded.append(encode_rlp(_authorized(entry)))
        texts.append(_authorization(entry))
        if pace.is_over():
            yield None
    return WrittenList(encode_rlp_list(encoded), array(texts), len(texts))


def _authorized(entry: AuthorizationEntry) -> RlpItem:
    numbers = (entry.nonce, entry.y_parity, entry.r, entry.s)
    return [int(entry.chain_id, 16), _bytes(entry.address), *(int(each, 16) for each in numbers)]


def _authorization(entry: AuthorizationEntry) -> bytes:
    numbers = {
        b"chainId": entry.chain_id,
        b"nonce": entry.nonce,
        b"yParity": entry.y_parity,
        b"r": entry.r,
        b"s": entry.s,
    }
    fields = {name: write_quantity(int(text, 16)) for name, text in numbers.items()}
    return b"{%b}" % members({b"address": write_data(_bytes(entry.address)), **fields})


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _optional(number: int | None) -> bytes:
    return b"null" if number is None else write_quantity(number)
