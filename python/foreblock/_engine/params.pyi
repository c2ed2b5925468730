"""Parameters of requests: JSON and hex texts to values.

Every refusal names the argument and the place in it: `BadArgument`.
"""

from typing import Any, TypeAlias, final

from typing_extensions import Buffer

from foreblock._engine.evm import Overlay, Precompiles
from foreblock._engine.simulate import PlainCalls

@final
class AccessList:
    """The addresses and slots that a call says it will use."""

    @property
    def addresses(self) -> int:
        """How many there are."""
    @property
    def slots(self) -> int:
        """How many all addresses have."""

@final
class Overrides:
    """Accounts as a call asks to see them, and hashes of blocks."""

    @property
    def is_large(self) -> bool:
        """Whether applying them to a state takes more than about a millisecond."""
    def apply_to(self, overlay: Overlay, rules: str, /) -> Precompiles | None:
        """Apply them to a state; returns the remaining precompiles if any is overridden.

        Raises `RefusedOverride` for the lowest address whose override cannot be meant, after
        which the overlay is of no use.
        """

# To, sender, data, value, gas, nonce; and for a call that says more, False, chain id, gas price,
# the two fees of EIP-1559, access list, blob hashes, blob fee and authorizations.
_CallFields: TypeAlias = tuple[
    bytes | None, bytes, bytes, int, int | None, int | None, tuple[Any, ...] | None
]

def read_call(
    params: Buffer, required: int, creates: bool, /
) -> tuple[_CallFields, bytes | None, Overrides | None, tuple[Any, ...] | None, Exception | None]:
    """The params of eth_call: the call, its block, overrides, those of the block.

    The block is a text, or JSON whose types are right where it is no plain string.
    The first `required` arguments must be there, and a recipient unless the call `creates`.
    Block overrides are in the order of the fields of `BlockOverrides`. Overrides are refused
    after the block, so their refusal comes back last. Params of 16 KiB and more are read
    without the interpreter's lock. Raises `InvalidParams`.
    """

def read_simulation(
    params: Buffer, required: int, blocks: int, block_calls: int, calls: int, /
) -> tuple[
    list[tuple[PlainCalls | list[_CallFields], Overrides | None, tuple[Any, ...] | None]],
    tuple[bool, bool, bool],
    str | bytes | None,
]:
    """The params of eth_simulateV1: blocks, three choices, and the base block.

    A block is its calls, overrides, and overrides of the block, as `read_call` has them. The
    choices are validation, tracing of transfers and full transactions. Raises `InvalidParams`,
    and `RefusedSimulation` for more blocks, calls in a block or calls than may be.
    """

# Hex texts with a prefix of 0x or 0X and digits of either case.

def read_address(text: str, argument: int, path: str = "", /) -> bytes:
    """The 20 bytes of an address."""

def read_hash(text: str, argument: int, path: str = "", /) -> bytes:
    """The 32 bytes of a hash."""

def read_data(text: str, argument: int, path: str = "", /) -> bytes:
    """Bytes, two digits each; an empty text has none, as in geth."""

def read_slot(text: str, argument: int, path: str = "", /) -> int:
    """The place of a word in storage: at most 32 bytes, written as a number or as a hash is."""

def read_quantity(text: str, bits: int, argument: int, path: str = "", /) -> int:
    """A number at most `bits` wide (256 at most), without leading zeros."""

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
