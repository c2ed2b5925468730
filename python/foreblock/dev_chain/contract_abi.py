"""The JSON of a contract's ABI as signatures: functions, constructor, errors. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from foreblock.client.typed_requests import call_data
from foreblock.errors import InvalidArgument
from foreblock.types import decode_output, keccak256

Abi = Sequence[Mapping[str, Any]]
SELECTOR: Final = 4  # bytes


class AbiFunction(Struct, frozen=True):
    """A function or an error: its name and the types of its values."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """As in `balanceOf(address)(uint256)`."""
        return f"{self.declaration}({','.join(self.outputs)})"

    @property
    def declaration(self) -> str:
        """As in `balanceOf(address)`."""
        return f"{self.name}({','.join(self.inputs)})"

    @property
    def selector(self) -> bytes:
        return keccak256(self.declaration.encode())[:SELECTOR]

    def decode_inputs(self, data: bytes) -> list[Any]:
        """The values of an error, after its selector. Raises `Undecodable`."""
        return decode_output(f"f()({','.join(self.inputs)})", data)


class ContractAbi:
    """The functions and errors of one contract."""

    def __init__(self, entries: Abi) -> None:
        """`entries` are the JSON that a compiler writes."""
        self._functions: Final = list(_of_kind(entries, "function"))
        self.errors: Final = list(_of_kind(entries, "error"))
        self._constructor: Final = next(iter(_of_kind(entries, "constructor")), None)

    def constructor_data(self, arguments: Sequence[object]) -> bytes:
        """The arguments of the constructor as they follow its code."""
        if self._constructor is None:
            if arguments:
                raise InvalidArgument("the constructor takes no arguments")
            return b""
        signature = f"constructor({','.join(self._constructor.inputs)})"
        return call_data(signature, *arguments)[SELECTOR:]

    def signature(self, name: str, arguments: Sequence[object]) -> str:
        """The signature of a function that is named, or `name` itself if it is a signature."""
        if "(" in name:
            whole = (each.signature for each in self._functions if each.declaration == name)
            return next(whole, name)
        named = [each for each in self._functions if each.name == name]
        found = [each for each in named if len(each.inputs) == len(arguments)]
        if len(found) == 1:
            return found[0].signature
        known = ", ".join(each.declaration for each in found or named or self._functions)
        what = "which of" if found else "not one of"
        raise InvalidArgument(f"{name} with {len(arguments)} arguments: {what} {known}")


def _of_kind(entries: Abi, kind: str) -> Iterable[AbiFunction]:
    for each in entries:
        if each.get("type", "function") == kind:
            inputs, outputs = each.get("inputs", ()), each.get("outputs", ())
            yield AbiFunction(each.get("name", ""), _types(inputs), _types(outputs))


def _types(values: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(map(_type, values))


def _type(value: Mapping[str, Any]) -> str:
    """A type; a struct is a tuple of the types of its members."""
    kind: str = value["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(_types(value['components']))}){kind.removeprefix('tuple')}"
