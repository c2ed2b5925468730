"""Parameters of requests: hex texts, slots, and long JSON texts taken apart.

Hex texts must cost next to nothing to read: None is for a text that is not what the
function reads, and the caller knows where it stood. A prefix of 0x or 0X is needed, digits
may have either case.
"""

from typing import Self, final

from typing_extensions import Buffer

def read_address(text: str, /) -> bytes | None:
    """The 20 bytes of an address."""

def read_hash(text: str, /) -> bytes | None:
    """The 32 bytes of a hash."""

def read_data(text: str, /) -> bytes | None:
    """Bytes, two digits each, possibly none."""

def read_slots(json: Buffer, /) -> Slots | None:
    """The slots of a JSON object of hashes as `read_hash` reads them, without escapes.

    Of a slot that is there twice the last value counts.
    """

def read_quantity(text: str, bits: int, /) -> int | None:
    """A number at most `bits` wide (256 at most), without leading zeros."""

@final
class Slots:
    """Slots of an account and their values, for overrides."""

    def __new__(cls, slots: dict[int, int]) -> Self: ...
    def items(self) -> list[tuple[int, int]]: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def read_parts(json: Buffer, /) -> Parts | None:
    """Take a text apart, in stretches; None for one that is neither array nor object."""

@final
class Parts:
    """The parts of a JSON array or object: items, or members with their keys.

    What was taken apart to its end is JSON by RFC 8259, down to the last bracket.
    """

    @property
    def is_object(self) -> bool: ...
    @property
    def done(self) -> bool:
        """Whether the text was read to its end."""
    def take(self, bytes: int, parts: int, /) -> tuple[int, int, int, int]:
        """Read on for so many bytes, and at most so many parts.

        Gives how many parts ended, where the first of them begins, with its key, where the
        value of the last begins, and where that ends. A part that had begun before comes
        alone; others are shorter than `bytes`, unless one is a number, which is read at once.
        Raises `Undecodable` for what is no JSON.
        """
