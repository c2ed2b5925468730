"""A bounded cache; the least recently used entries are dropped first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, KeysView
from typing import Final, Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


def size_of(value: _Sized) -> int:
    """Return the size of a value that knows it."""
    return value.size


class LruCache(Generic[K, V]):
    """Values by key, bounded by the sum of their sizes; without `size`, by their number."""

    def __init__(self, limit: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._limit: Final = limit
        self._size: Final = size
        self._total = 0
        self._values: Final[OrderedDict[K, tuple[V, int]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def keys(self) -> KeysView[K]:
        """All keys, the least recently used first."""
        return self._values.keys()

    def values(self) -> list[V]:
        """All values, the least recently used first."""
        return [value for value, _ in self._values.values()]

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is kept; this counts as a use."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V) -> list[K]:
        """Keep a value, or count again one whose size has changed; returns the dropped keys."""
        self.pop(key)
        size = self._size(value)
        self._total += size
        self._values[key] = (value, size)
        dropped = []
        while self._total > self._limit:
            oldest, (_, size) = self._values.popitem(last=False)
            self._total -= size
            dropped.append(oldest)
        return dropped

    def pop(self, key: K) -> V | None:
        """Remove a key; returns its value, if it was kept."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._total -= found[1]
        return found[0]

    def clear(self) -> None:
        """Remove everything."""
        self._values.clear()
        self._total = 0
