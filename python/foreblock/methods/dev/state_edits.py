"""anvil_setBalance, anvil_setCode, anvil_dealERC20 and others: accounts and tokens set by hand.

A change is visible at `pending` at once. Unless a clock seals blocks and flashblocks are shown, it
is visible at `latest`, too, although no block is mined; a block's number or hash means its sealed
state. The slot of a token's balance or allowance is found by trial (`find_slot`). A token that
computes its balances from several words has no such slot, and is refused.
"""

from collections.abc import Awaitable
from functools import partial
from inspect import isawaitable
from typing import Final

from msgspec import Raw

from foreblock.bus.commands import AddBalance, SetAccount, SetAccounts
from foreblock.errors import RefusedCommand
from foreblock.ledger.calls.request import Call
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.traces import TraceBounds, find_slot
from foreblock.methods.calls.call_methods import UNCAPPED
from foreblock.methods.dev.commanding import (
    U256,
    Number,
    execute_now_or_later,
    number,
    word,
    write_true,
)
from foreblock.methods.dev.dumping import DumpMethods
from foreblock.methods.params import Params, address, data, reader, refuse, slot
from foreblock.methods.sequencing import Commands
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.settings import Settings

MOST_CODE: Final = 1_000_000
MOST_ADDRESSES: Final = 1_000


class BalanceParams(Params):
    """The arguments of a method about balances; Tenderly names several accounts."""

    addresses: str | list[str]
    value: Number


class NonceParams(Params):
    """The arguments of anvil_setNonce."""

    address: str
    nonce: Number


class CodeParams(Params):
    """The arguments of anvil_setCode."""

    address: str
    code: str


class StorageParams(Params):
    """The arguments of anvil_setStorageAt."""

    address: str
    slot: Number
    value: str


_read_balance = reader(BalanceParams)
_read_nonce = reader(NonceParams)
_read_code = reader(CodeParams)
_read_storage = reader(StorageParams)


