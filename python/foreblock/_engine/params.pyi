"""Request parameters: parsing of JSON and hex strings.

Errors name the argument and the position in it: `BadArgument`.
"""

from typing import Any, Final, TypeAlias, final

from typing_extensions import Buffer

from foreblock._engine.evm import Overlay, Precompiles
from foreblock._engine.simulate import PlainCalls

@final
class AccessList:
    """The access list of a call."""

    counts: Final[tuple[int, int]]  # of addresses, and of all their slots

@final
class Overrides:
    """State overrides: accounts and block hashes."""

    @property
    def is_large(self) -> bool:
        """True if applying them takes more than about a millisecond."""
    def apply_to(self, overlay: Overlay, rules: str, /) -> Precompiles | None:
        """Apply them to a state; return the remaining precompiles if any is overridden.

        Raises `RefusedOverride` for the lowest address with an invalid override; the overlay must
        then be discarded.
        """

# Recipient, sender, data, value, gas, nonce; and for a call with further fields: False, chain id,
# gas price, the two fees of EIP-1559, access list, blob hashes, blob fee and authorizations.
_CallFields: TypeAlias = tuple[
    bytes | None, bytes, bytes, int, int | None, int | None, tuple[Any, ...] | None
]

def read_call(
    params: Buffer, required: int, creates: bool, /
) -> tuple[
    _CallFields, str | bytes | None, Overrides | None, tuple[Any, ...] | None, Exception | None
]:
    """Read the params of eth_call: the call, its block, state overrides, block overrides.

    The block is a str for a plain string, otherwise JSON with checked types as bytes. The first
    `required` arguments must be present, and a recipient unless the call `creates`. Block overrides
    are in the order of the fields of `BlockOverrides`. An error in the overrides is returned as the
    last item, because errors of the block have precedence. Params of 16 KiB and more are parsed
    with the interpreter's lock released. Raises `InvalidParams`.
    """

def read_simulation(
    params: Buffer, required: int, blocks: int, block_calls: int, calls: int, /
) -> tuple[
    list[tuple[PlainCalls | list[_CallFields], Overrides | None, tuple[Any, ...] | None]],
    tuple[bool, bool, bool],
    str | bytes | None,
]:
    """Read the params of eth_simulateV1: blocks, three options, and the base block.

    A block has calls, state overrides and block overrides, as in `read_call`. The options are
    validation, tracing of transfers and full transactions. Raises `InvalidParams`, and
    `RefusedSimulation` for too many blocks, calls in a block or calls in total.
    """

# Hex strings with the prefix 0x or 0X and digits of either case.

def read_address(text: str, argument: int, path: str = "", /) -> bytes:
    """Parse an address of 20 bytes."""

def read_hash(text: str, argument: int, path: str = "", /) -> bytes:
    """Parse a hash of 32 bytes."""

def read_data(text: str, argument: int, path: str = "", /) -> bytes:
    """Parse bytes of two digits each; none for an empty string, as in geth."""

def read_slot(text: str, argument: int, path: str = "", /) -> int:
    """Parse a storage slot: at most 32 bytes, as a number or a hash."""

def read_quantity(text: str, bits: int, argument: int, path: str = "", /) -> int:
    """Parse a number at most `bits` wide (up to 256), without leading zeros."""

def read_parts(json: Buffer, /) -> Parts | None:
    """Start splitting a text incrementally; None if it is neither an array nor an object."""

@final
class Parts:
    """The parts of a JSON array or object: items, or members with their keys.

    A text that was split to its end is valid JSON (RFC 8259).
    """

    @property
    def is_object(self) -> bool: ...
    @property
    def done(self) -> bool:
        """True if the text was read to its end."""
    def take(self, bytes: int, parts: int, /) -> tuple[int, int, int, int]:
        """Read up to `bytes` more bytes and up to `parts` parts.

        Returns the number of completed parts, the offset of the first with its key, the offset of
        the value of the last, and its end. A part that began in an earlier call is returned alone;
        others are shorter than `bytes`, except a number, which is always read in one call. Raises
        `Undecodable` for invalid JSON.
        """
