"""Numbers and answers of methods that change a development chain.

Tools write numbers in three forms: a JSON number, hexadecimal and decimal text. All are read.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from foreblock.bus.commands import AnyCommand
from foreblock.bus.deferral import NOT_DONE, NOT_PUT_OFF
from foreblock.methods.params import refuse
from foreblock.scheduling.steps import Pipelined
from foreblock.types import Transaction

Number = int | str
U64: Final = 2**64 - 1
U256: Final = 2**256 - 1


# Methods whose commands can be put off.
PUT_OFF: Final = frozenset(
    (
        *("anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"),
        *("anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance"),
        *("anvil_setCode", "hardhat_setCode", "evm_setAccountCode", "tenderly_setCode"),
        *("anvil_setStorageAt", "hardhat_setStorageAt"),
        *("evm_setAccountStorageAt", "tenderly_setStorageAt"),
        *("evm_snapshot", "anvil_snapshot", "evm_revert", "anvil_revert"),
        *("evm_increaseTime", "anvil_increaseTime"),
    )
)


# Methods that look at nothing and change the chain: what was put off is carried out with them.
JOINING: Final = frozenset(("eth_sendRawTransaction", "evm_mine", "anvil_mine", "hardhat_mine"))


class Commands(Protocol):
    """The connection to the sequencer of one development chain."""

    async def submit_next(self, transaction: Transaction) -> None:
        """Return when the pool has a transaction; refused where it has one of the same nonce.

        Raises as `Submissions.submit` does.
        """

    def submit_next_now(self, transaction: Transaction) -> bool:
        """Whether the pool has it already; where it waits, `submit_next` does. Raises the same."""

    async def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Return when the command is carried out and all workers serve the change.

        Raises `RefusedCommand` with the reason, `SequencerUnavailable`, `CommandUnknown`.
        """

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that is carried out before anybody can tell, or `NOT_PUT_OFF`."""

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that is carried out at once, or `NOT_DONE`.

        Raises `RefusedCommand`.
        """


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


def put_off_or_answered(
    commands: Commands, command: AnyCommand, write: Callable[[Any], bytes] = lambda _: b"null"
) -> bytes | Awaitable[bytes]:
    """The JSON text of a command's result: at once where the command can be put off."""
    result = commands.put_off(command)
    return done_or_answered(commands, command, write) if result is NOT_PUT_OFF else write(result)


def done_or_answered(
    commands: Commands, command: AnyCommand, write: Callable[[Any], bytes] = lambda _: b"null"
) -> bytes | Awaitable[bytes]:
    """The JSON text of a command's result: at once where the command can be done so."""
    result = commands.execute_now(command)
    return answered(commands.execute(command), write) if result is NOT_DONE else write(result)


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