class StateEditMethods:
    """Methods that set accounts."""

    def __init__(self, commands: Commands) -> None:
        self._commands: Final = commands

    def set_balance(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the balance of an account, or of several, in wei."""
        params = _read_balance(raw)
        balance = word(_amount(params))
        return self._all([SetAccount(each, balance) for each in _addresses(params)])

    def add_balance(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Add wei to the balance of an account, or of several."""
        params = _read_balance(raw)
        amount = word(_amount(params))
        return self._all([AddBalance(each, amount) for each in _addresses(params)])

    def set_nonce(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the nonce of an account; it never falls."""
        params = _read_nonce(raw)
        nonce = number(params.nonce, 1)
        command = SetAccount(address(params.address, 0), nonce=nonce)
        return execute_now_or_later(self._commands, command)

    def set_code(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the code of an account; its storage stays."""
        params = _read_code(raw)
        code = data(_prefixed(params.code), 1)
        if len(code) > MOST_CODE:
            refuse(1, "", f"{len(code)} bytes of code are too many, the most is {MOST_CODE}")
        return execute_now_or_later(
            self._commands, SetAccount(address(params.address, 0), code=code)
        )

    def set_storage_at(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set one slot of an account to a word."""
        params = _read_storage(raw)
        key, value = word(number(params.slot, 1, most=U256)), word(slot(params.value, 2))
        command = SetAccount(address(params.address, 0), storage={key: value})
        return execute_now_or_later(self._commands, command, write_true)

    def _all(self, commands: list[SetAccount | AddBalance]) -> bytes | Awaitable[bytes]:
        if len(commands) == 1:
            return execute_now_or_later(self._commands, commands[0])
        return execute_now_or_later(self._commands, SetAccounts(commands))


def _amount(params: BalanceParams) -> int:
    return number(params.value, 1, most=U256)


def _addresses(params: BalanceParams) -> list[bytes]:
    """The accounts that are named, all of them read before the first is changed."""
    named = params.addresses
    if isinstance(named, str):
        return [address(named, 0)]
    if len(named) > MOST_ADDRESSES:
        refuse(0, "", f"{len(named)} addresses are too many, the most is {MOST_ADDRESSES}")
    return [address(each, 0, f"$[{place}]") for place, each in enumerate(named)]


def _prefixed(text: str) -> str:
    """Hex with its prefix, which tools leave out."""
    return text if text[:2] in {"0x", "0X"} else f"0x{text}"


BALANCE_OF: Final = bytes.fromhex("70a08231")
ALLOWANCE: Final = bytes.fromhex("dd62ed3e")


class DealParams(Params):
    """The arguments of anvil_dealERC20."""

    address: str
    token: str
    amount: Number


class AllowanceParams(Params):
    """The arguments of anvil_setERC20Allowance."""

    owner: str
    spender: str
    token: str
    amount: Number


_read_deal = reader(DealParams)
_read_allowance = reader(AllowanceParams)


class TokenMethods:
    """Methods about tokens."""

    def __init__(self, commands: Commands, settings: Settings, scheduler: Scheduler) -> None:
        self._execute: Final = commands.execute
        self._gas: Final = settings.call.gas_cap or UNCAPPED
        self._bounds: Final = TraceBounds(settings.trace.output)
        self._scheduler: Final = scheduler

    def set_balance(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Set the balance of an account in a token."""
        params = _read_deal(raw)
        data = BALANCE_OF + _argument(params.address, 0)
        call = Call(address(params.token, 1), self._gas, data=data)
        amount = number(params.amount, 2, most=U256)
        return self._set(view, call, amount, "balance")

    def set_allowance(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Set how much of a token an account may spend for another."""
        params = _read_allowance(raw)
        data = ALLOWANCE + _argument(params.owner, 0) + _argument(params.spender, 1)
        call = Call(address(params.token, 2), self._gas, data=data)
        amount = number(params.amount, 3, most=U256)
        return self._set(view, call, amount, "allowance")

    async def _set(self, view: LedgerView, call: Call, amount: int, what: str) -> bytes:
        steps = partial(_find, view, call, amount, self._bounds)
        found = self._scheduler.run(steps, view.client)
        place = await found if isawaitable(found) else found
        if place is None:
            raise RefusedCommand(f"Unable to set ERC20 {what}, no slot found")
        keeper, slot = place
        await self._execute(SetAccount(keeper, storage={word(slot): word(amount)}))
        return b"null"


def _find(
    view: LedgerView, call: Call, amount: int, bounds: TraceBounds, _pace: Pace
) -> Steps[tuple[bytes, int] | None]:
    return (yield from find_slot(view, call, amount, bounds))


def _argument(text: str, argument: int) -> bytes:
    """An address as an argument of a function."""
    return address(text, argument).rjust(32, b"\0")


def state_family(edits: StateEditMethods, tokens: TokenMethods, dumps: DumpMethods) -> Family:
    return Family(
        "Development chains: state",
        (
            command(
                "anvil_setBalance(address: AddressOrAddresses, balance: Count) -> Null",
                edits.set_balance,
                ("hardhat_setBalance", "tenderly_setBalance", "evm_setAccountBalance"),
            ),
            command(
                "anvil_addBalance(address: AddressOrAddresses, amount: Count) -> Null",
                edits.add_balance,
                ("hardhat_addBalance", "tenderly_addBalance"),
            ),
            command(
                "anvil_setNonce(address: Address, nonce: Count) -> Null",
                edits.set_nonce,
                ("hardhat_setNonce", "evm_setAccountNonce"),
            ),
            command(
                "anvil_setCode(address: Address, code: Data) -> Null",
                edits.set_code,
                ("hardhat_setCode", "evm_setAccountCode", "tenderly_setCode"),
            ),
            command(
                "anvil_setStorageAt(address: Address, slot: Count, value: Word) -> Boolean",
                edits.set_storage_at,
                ("hardhat_setStorageAt", "evm_setAccountStorageAt", "tenderly_setStorageAt"),
            ),
            Method(
                "anvil_dealERC20(address: Address, token: Address, amount: Count) -> Null",
                tokens.set_balance,
                ("hardhat_dealERC20", "anvil_setERC20Balance"),
            ),
            Method(
                "anvil_setERC20Allowance(owner: Address, spender: Address, token: Address,"
                " amount: Count) -> Null",
                tokens.set_allowance,
            ),
            Method(
                "anvil_dumpState(withHistory?: Boolean) -> Data",
                dumps.dump,
                ("hardhat_dumpState",),
            ),
            Method("anvil_loadState(state: Data) -> Boolean", dumps.load, ("hardhat_loadState",)),
        ),
    )
