"""A cache between requests, bounded by bytes; the least recently used entry goes first."""

from collections import OrderedDict
from typing import Final, Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that knows about how many bytes it uses."""

    @property
    def size(self) -> int:
        """The number of bytes."""


T = TypeVar("T", bound=Sized)


class LruCache(Generic[T]):
    """Values by the key of their block: the hash of a sealed one, the number of a partial.

    All of a block follows from such a key, but not from its height.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes: Final = max_bytes
        self._bytes = 0
        self._values: OrderedDict[bytes | int, tuple[T, int]] = OrderedDict()

    def get(self, key: bytes | int) -> T | None:
        """The value of a key, if it is kept."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: bytes | int, value: T) -> None:
        """Keep a value, or count again one that is kept and has changed its size."""
        _, former = self._values.pop(key, (None, 0))
        size = value.size
        self._bytes += size - former
        self._values[key] = (value, size)
        while self._bytes > self._max_bytes:
            _, (_, oldest) = self._values.popitem(last=False)
            self._bytes -= oldest
