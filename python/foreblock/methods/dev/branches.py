"""evm_snapshot, evm_revert, anvil_reset and others: the chain taken back, or replaced."""

from collections.abc import Awaitable
from typing import Any, Final

from msgspec import Raw, Struct

from foreblock.bus.commands import Reorganize, Reset, Revert, Rollback, TakeSnapshot
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.methods.dev.commanding import Commands, Number, answered, number, write_bool
from foreblock.methods.node.about import take_none
from foreblock.methods.params import Params, data, reader, refuse
from foreblock.methods.pool.sending import read_transaction


class RevertParams(Params):
    """The arguments of evm_revert."""

    id: Number


class ForkingTarget(Struct, frozen=True, rename="camel"):
    """A chain to fork from, which there is not."""

    json_rpc_url: str | None = None
    block_number: Number | None = None


class ForkingOptions(ForkingTarget, frozen=True, rename="camel"):
    """The same, as Hardhat nests it."""

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
    transactions: list[tuple[str | dict[str, Any], Number]] | None = None


_read_revert = reader(RevertParams)
_read_reset = reader(ResetParams)
_read_rollback = reader(RollbackParams)
_read_reorg = reader(ReorgParams)


class BranchMethods:
    """Methods that take the chain back, or replace a part of it."""

    def __init__(self, commands: Commands) -> None:
        self._execute: Final = commands.execute

    def snapshot(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Remember the chain as it is; gives the id of the snapshot."""
        take_none(raw)
        return answered(self._execute(TakeSnapshot()), lambda taken: b'"0x%x"' % taken)

    def revert(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Make the chain what it was at a snapshot, which is used up by it."""
        wanted = number(_read_revert(raw).id, 0)
        return answered(self._execute(Revert(wanted)), write_bool)

    def reset(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Begin the chain anew on its genesis."""
        options = _read_reset(raw).options or ForkingOptions()
        for target, path in ((options, "$"), (options.forking or options, "$.forking")):
            if target.json_rpc_url is not None:
                refuse(0, f"{path}.jsonRpcUrl", "there is no forking")
            if target.block_number is not None:
                refuse(0, f"{path}.blockNumber", "there is no forking, and so no other block")
        return answered(self._execute(Reset()))

    def rollback(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Give up this many sealed blocks, with what is in them."""
        depth = _read_rollback(raw).depth
        return answered(self._execute(Rollback(1 if depth is None else number(depth, 0))))

    def reorg(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Replace this many sealed blocks by others, in which the given transactions stand."""
        params = _read_reorg(raw)
        placed = tuple(
            _placed(view.profile, transaction, offset, f"$[{at}]")
            for at, (transaction, offset) in enumerate(params.transactions or ())
        )
        return answered(self._execute(Reorganize(number(params.depth, 0), placed)))

    def reorg_putting_back(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Replace this many sealed blocks by empty ones; their transactions wait again."""
        depth = _read_rollback(raw).depth
        command = Reorganize(1 if depth is None else number(depth, 0), put_back=True)
        return answered(self._execute(command))


def _placed(
    profile: ChainProfile, transaction: str | dict[str, Any], offset: Number, path: str
) -> tuple[int, bytes, bytes]:
    """A transaction and the block of the new branch that it stands in."""
    if not isinstance(transaction, str):
        refuse(1, f"{path}[0]", "expected a signed transaction as hexadecimal text")
    decoded = read_transaction(data(transaction, 1, f"{path}[0]"), profile)
    return number(offset, 1, f"{path}[1]"), decoded.raw, decoded.sender
