"""What a test does to a chain: blocks, time, accounts by hand, faults of pre-confirmation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from msgspec import Struct

from foreblock.bus.commands import (
    CloseFlashblock,
    DropTail,
    Impersonate,
    IncreaseTime,
    Mine,
    Reorganize,
    RestartBlock,
    Revert,
    SetAccount,
    TakeSnapshot,
)
from foreblock.client.typed_requests import Data, to_json
from foreblock.client.values import BlockData, Hex
from foreblock.clock import SECOND_NS
from foreblock.dev_chain.access import ChainAccess
from foreblock.dev_chain.local_network import LocalNetwork
from foreblock.errors import InvalidArgument
from foreblock.primitives import ADDRESS_BYTES, parse_data


class ClosedFlashblock(Struct, frozen=True):
    """A flashblock that was closed; `position` and `hash` name its state in `DevChain.at`."""

    number: int
    index: int
    hash: Hex

    @property
    def position(self) -> tuple[int, int]:
        return self.number, self.index


class ChainControl(ChainAccess):
    """A chain that can be changed at will."""

    _network: LocalNetwork

    # --- Blocks and time ---------------------------------------------------------------

    def flashblock(self) -> ClosedFlashblock:
        """Close a flashblock with what waits: it is pre-confirmed."""
        closed = self._network.run(CloseFlashblock())
        return ClosedFlashblock(closed["block"], closed["index"], Hex(closed["hash"]))

    def seal(self, blocks: int = 1) -> BlockData:
        """Seal the block in progress with what waits, and more after it; returns the last."""
        return self.at(self._network.run(Mine(blocks))).block()

    def advance(self, seconds: float) -> None:
        """Let time pass. By the clock, blocks and flashblocks come when they are due.

        In other modes the next block has the later time; they know whole seconds.
        """
        if self.by_clock:
            self._network.run_for(round(seconds * SECOND_NS))
        elif seconds != int(seconds) or seconds < 0:
            raise InvalidArgument(f"{seconds} is not a number of whole seconds")
        else:
            self._network.run(IncreaseTime(int(seconds)))

    def snapshot(self) -> "Checkpoint":
        """Take a snapshot; as a context manager, the chain returns to it at the end."""
        return Checkpoint(self._network, self._network.run(TakeSnapshot()))

    # --- State -------------------------------------------------------------------------

    def set_balance(self, address: Data, balance: int) -> None:
        """Set a balance in wei."""
        self._set(address, balance=_word(balance))

    def set_nonce(self, address: Data, nonce: int) -> None:
        """Set a nonce; it never falls."""
        self._set(address, nonce=nonce)

    def set_code(self, address: Data, code: Data) -> None:
        """Set the code of an account; none removes it."""
        self._set(address, code=data_bytes(code))

    def set_storage(self, address: Data, slot: int, value: int) -> None:
        """Set the value of a slot."""
        self._set(address, storage={_word(slot): _word(value)})

    def deal_erc20(self, token: Data, owner: Data, amount: int) -> None:
        """Set a balance in a token. Raises `RefusedCommand` if the slot is not found."""
        self.rpc("anvil_dealERC20", *map(to_json, (owner, token, amount)))

    def _set(self, address: Data, **fields: Any) -> None:  # noqa: ANN401, of the command
        self._network.run(SetAccount(account_address(address), **fields))

    @contextmanager
    def impersonate(self, address: Data) -> Iterator[None]:
        """Accept transactions of this account without a signature, inside of this."""
        account = account_address(address)
        self._network.run(Impersonate(account))
        try:
            yield
        finally:
            self._network.run(Impersonate(account, is_on=False))

    # --- Faults of pre-confirmation ------------------------------------------------------

    def drop_tail(self) -> None:
        """Seal the block in progress without its last flashblock, whose transactions wait again."""
        self._network.run(DropTail())

    def restart_block(self) -> None:
        """Abandon the block in progress and begin it again; its transactions wait again."""
        self._network.run(RestartBlock())

    def reorg(self, depth: int = 1) -> None:
        """Replace sealed blocks by empty ones; their transactions wait again."""
        self._network.run(Reorganize(depth, put_back=True))


class Checkpoint:
    """A snapshot of a chain, to which it can return once."""

    def __init__(self, network: LocalNetwork, number: int) -> None:
        self._network: Final = network
        self._number: Final = number

    def revert(self) -> bool:
        """Return the chain to the snapshot; false if it has returned to this or an earlier one."""
        done: bool = self._network.run(Revert(self._number))
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.revert()


def account_address(given: Data) -> bytes:
    """The 20 bytes of an address. Raises `InvalidArgument`."""
    found = data_bytes(given)
    if len(found) != ADDRESS_BYTES:
        raise InvalidArgument(f"an address has {ADDRESS_BYTES} bytes, not {len(found)}")
    return found


def data_bytes(given: Data) -> bytes:
    """Data as bytes. Raises `InvalidArgument` for a text that is no hex."""
    try:
        return parse_data(given) if isinstance(given, str) else bytes(given)  # also of a `Hex`
    except ValueError as why:
        raise InvalidArgument(str(why)) from None


def _word(number: int) -> bytes:
    """A number as commands carry it."""
    if not 0 <= number < 1 << 256:
        raise InvalidArgument(f"expected 0 to 2**256 - 1, found {number}")
    return number.to_bytes(32)
