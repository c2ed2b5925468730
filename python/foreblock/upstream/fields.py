"""One JSON object of an answer, read strictly; a `ValueError` names the field."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from foreblock.primitives import parse_address, parse_data, parse_hash, parse_quantity

T = TypeVar("T")


class Fields:
    """The members of an object, by the names that JSON-RPC has for them."""

    def __init__(self, value: object, where: str = "") -> None:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where or 'the answer'}: expected an object")  # noqa: TRY004, see above
        self._members: Final[Mapping[str, object]] = value
        self._where: Final = where

    def number(self, name: str) -> int:
        """A quantity."""
        return self._read(name, parse_quantity)

    def number_or_none(self, name: str) -> int | None:
        """A quantity, where there is one."""
        return None if self._members.get(name) is None else self.number(name)

    def data(self, name: str) -> bytes:
        """Bytes."""
        return self._read(name, parse_data)

    def hash(self, name: str) -> bytes:
        """32 bytes."""
        return self._read(name, parse_hash)

    def hash_or_none(self, name: str) -> bytes | None:
        """32 bytes, where there are some."""
        return None if self._members.get(name) is None else self.hash(name)

    def address(self, name: str) -> bytes:
        """20 bytes."""
        return self._read(name, parse_address)

    def recipient(self, name: str) -> bytes:
        """An address, or nothing where a contract is created."""
        return b"" if self._members.get(name) is None else self.address(name)

    def flag(self, name: str) -> bool:
        """True or false; false where it is absent."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{self._where}{name}: expected true or false")
        return bool(value)

    def items(self, name: str) -> list["Fields"]:
        """Objects in a list; none where it is absent."""
        return [Fields(each, f"{where}: ") for where, each in self._list(name)]

    def texts(self, name: str) -> list[bytes]:
        """Hashes in a list; none where it is absent."""
        found = []
        for where, each in self._list(name):
            try:
                found.append(parse_hash(each))
            except ValueError as why:
                raise ValueError(f"{where}: {why}") from why
        return found

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self._members.get(name) is not None

    def _list(self, name: str) -> list[tuple[str, object]]:
        value = self._members.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ValueError(f"{self._where}{name}: expected a list")  # noqa: TRY004
        return [(f"{self._where}{name}[{at}]", each) for at, each in enumerate(value)]

    def _read(self, name: str, parse: Callable[[object], T]) -> T:
        if name not in self._members:
            raise ValueError(f"{self._where}{name}: missing")
        try:
            return parse(self._members[name])
        except ValueError as why:
            raise ValueError(f"{self._where}{name}: {why}") from why
