"""evm_snapshot, evm_revert, anvil_reorg, foreblock_dropTail and others: a chain rewritten.

`anvil_reorg` places transactions in new blocks: raw ones, and objects that are filled in as by
eth_sendTransaction, but for the nonce, which is counted from the block that stays, in the order
of the list. Accounts with keys sign them; impersonated ones send them without a signature.

The last part has flashblocks and their faults, one at a time or at a rate.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from foreblock.bus.commands import (
    CloseFlashblock,
    DropTail,
    Equivocate,
    Reorganize,
    Reset,
    ResetFork,
    RestartBlock,
    Revert,
    Rollback,
    SetFaults,
    SetFlashblockInterval,
    SetHead,
    TakeSnapshot,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import (
    Number,
    answered,
    execute_now_or_later,
    number,
    write_bool,
)
from foreblock.methods.dev.preparing import Prepared, Preparing
from foreblock.methods.params import Params, data, reader, refuse, take_none
from foreblock.methods.pool.raw_sending import read_transaction
from foreblock.methods.sequencing import Commands, Keys
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps
from foreblock.types import Transaction

# The block of the new branch, the raw transaction, its sender.
Placed = tuple[int, bytes, bytes]
Asked = tuple[Raw, Number]  # a text or an object, and the block

MOST: Final = 1_000  # transactions of one request


class Placing:
    """Makes transactions for blocks of a new branch."""

    def __init__(self, keys: Keys, preparing: Preparing, scheduler: Scheduler) -> None:
        self._keys: Final = keys
        self._preparing: Final = preparing
        self._scheduler: Final = scheduler

    async def placed(self, view: LedgerView, asked: list[Asked], depth: int) -> tuple[Placed, ...]:
        """The transactions of a reorganisation of this depth; raises as sending does."""
        if len(asked) > MOST:
            refuse(1, "$", f"{len(asked)} transactions, the most is {MOST}")
        found = self._scheduler.run(partial(self._steps, view, asked, depth), view.client)
        return await found if isinstance(found, Awaitable) else found

    def _steps(
        self, view: LedgerView, asked: list[Asked], depth: int, pace: Pace
    ) -> Steps[tuple[Placed, ...]]:
        nonces: dict[bytes, int] = {}
        stays = view.state(view.resolve(max(view.latest.number - depth, 0)))
        placed = []
        for at, (transaction, offset) in enumerate(asked):
            if bytes(transaction).startswith(b'"'):
                made = _signed(view, transaction, f"$[{at}][0]")
            else:
                raw = Raw(b"[%b]" % bytes(transaction))
                prepared = yield from self._preparing.steps(view, raw, False, pace)  # noqa: FBT003
                sender = prepared.call.sender
                nonce = nonces.get(sender, stays.nonce(sender))
                made = self._made(prepared, nonce)
                nonces[sender] = nonce + 1
            placed.append((number(offset, 1, f"$[{at}][1]"), made.raw, made.sender))
            if pace.is_over():
                yield None
        return tuple(placed)

    def _made(self, prepared: Prepared, nonce: int) -> Transaction:
        if prepared.is_unsigned:
            return prepared.without_signature(nonce)
        return prepared.signed(nonce, self._keys.required(prepared.call.sender))


def _signed(view: LedgerView, text: Raw, path: str) -> Transaction:
    return read_transaction(data(msgspec.json.decode(text, type=str), 1, path), view.profile)


class RevertParams(Params):
    """The arguments of evm_revert."""

    id: Number


class ForkingTarget(Struct, frozen=True, rename="camel"):
    """A chain to fork from; refused by a chain that is no fork."""

    json_rpc_url: str | None = None
    block_number: Number | None = None


class ForkingOptions(ForkingTarget, frozen=True, rename="camel"):
    """A chain to fork from, as Hardhat nests it."""

    forking: ForkingTarget | None = None


class ResetParams(Params):
    """The arguments of anvil_reset."""

    options: ForkingOptions | None = None


class RollbackParams(Params):
    """The arguments of anvil_rollback."""

    depth: Number | None = None


class ReorgParams(Params):
    """The arguments of anvil_reorg."""

    depth: Number
    transactions: list[Asked] | None = None


class HeadParams(Params):
    """The arguments of debug_setHead."""

    number: Number


_read_revert = reader(RevertParams)
_read_reset = reader(ResetParams)
_read_rollback = reader(RollbackParams)
_read_reorg = reader(ReorgParams)
_read_head = reader(HeadParams)


class BranchMethods:
    """Methods that take the chain back, or replace a part of it."""

    def __init__(self, commands: Commands, placing: Placing) -> None:
        self._commands: Final = commands
        self._execute: Final = commands.execute
        self._placing: Final = placing

    def snapshot(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Take a snapshot of the chain; returns its id."""
        take_none(raw)
        return execute_now_or_later(self._commands, TakeSnapshot(), _write_id)

    def revert(self, _view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """Return the chain to a snapshot, which is removed."""
        wanted = number(_read_revert(raw).id, 0)
        return execute_now_or_later(self._commands, Revert(wanted), write_bool)

    def reset(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Restart the chain at its first block, or a fork at another block of its chain."""
        options = _read_reset(raw).options or ForkingOptions()
        if view.is_fork:
            return answered(self._execute(_reset_of_fork(options)))
        for target, path in ((options, "$"), (options.forking or options, "$.forking")):
            if target.json_rpc_url is not None:
                refuse(0, f"{path}.jsonRpcUrl", "there is no forking")
            if target.block_number is not None:
                refuse(0, f"{path}.blockNumber", "there is no forking, and so no other block")
        return answered(self._execute(Reset()))

    def rollback(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Abandon this many sealed blocks with their transactions."""
        depth = _read_rollback(raw).depth
        return answered(self._execute(Rollback(1 if depth is None else number(depth, 0))))

    def set_head(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Abandon all sealed blocks above this one, with their transactions."""
        return answered(self._execute(SetHead(number(_read_head(raw).number, 0))))

    def reorg(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Replace this many sealed blocks by others, which contain the given transactions."""
        params = _read_reorg(raw)
        return self._reorg(view, number(params.depth, 0), params.transactions or [])

    async def _reorg(self, view: LedgerView, depth: int, asked: list[Asked]) -> bytes:
        placed = await self._placing.placed(view, asked, depth)
        return await answered(self._execute(Reorganize(depth, placed)))

    def reorg_putting_back(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Replace this many sealed blocks by empty ones; their transactions wait again."""
        depth = _read_rollback(raw).depth
        command = Reorganize(1 if depth is None else number(depth, 0), put_back=True)
        return answered(self._execute(command))


def _reset_of_fork(options: ForkingOptions) -> Reset | ResetFork:
    """The command that restarts a fork: at its block, or at another one if that is given."""
    target = options.forking or options
    is_named = target.json_rpc_url is not None or target.block_number is not None
    if options.forking is None and not is_named:
        return Reset()
    block = "latest" if target.block_number is None else str(number(target.block_number, 0))
    return ResetFork(target.json_rpc_url or "", block)


def _write_id(taken: int) -> bytes:
    return b'"0x%x"' % taken


def branch_family(branches: BranchMethods) -> Family:
    return Family(
        "Development chains: snapshots and branches",
        (
            command("evm_snapshot() -> Quantity", branches.snapshot, ("anvil_snapshot",)),
            command("evm_revert(id: Count) -> Boolean", branches.revert, ("anvil_revert",)),
            command(
                "anvil_reset(options?: ForkingOptions) -> Null",
                branches.reset,
                ("hardhat_reset",),
            ),
            command("anvil_rollback(depth?: Count) -> Null", branches.rollback),
            command("debug_setHead(number: Count) -> Null", branches.set_head),
            Method(
                "anvil_reorg(depth: Count, transactions?: PlacedTransaction[]) -> Null",
                branches.reorg,
            ),
        ),
    )


class IntervalParams(Params):
    """The arguments of foreblock_setFlashblockInterval."""

    milliseconds: Number


class FaultsParams(Params):
    """The arguments of foreblock_setFaults."""

    rates: dict[str, int | float]


_read_interval = reader(IntervalParams)
_read_faults = reader(FaultsParams)


class FaultMethods:
    """Methods about flashblocks and their faults."""

    def __init__(self, commands: Commands) -> None:
        self._execute: Final = commands.execute

    def close_flashblock(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Close the open flashblock with executable transactions; returns position and hash."""
        take_none(raw)
        return answered(self._execute(CloseFlashblock()), _write_position)

    def set_interval(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Close a flashblock at this interval in milliseconds; 0 closes them on demand only."""
        milliseconds = number(_read_interval(raw).milliseconds, 0)
        return answered(self._execute(SetFlashblockInterval(milliseconds)))

    def restart_block(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Restart the block in progress as another job; its transactions wait again."""
        take_none(raw)
        return answered(self._execute(RestartBlock()))

    def drop_tail(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Seal the block in progress without its last flashblock, whose transactions wait again."""
        take_none(raw)
        return answered(self._execute(DropTail()))

    def equivocate(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Announce another flashblock in place of the last one; returns its position and hash."""
        take_none(raw)
        return answered(self._execute(Equivocate()), _write_position)

    def set_faults(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Let faults happen at these rates from now on, and no others."""
        rates = _read_faults(raw).rates
        words = tuple(f"{kind}={rate}" for kind, rate in rates.items())
        return answered(self._execute(SetFaults(words)))


def _write_position(place: dict[str, Any]) -> bytes:
    text = b'{"blockNumber":"0x%x","index":"0x%x","hash":"0x%s"}'
    return text % (place["block"], place["index"], place["hash"].hex().encode())


def fault_family(faults: FaultMethods, branches: BranchMethods) -> Family:
    return Family(
        "Development chains: flashblocks and faults",
        (
            command("foreblock_closeFlashblock() -> FlashblockPlace", faults.close_flashblock),
            command(
                "foreblock_setFlashblockInterval(milliseconds: Count) -> Null",
                faults.set_interval,
            ),
            command("foreblock_restartBlock() -> Null", faults.restart_block),
            command("foreblock_dropTail() -> Null", faults.drop_tail),
            command("foreblock_equivocate() -> FlashblockPlace", faults.equivocate),
            command(
                "foreblock_reorg(depth?: Count) -> Null",
                branches.reorg_putting_back,
            ),
            command("foreblock_setFaults(rates: FaultRates) -> Null", faults.set_faults),
        ),
    )
