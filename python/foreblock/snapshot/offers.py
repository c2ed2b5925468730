"""The stores of a process that may be sent, by the names of their logs.

A network offers its store when it has opened it and withdraws it before it closes it: a copy
that is under way is cut then, since closing a store waits for its readers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Final

from foreblock.ledger.storage.open_store import Store


class SnapshotOffers:
    """What can be sent. Any thread may call anything."""

    def __init__(self) -> None:
        self._changed: Final = Condition()
        self._stores: Final[dict[str, Store]] = {}
        self._copied: Final[dict[Store, Callable[[], None]]] = {}  # and what cuts each copy

    def offer(self, name: str, store: Store) -> None:
        """Send this store to those who ask for the name."""
        with self._changed:
            self._stores[name] = store

    def withdraw(self, name: str) -> None:
        """Send it no more; returns when nobody copies it."""
        with self._changed:
            store = self._stores.pop(name, None)
            if store is not None:
                self._copied.get(store, lambda: None)()
                self._changed.wait_for(lambda: store not in self._copied)

    def is_offered(self, name: str, store: Store) -> bool:
        """Whether a store may still be sent; asked before each piece."""
        return self._stores.get(name) is store

    @contextmanager
    def copying(self, name: str, cut: Callable[[], None]) -> Iterator[Store | None]:
        """The store of a name, which stays open meanwhile; none where there is none.

        `cut` is called on another thread when the store is withdrawn.
        """
        with self._changed:
            store = self._stores.get(name)
            if store is not None:
                self._copied[store] = cut
        try:
            yield store
        finally:
            with self._changed:
                if store is not None:
                    del self._copied[store]
                self._changed.notify_all()
