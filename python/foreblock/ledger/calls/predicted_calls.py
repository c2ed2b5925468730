"""What calls of readers will read, by templates of calls like theirs (`rules.call_templates`).

A process learns from the runs of its own calls, and begins with what the writer has kept. A call
of a code that is known asks for what it will read together with what it has missed first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from foreblock._engine import Misses, View
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.call_templates import (
    CallTemplates,
    SlotRule,
    call_of,
    is_unknown,
)
from foreblock.ledger.rules.call_words import Kind

Kept = Mapping[Kind, Iterable[SlotRule]]


class MissedCall(NamedTuple):
    """A call that has missed something."""

    sender: bytes
    to: bytes | None
    data: bytes
    misses: Misses


class PredictedCalls:
    """The templates of one network in one process; called on its loop."""

    def __init__(self, ledger: Ledger, read: Callable[[View], Kept]) -> None:
        """`read` reads what the writer has kept."""
        self._ledger: Final = ledger
        self._read: Final = read
        self._templates: Final = CallTemplates()
        self._has_begun = False

    def slots(self, calls: Sequence[MissedCall]) -> Mapping[bytes, set[int]]:
        """The slots that calls will read besides, and that are not known, by account.

        What they have missed is learned.
        """
        slots: dict[bytes, set[int]] = {}
        with closing(self._ledger.view()) as view:
            if not self._has_begun:
                self._has_begun = True
                self._templates.take(self._read(view.stored))
            state = view.state(view.latest)
            for each in calls:
                call = call_of(state.account, each.sender, each.to, each.data)
                if call is None:
                    continue
                self._templates.learn([call], each.misses.slots, each.misses.hashed)
                for address, slot in self._templates.predict(
                    call, lambda key: is_unknown(state.storage, key)
                ):
                    slots.setdefault(address, set()).add(slot)
        return slots
