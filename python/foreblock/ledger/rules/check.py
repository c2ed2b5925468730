"""Checks of the facts of a block, and the hashes of empty values; a failure raises `BadBlock`."""

from typing import Final, NoReturn

from msgspec import Struct

from foreblock.errors import BadBlock
from foreblock.primitives import format_data

Fact = int | bytes | str | None


class Check(Struct, frozen=True):
    """Checks of the block `number`."""

    number: int

    def equal(self, what: str, expected: Fact, found: Fact) -> None:
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


# Root of a trie with nothing in it: keccak256 of the RLP of an empty string.
EMPTY_ROOT: Final = bytes.fromhex(
    "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
)
# keccak256 of the RLP of an empty list.
EMPTY_OMMERS_HASH: Final = bytes.fromhex(
    "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
)
# EIP-7685: SHA-256 of nothing, the hash of an empty list of requests.
EMPTY_REQUESTS_HASH: Final = bytes.fromhex(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)
