"""evm_mine, evm_setAutomine and others: when blocks are sealed, and their base."""

from collections.abc import Awaitable
from typing import Final

from msgspec import Raw, Struct

from foreblock.bus.commands import (
    IncreaseTime,
    Mine,
    NextBlock,
    SetMining,
    SetNextTimestamp,
    SetTime,
    SetTimestampInterval,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import (
    U64,
    Number,
    execute_now_or_later,
    number,
    write_bool,
    write_true,
)
from foreblock.methods.params import Params, address, hash32, reader, refuse, take_none
from foreblock.methods.sequencing import Commands
from foreblock.methods.table import Family, Method, command

MILLISECONDS: Final = 1000
# A time above this is in milliseconds, as JavaScript has it: the year 5138.
LATEST_SECONDS: Final = 10**11


class MineOptions(Struct, frozen=True):
    """Ganache's form of evm_mine."""

    timestamp: Number | None = None
    blocks: Number | None = None


class EvmMineParams(Params):
    """The arguments of evm_mine."""

    options: MineOptions | Number | None = None


class MineParams(Params):
    """The arguments of anvil_mine."""

    blocks: Number | None = None
    interval: Number | None = None


class SwitchParams(Params):
    """The arguments of a method that takes true or false."""

    is_on: bool


class AmountParams(Params):
    """The arguments of a method that takes a number."""

    value: Number


class CoinbaseParams(Params):
    """The arguments of a method that takes an address."""

    address: str


class RandaoParams(Params):
    """The arguments of a method that takes 32 bytes."""

    value: str


_read_evm_mine = reader(EvmMineParams)
_read_mine = reader(MineParams)
_read_switch = reader(SwitchParams)
_read_amount = reader(AmountParams)
_read_coinbase = reader(CoinbaseParams)
_read_randao = reader(RandaoParams)


class MiningMethods:
    """Methods about blocks and time."""

    def __init__(self, commands: Commands) -> None:
        self._commands: Final = commands

    def evm_mine(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Seal the block in progress, or several; the first has the timestamp that is given."""
        options = _read_evm_mine(raw).options
        if options is None:
            options = MineOptions()
        if not isinstance(options, MineOptions):
            options = MineOptions(timestamp=options)
        timestamp = None if options.timestamp is None else _seconds(options.timestamp, 0)
        blocks = 1 if options.blocks is None else number(options.blocks, 0, "$.blocks")
        mined = Mine(max(blocks, 1), None, timestamp)
        return execute_now_or_later(self._commands, mined, lambda _: b'"0x0"')

    def mine(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Seal this many blocks, `interval` seconds apart."""
        params = _read_mine(raw)
        blocks = 1 if params.blocks is None else number(params.blocks, 0)
        interval = None if params.interval is None else number(params.interval, 1)
        # viem sends 0 for none; then the distance that was set before applies.
        return execute_now_or_later(self._commands, Mine(blocks, interval or None))

    def interval_mine(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Seal the block in progress, as the clock would."""
        take_none(raw)
        return execute_now_or_later(self._commands, Mine(), write_true)

    def set_automine(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Switch automine; without it blocks are mined on command only."""
        mining = "automine" if _read_switch(raw).is_on else "manual"
        return execute_now_or_later(self._commands, SetMining(mining))  # type: ignore[arg-type]

    def get_automine(self, view: LedgerView, raw: Raw) -> bytes:
        """True if each transaction seals a block."""
        take_none(raw)
        state = view.dev_state
        return b"true" if state is not None and state.mining == "automine" else b"false"

    def set_interval_mining(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Seal a block at this interval in seconds; 0 seals blocks on command only."""
        seconds = number(_read_amount(raw).value, 0, most=3_600)
        command = SetMining("clock", seconds) if seconds else SetMining("manual")
        return execute_now_or_later(self._commands, command)

    def get_interval_mining(self, view: LedgerView, raw: Raw) -> bytes:
        """The seconds from block to block, or null if no clock seals blocks."""
        take_none(raw)
        state = view.dev_state
        if state is None or not (state.mining == "clock" or state.also_clock):
            return b"null"
        return b"%g" % state.block_time

    def increase_time(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Move the time of the chain ahead by this many seconds; returns the total."""
        seconds = number(_read_amount(raw).value, 0)
        command = IncreaseTime(seconds)
        return execute_now_or_later(self._commands, command, lambda total: b"%d" % total)

    def set_next_block_timestamp(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the timestamp of the block in progress; time continues from it."""
        timestamp = _seconds(_read_amount(raw).value, 0)
        return execute_now_or_later(self._commands, SetNextTimestamp(timestamp))

    def set_time(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the time of the chain; returns by how many seconds it changed."""
        timestamp = _seconds(_read_amount(raw).value, 0)
        return execute_now_or_later(
            self._commands, SetTime(timestamp), lambda changed: b"%d" % changed
        )

    def set_timestamp_interval(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the distance between block timestamps, independent of the clock."""
        return self._set_interval(number(_read_amount(raw).value, 0))

    def set_timestamp_interval_ms(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the distance between block timestamps in milliseconds, as viem sends it."""
        return self._set_interval(number(_read_amount(raw).value, 0) // MILLISECONDS)

    def _set_interval(self, seconds: int) -> bytes | Awaitable[bytes]:
        return execute_now_or_later(self._commands, SetTimestampInterval(seconds))

    def remove_timestamp_interval(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Let timestamps follow the clock again; returns true if they did not."""
        take_none(raw)
        return execute_now_or_later(self._commands, SetTimestampInterval(None), write_bool)

    def set_next_base_fee(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Set the base fee of the block in progress, independent of the rule."""
        fee = number(_read_amount(raw).value, 0)
        return execute_now_or_later(self._commands, NextBlock(base_fee=fee))

    def set_min_gas_price(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Let no base fee be below this, from the next block on."""
        fee = number(_read_amount(raw).value, 0)
        return execute_now_or_later(self._commands, NextBlock(minimum_base_fee=fee), write_true)

    def set_gas_limit(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Give the block in progress, and all after it, this gas limit."""
        limit = number(_read_amount(raw).value, 0)
        if not limit:
            refuse(0, "", "a block needs some gas")
        return execute_now_or_later(self._commands, NextBlock(gas_limit=limit), write_true)

    def set_coinbase(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Let fees of the block in progress, and of all after it, go to this address."""
        coinbase = address(_read_coinbase(raw).address, 0)
        return execute_now_or_later(self._commands, NextBlock(coinbase=coinbase))

    def set_prev_randao(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Give the block in progress this randomness."""
        value = hash32(_read_randao(raw).value, 0)
        return execute_now_or_later(self._commands, NextBlock(prev_randao=value))


def _seconds(value: Number, argument: int) -> int:
    """A time in seconds, from seconds or milliseconds."""
    found = number(value, argument, most=U64)
    return found // MILLISECONDS if found > LATEST_SECONDS else found


def mining_family(commands: Commands) -> Family:
    mining = MiningMethods(commands)
    return Family(
        "Development chains: blocks and time",
        (
            command("evm_mine(options?: MineOptions) -> Quantity", mining.evm_mine),
            command(
                "anvil_mine(blocks?: Count, interval?: Count) -> Null",
                mining.mine,
                ("hardhat_mine",),
            ),
            command("hardhat_intervalMine() -> Boolean", mining.interval_mine),
            command(
                "evm_setAutomine(enabled: Boolean) -> Null",
                mining.set_automine,
                ("anvil_setAutomine", "hardhat_setAutomine"),
            ),
            Method("anvil_getAutomine() -> Boolean", mining.get_automine, ("hardhat_getAutomine",)),
            command(
                "evm_setIntervalMining(seconds: Count) -> Null",
                mining.set_interval_mining,
                ("anvil_setIntervalMining",),
            ),
            Method("anvil_getIntervalMining() -> Integer?", mining.get_interval_mining),
            command(
                "evm_increaseTime(seconds: Count) -> Integer",
                mining.increase_time,
                ("anvil_increaseTime",),
            ),
            command(
                "evm_setNextBlockTimestamp(timestamp: Count) -> Null",
                mining.set_next_block_timestamp,
                ("anvil_setNextBlockTimestamp",),
            ),
            command(
                "evm_setTime(timestamp: Count) -> Integer", mining.set_time, ("anvil_setTime",)
            ),
            command(
                "anvil_setBlockTimestampInterval(seconds: Count) -> Null",
                mining.set_timestamp_interval,
            ),
            command(
                "hardhat_setBlockTimestampInterval(milliseconds: Count) -> Null",
                mining.set_timestamp_interval_ms,
            ),
            command(
                "anvil_removeBlockTimestampInterval() -> Boolean",
                mining.remove_timestamp_interval,
                ("hardhat_removeBlockTimestampInterval",),
            ),
            command(
                "anvil_setNextBlockBaseFeePerGas(baseFee: Count) -> Null",
                mining.set_next_base_fee,
                ("hardhat_setNextBlockBaseFeePerGas",),
            ),
            command(
                "anvil_setMinGasPrice(gasPrice: Count) -> Boolean",
                mining.set_min_gas_price,
                ("hardhat_setMinGasPrice",),
            ),
            command(
                "evm_setBlockGasLimit(gasLimit: Count) -> Boolean",
                mining.set_gas_limit,
                ("anvil_setBlockGasLimit", "hardhat_setBlockGasLimit"),
            ),
            command(
                "anvil_setCoinbase(address: Address) -> Null",
                mining.set_coinbase,
                ("hardhat_setCoinbase",),
            ),
            command("hardhat_setPrevRandao(value: Hash) -> Null", mining.set_prev_randao),
        ),
    )
