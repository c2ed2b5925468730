"""One request for state: its form on the wire, and the keys that its response contains. No I/O.

`responses` reads the results. A request about a state names its block in the form that the endpoint
understands.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from foreblock.follow import extractor
from foreblock.primitives import format_data, format_quantity

WORD_BYTES: Final = 32


class BlockForm(StrEnum):
    """How a block is named to an endpoint, the safest first."""

    CANONICAL = "canonical hash"  # EIP-1898 with requireCanonical
    HASH = "hash"  # EIP-1898
    BARE = "bare hash"  # the hash in place of a number
    NUMBER = "number"


class BlockAt(NamedTuple):
    """The block whose state is requested."""

    number: int
    hash: bytes

    def parameter(self, form: BlockForm) -> object:
        """The block parameter of a request."""
        name = format_data(self.hash)
        match form:
            case BlockForm.CANONICAL:
                return {"blockHash": name, "requireCanonical": True}
            case BlockForm.HASH:
                return {"blockHash": name}
            case BlockForm.BARE:
                return name
            case BlockForm.NUMBER:
                return format_quantity(self.number)


class GetProof(Struct, frozen=True):
    """An account with some of its slots, and the nodes that prove them."""

    address: bytes
    slots: tuple[int, ...] = ()

    method: ClassVar[str] = "eth_getProof"

    def params(self, block: object) -> list[object]:
        return [format_data(self.address), [word(slot) for slot in self.slots], block]


class GetStorageValues(Struct, frozen=True):
    """Slots of several accounts, by eth_getStorageValues (execution-apis#756)."""

    slots: Mapping[bytes, tuple[int, ...]]

    method: ClassVar[str] = "eth_getStorageValues"

    def params(self, block: object) -> list[object]:
        slots = {format_data(at): list(map(word, keys)) for at, keys in self.slots.items()}
        return [slots, block]


class ReadByCall(Struct, frozen=True):
    """Slots of several accounts, by a call whose overrides read them."""

    slots: Mapping[bytes, tuple[int, ...]]

    method: ClassVar[str] = "eth_call"

    def params(self, block: object) -> list[object]:
        call = {
            "to": format_data(extractor.DISPATCHER_ADDRESS),
            "data": format_data(extractor.calldata(self.slots)),
        }
        codes = extractor.overrides(self.slots)
        changes = {format_data(at): {"code": format_data(code)} for at, code in codes.items()}
        return [call, block, changes]


class GetStorageAt(Struct, frozen=True):
    """One slot."""

    address: bytes
    slot: int

    method: ClassVar[str] = "eth_getStorageAt"

    def params(self, block: object) -> list[object]:
        return [format_data(self.address), word(self.slot), block]


class GetBalance(Struct, frozen=True):
    """The balance of an account, for endpoints without proofs."""

    address: bytes

    method: ClassVar[str] = "eth_getBalance"

    def params(self, block: object) -> list[object]:
        return [format_data(self.address), block]


class GetTransactionCount(Struct, frozen=True):
    """The nonce of an account, for endpoints without proofs."""

    address: bytes

    method: ClassVar[str] = "eth_getTransactionCount"

    def params(self, block: object) -> list[object]:
        return [format_data(self.address), block]


class GetCode(Struct, frozen=True):
    """The code of an account; `hash` is the expected one, empty if it is not known."""

    address: bytes
    hash: bytes = b""

    method: ClassVar[str] = "eth_getCode"

    def params(self, block: object) -> list[object]:
        return [format_data(self.address), block]


class GetHeader(Struct, frozen=True):
    """The header of a canonical block; `hash` is the expected one, empty if it is not known.

    With a hash it has no key: it shows that a number is the expected block.
    """

    number: int
    hash: bytes = b""

    method: ClassVar[str] = "eth_getBlockByNumber"

    def params(self, block: object) -> list[object]:  # noqa: ARG002, it names its own
        return [format_quantity(self.number), False]


StateRequest = (
    GetProof
    | GetStorageValues
    | ReadByCall
    | GetStorageAt
    | GetBalance
    | GetTransactionCount
    | GetCode
    | GetHeader
)


def word(number: int) -> str:
    """A slot as 32 bytes, which every node accepts; some accept no shorter form."""
    return format_data(number.to_bytes(WORD_BYTES))
