"""How a rule says no: one block, what was looked at, what it had to be, what it is."""

from dataclasses import dataclass
from typing import NoReturn

from foreblock.errors import BadBlock
from foreblock.primitives import format_data

Fact = int | bytes | str | None


@dataclass(frozen=True, slots=True)
class Check:
    """Checks facts of the block `number`; the first that fails raises `BadBlock`."""

    number: int

    def equal(self, what: str, expected: Fact, found: Fact) -> None:
        """The fact must be exactly this."""
        if expected != found:
            self.fail(what, expected, found)

    def within(self, what: str, lowest: int, found: int, highest: int) -> None:
        """The number must be neither lower nor higher."""
        if not lowest <= found <= highest:
            self.fail(what, f"{lowest} to {highest}", found)

    def at_most(self, what: str, highest: int, found: int) -> None:
        """The number must not be higher."""
        if found > highest:
            self.fail(what, f"at most {highest}", found)

    def present(self, what: str, found: Fact, *, expected: bool) -> None:
        """The optional field must be there, or must not."""
        if (found is not None) != expected:
            self.fail(what, "a value" if expected else "none", found)

    def fail(self, what: str, expected: Fact, found: Fact) -> NoReturn:
        """Refuse the block."""
        raise BadBlock(self.number, what, _show(expected), _show(found))


def _show(fact: Fact) -> str:
    match fact:
        case None:
            return "none"
        case bytes():
            return format_data(fact)
        case _:
            return str(fact)
