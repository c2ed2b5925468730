"""Texts that are kept between requests, up to a number of bytes."""

from collections import OrderedDict
from typing import Final, Generic, Protocol, TypeVar


class Sized(Protocol):
    """Something that knows about how much it takes to keep it."""

    @property
    def size(self) -> int:
        """In bytes."""


T = TypeVar("T", bound=Sized)


class Kept(Generic[T]):
    """Texts by what they were made from; the one not asked for longest goes first.

    A sealed block goes by its hash, a partial one by its number: all of a block follows
    from these, which is not so for its place in the chain.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes: Final = max_bytes
        self._bytes = 0
        self._texts: OrderedDict[bytes | int, tuple[T, int]] = OrderedDict()

    def get(self, key: bytes | int) -> T | None:
        """A text, if it is kept."""
        found = self._texts.get(key)
        if found is None:
            return None
        self._texts.move_to_end(key)
        return found[0]

    def keep(self, key: bytes | int, text: T) -> None:
        """Keep a text, or one that is kept already and has become larger."""
        _, former = self._texts.pop(key, (None, 0))
        size = text.size
        self._bytes += size - former
        self._texts[key] = (text, size)
        while self._bytes > self._max_bytes:
            _, (_, oldest) = self._texts.popitem(last=False)
            self._bytes -= oldest
