"""anvil_nodeInfo, anvil_metadata, hardhat_setLoggingEnabled and others: the node and its output."""

from collections.abc import Awaitable
from typing import Final, Literal

import msgspec
from msgspec import Raw

from foreblock.bus.commands import SetConsoleOutput, SetForkUrl
from foreblock.errors import RefusedCommand
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.dev.commanding import (
    Number,
    answered,
    number,
)
from foreblock.methods.dev.mining import SwitchParams
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.node import client, network_version
from foreblock.methods.params import Params, reader, take_none
from foreblock.methods.sequencing import Commands
from foreblock.methods.shapes import members, write_data, write_quantity
from foreblock.methods.table import Family, Method, command
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps

MOST_SNAPSHOTS: Final = 500  # that are shown, the oldest
NO_FORK: Final = b'{"forkUrl":null,"forkBlockNumber":null,"forkRetryBackoff":null}'


class ChainIdParams(Params):
    """The arguments of anvil_setChainId."""

    chain_id: Number


class UrlParams(Params):
    """The arguments of anvil_setRpcUrl."""

    url: str


_read_chain_id = reader(ChainIdParams)
_read_url = reader(UrlParams)


class NodeInfoMethods:
    """Methods about the chain and the service, in anvil's forms."""

    def __init__(
        self,
        scheduler: Scheduler,
        priority_fees: PriorityFees,
        order: Literal["fees", "fifo"],
        client_version: str,
        commands: Commands,
    ) -> None:
        self._execute: Final = commands.execute
        self._scheduler: Final = scheduler
        self._priority_fees: Final = priority_fees
        self._order: Final = order
        self._client: Final = msgspec.json.encode(client_version or client())

    def node_info(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The latest block, the active fork, and the base of the next block."""
        take_none(raw)
        return self._scheduler.read(self._info(view))

    def metadata(self, view: LedgerView, raw: Raw) -> bytes:
        """Which chain this is: its id, its instance, its latest block."""
        take_none(raw)
        state, latest = view.dev_state, view.latest
        fields = {
            b"clientVersion": self._client,
            b"chainId": b"%d" % view.profile.chain_id,
            b"instanceId": write_data(bytes(32) if state is None else state.instance),
            b"latestBlockNumber": b"%d" % latest.number,
            b"latestBlockHash": write_data(latest.hash),
            b"forkedNetwork": _write_forked_network(view),
            b"snapshots": _write_snapshots(view),
        }
        return b"{%b}" % members(fields)

    def genesis_time(self, view: LedgerView, raw: Raw) -> bytes:
        """The time of the first block here, in seconds."""
        take_none(raw)
        first = 0 if view.base.is_complete else view.base.number
        return b"%d" % view.resolve(first).header.timestamp

    def set_chain_id(self, view: LedgerView, raw: Raw) -> bytes:
        """Null for the chain's own id; another is refused, because blocks depend on it."""
        wanted, own = number(_read_chain_id(raw).chain_id, 0), view.profile.chain_id
        if wanted != own:
            raise RefusedCommand(
                f"the chain id is {own} from block 0 on; start another chain with --chain-id"
            )
        return b"null"

    def set_rpc_url(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Fetch the state of a fork from another endpoint of its chain."""
        url = _read_url(raw).url
        if not view.is_fork:
            raise RefusedCommand("the chain is not a fork, so there is no url to change")
        return answered(self._execute(SetForkUrl(url)))

    def _info(self, view: LedgerView) -> Steps[bytes]:
        tip = yield from self._priority_fees.suggested(view)
        latest, head = view.latest, view.resolve("pending")
        base_fee = head.header.base_fee_per_gas or 0
        environment = {
            b"baseFee": write_quantity(base_fee),
            b"chainId": b"%d" % view.profile.chain_id,
            b"gasLimit": write_quantity(head.header.gas_limit),
            b"gasPrice": write_quantity(base_fee + tip),
        }
        family, _, fork = head.rules.engine_name.partition(":")
        fields = {
            b"currentBlockNumber": write_quantity(latest.number),
            b"currentBlockTimestamp": b"%d" % latest.header.timestamp,
            b"currentBlockHash": write_data(latest.hash),
            b"hardFork": b'"%b"' % fork.encode(),
            b"transactionOrder": b'"%b"' % self._order.encode(),
            b"environment": b"{%b}" % members(environment),
            b"forkConfig": _write_fork(view),
        }
        if family == "optimism":
            fields[b"network"] = b'"optimism"'
        return b"{%b}" % members(fields)


def _write_fork(view: LedgerView) -> bytes:
    state = view.dev_state
    if state is None or state.fork is None:
        return NO_FORK
    fields = {
        b"forkUrl": msgspec.json.encode(state.fork.url),
        b"forkBlockNumber": b"%d" % view.base.number,
        b"forkRetryBackoff": b"%d" % state.fork.backoff_ms,
    }
    return b"{%b}" % members(fields)


def _write_forked_network(view: LedgerView) -> bytes:
    state = view.dev_state
    if state is None or state.fork is None:
        return b"null"
    fields = {
        b"chainId": b"%d" % state.fork.chain_id,
        b"forkBlockNumber": b"%d" % view.base.number,
        b"forkBlockHash": write_data(view.base.hash),
    }
    return b"{%b}" % members(fields)


def _write_snapshots(view: LedgerView) -> bytes:
    """Each snapshot's id, with the number and the hash of the block that was latest."""
    fields = {}
    for snapshot, latest in view.dev_snapshots(MOST_SNAPSHOTS).items():
        block = view.resolve(latest)
        fields[b"0x%x" % snapshot] = b"[%d,%b]" % (latest, write_data(block.hash))
    return b"{%b}" % members(fields)


class TracesParams(Params):
    """The arguments of anvil_enableTraces."""

    is_on: bool | None = None


_read_switch = reader(SwitchParams)
_read_traces = reader(TracesParams)


class ConsoleMethods:
    """Methods about the console output."""

    def __init__(self, commands: Commands) -> None:
        self._execute: Final = commands.execute

    def set_logging(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Print requests, transactions, reverts and console.log as they happen, or no longer."""
        return answered(self._execute(SetConsoleOutput(is_on=_read_switch(raw).is_on)))

    def enable_traces(self, _view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """Print the calls inside of transactions and calls too, or stop doing so."""
        wanted = _read_traces(raw).is_on
        return answered(self._execute(SetConsoleOutput(traces=wanted is None or wanted)))


def node_family(node: NodeInfoMethods, console: ConsoleMethods) -> Family:
    return Family(
        "Development chains: about the node",
        (
            Method("anvil_nodeInfo() -> NodeInfo", node.node_info),
            Method("anvil_metadata() -> Metadata", node.metadata, ("hardhat_metadata",)),
            Method("anvil_getGenesisTime() -> Integer", node.genesis_time),
            Method("eth_networkId() -> Text", network_version),
            command(
                "anvil_setLoggingEnabled(enabled: Boolean) -> Null",
                console.set_logging,
                ("hardhat_setLoggingEnabled",),
            ),
            command("anvil_enableTraces(enabled?: Boolean) -> Null", console.enable_traces),
            Method("anvil_setChainId(chainId: Count) -> Null", node.set_chain_id),
            Method("anvil_setRpcUrl(url: Text) -> Null", node.set_rpc_url, ("hardhat_setRpcUrl",)),
        ),
    )
