"""Balances, nonces and token balances at every flashblock.

A state is the changes of one flashblock and a reference to the previous state, so that every place
of the chain has its own and a dropped branch affects no other. Occasionally a state copies
everything before it, which limits the length of a lookup.
"""

from collections.abc import Mapping
from typing import Literal

Kind = Literal["balance", "nonce", "token"]
Key = tuple[Kind, bytes]

STEPS = 64  # maximum number of states in a lookup


class State:
    """The accounts at one place of the chain."""

    def __init__(self, changes: Mapping[Key, int], before: "State | None" = None) -> None:
        self._depth: int = 0 if before is None else before._depth + 1
        self._before = before
        self._values = dict(changes)
        if before is not None and self._depth > STEPS:
            self._values = before._all() | self._values
            self._before, self._depth = None, 0

    def get(self, kind: Kind, address: bytes) -> int:
        """The value of an account: 0 by default."""
        key, state = (kind, address), self
        while True:
            found = state._values.get(key)
            if found is not None:
                return found
            if state._before is None:
                return 0
            state = state._before

    def _all(self) -> dict[Key, int]:
        before = {} if self._before is None else self._before._all()
        return before | self._values


class Changes:
    """A state under change by the transactions of one flashblock."""

    def __init__(self, before: State) -> None:
        self._before = before
        self._values: dict[Key, int] = {}

    def get(self, kind: Kind, address: bytes) -> int:
        """The current value of an account."""
        found = self._values.get((kind, address))
        return self._before.get(kind, address) if found is None else found

    def add(self, kind: Kind, address: bytes, amount: int) -> None:
        """Change a value of an account."""
        self._values[kind, address] = self.get(kind, address) + amount

    def done(self) -> State:
        """The state with these changes."""
        return State(self._values, self._before)
