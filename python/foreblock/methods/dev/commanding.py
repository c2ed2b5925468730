"""Numbers and responses of methods that change a development chain.

Tools write numbers in three forms, and all are read: a JSON number, hexadecimal and decimal text.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from foreblock.bus.commands import WOULD_BLOCK, AnyCommand
from foreblock.methods.params import refuse
from foreblock.methods.sequencing import Commands
from foreblock.scheduling.steps import Pipelined

Number = int | str
U64: Final = 2**64 - 1
U256: Final = 2**256 - 1


def number(value: Number, argument: int, path: str = "", most: int = U64) -> int:
    """A number in any of the forms."""
    found = value if isinstance(value, int) else _parsed(value, argument, path)
    if not 0 <= found <= most:
        refuse(argument, path, f"expected 0 to {most}, found {found}")
    return found


def _parsed(text: str, argument: int, path: str) -> int:
    try:
        return int(text, 16 if text[:2] in {"0x", "0X"} else 10)
    except ValueError:
        refuse(argument, path, f"expected a number, found {text[:80]!r}")


def word(value: int) -> bytes:
    """A number as commands carry it."""
    return value.to_bytes(32)


def execute_now_or_later(
    commands: Commands, command: AnyCommand, write: Callable[[Any], bytes] = lambda _: b"null"
) -> bytes | Awaitable[bytes]:
    """The JSON text of a command's result, without waiting if possible."""
    result = commands.try_execute(command)
    return answered(commands.execute(command), write) if result is WOULD_BLOCK else write(result)


def answered(
    result: Awaitable[Any], write: Callable[[Any], bytes] = lambda _: b"null"
) -> Awaitable[bytes]:
    """The JSON text of a command's result; commands of a batch are sent together."""
    return Pipelined(result, write)


def write_true(_: object) -> bytes:
    """True, whatever the result."""
    return b"true"


def write_bool(result: object) -> bytes:
    """The result as it is."""
    return b"true" if result else b"false"
