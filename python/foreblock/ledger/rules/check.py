"""Checks of the facts of a block; the first that fails raises `BadBlock`."""

from typing import NoReturn

from msgspec import Struct

from foreblock.errors import BadBlock
from foreblock.primitives import format_data

Fact = int | bytes | str | None


class Check(Struct, frozen=True):
    """Checks of the block `number`."""

    number: int

    def equal(self, what: str, expected: Fact, found: Fact) -> None:
        """Require this value."""
        if expected != found:
            self.fail(what, expected, found)

    def within(self, what: str, lowest: int, found: int, highest: int) -> None:
        """Require a number in this range, both ends included."""
        if not lowest <= found <= highest:
            self.fail(what, f"{lowest} to {highest}", found)

    def at_most(self, what: str, highest: int, found: int) -> None:
        """Require a number that is no higher."""
        if found > highest:
            self.fail(what, f"at most {highest}", found)

    def present(self, what: str, found: Fact, *, expected: bool) -> None:
        """Require that the optional field is set, or that it is not."""
        if (found is not None) != expected:
            self.fail(what, "a value" if expected else "none", found)

    def fail(self, what: str, expected: Fact, found: Fact) -> NoReturn:
        """Raise `BadBlock`."""
        raise BadBlock(self.number, what, _show(expected), _show(found))


def _show(fact: Fact) -> str:
    match fact:
        case None:
            return "none"
        case bytes():
            return format_data(fact)
        case _:
            return str(fact)
