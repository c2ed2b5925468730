"""The contract ABI: call data, outputs, revert reasons.

Values are int, bool, str and bytes (also for addresses); arrays are lists, tuples are tuples.
Decoding is lenient: padding may be missing or non-zero, and trailing bytes are ignored.
"""

from collections.abc import Sequence
from typing import Any

def encode_call(signature: str, arguments: Sequence[str]) -> bytes:
    """Encode a call of a function such as `balanceOf(address)(uint256)`.

    Arguments are text: `[1, 2]` is an array, `(1, true)` a tuple. Raises `InvalidArgument`.
    """

def decode_output(signature: str, output: bytes) -> list[Any]:
    """Decode the output of a function; an empty list if its signature has no outputs.

    Raises `InvalidArgument` for an invalid signature and `Undecodable` for short output.
    """

def revert_reason(output: bytes) -> str:
    """Return the text of `Error(string)`, geth's text for the code of `Panic(uint256)`, or ""."""
