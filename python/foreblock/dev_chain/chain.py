"""`DevChain`: a dev chain in the calling process.

Each request runs a method or a command of `foreblock dev`, and its failure is an exception of
`foreblock.errors`. Results are the values of `foreblock.client`.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

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
from foreblock.client import typed_requests
from foreblock.client.typed_requests import Data, call_data
from foreblock.client.values import BlockData, Hex, ReceiptData
from foreblock.clock import SECOND_NS, DrivenClock
from foreblock.dev_chain.contract_abi import Abi, ContractAbi
from foreblock.dev_chain.failures import CustomErrors
from foreblock.dev_chain.local_network import LocalNetwork
from foreblock.dev_chain.reading import ChainState, to_json
from foreblock.errors import ForeblockError, Halted, InvalidArgument
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.primitives import parse_address, parse_data
from foreblock.scheduling.reply import OpenSession
from foreblock.sequencer.dev_genesis import DEFAULT_TIMESTAMP
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.service.temporary import memory_folder, temporary_folder
from foreblock.settings import ChainSettings, KeepSettings, StoreResources
from foreblock.settings.networks import Network, check_interval, check_kept

if TYPE_CHECKING:
    from foreblock.dev_chain.serving import ChainServer

Mode = Literal["automine", "clock", "manual"]
# Little, so that thousands of chains fit into the address space; the map grows.
RESOURCES: Final = StoreResources(map_size=1 << 28, max_readers=128)


class ClosedFlashblock(Struct, frozen=True):
    """A flashblock that was closed; `position` and `hash` name its state in `DevChain.at`."""

    number: int
    index: int
    hash: Hex

    @property
    def position(self) -> tuple[int, int]:
        return self.number, self.index


class DevChain(ChainState):
    """A chain of its own, with funded accounts, until it is closed.

    Reads are of the latest block, or of another one by `at`.
    """

    def __init__(
        self,
        rules: Literal["optimism", "ethereum"] = "optimism",
        fork: str = "newest",
        *,
        mode: Mode = "automine",
        seed: int = 0,
        data: str | Path | None = None,
        history: int = 1_800,
        **settings: Any,  # noqa: ANN401, of the chain
    ) -> None:
        """Begin a chain in memory, or begin or go on with the one in the directory `data`.

        In `automine` each transaction seals a block. By the `clock`, blocks and flashblocks are
        due while time is advanced. In `manual` mode they are closed by `flashblock` and `seal`.
        States of `history` blocks behind the latest can be read, or all with 0. `settings` are
        those of `foreblock dev`, such as `block_time`. Raises `BadSetting`.
        """
        chain = ChainSettings(rules=rules, fork=fork, mining=mode, seed=seed, **settings)
        keep = KeepSettings(states=history)
        check_interval(chain)
        check_kept(keep)
        began = chain.timestamp or DEFAULT_TIMESTAMP
        accounts = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
        with ExitStack() as opened:
            if data is None:
                folder = opened.enter_context(temporary_folder(where=memory_folder())) / "main"
            else:
                folder = Path(data)
            network = Network(
                name="main",
                data=str(folder),
                source="dev",
                keep=keep,
                sync=False,
                store=RESOURCES,
                dev=chain,
            )
            local = LocalNetwork(network, DrivenClock(began * SECOND_NS), accounts)
            opened.callback(local.close)
            self._opened: Final = opened.pop_all()
        self._close: Final = weakref.finalize(self, self._opened.close)
        super().__init__(local, "latest", CustomErrors())
        self._keys: Final = {each.address: each.secret for each in accounts}
        self.accounts: Final = tuple(Hex(each.address) for each in accounts)
        self.by_clock: Final = mode == "clock"

    def key(self, account: Data) -> bytes:
        """The secret key of one of the accounts."""
        return self._keys[_address(account)]

    @property
    def store_bytes(self) -> int:
        """The size of its store, in memory or on disk."""
        return self._network.store_bytes

    # --- Transactions ------------------------------------------------------------------

    def send(
        self,
        to: Data | None,
        signature: str | None = None,
        *arguments: object,
        data: Data = b"",
        check: bool = True,
        **fields: object,
    ) -> "DevTransaction":
        """Send a transaction: ether, `data`, or a call such as `transfer(address,uint256)`.

        The sender is the first account, unless `sender` is among the `fields`, which are `value`,
        `gas`, `nonce` and others of eth_sendTransaction, with underscores. If the transaction is
        in a block at once and failed, raises `Reverted` or `Halted`, unless `check` is false.
        Raises `PoolRefusal`.
        """
        if signature is not None:
            data = call_data(signature, *arguments)
        sender = fields.pop("sender", None) or self.accounts[0]
        given = {"to": to, "data": data, "from": sender, **fields}
        wanted = {_camel(name): each for name, each in given.items() if each is not None}
        sent = DevTransaction(
            self, Hex(parse_data(self.rpc("eth_sendTransaction", to_json(wanted))))
        )
        if check:
            sent.check()
        return sent

    def deploy(
        self,
        bytecode: Data,
        abi: Abi = (),
        *arguments: object,
        **fields: Any,  # noqa: ANN401, of `send`
    ) -> "Contract":
        """Deploy a contract; `arguments` are those of its constructor. Raises as `send`."""
        described = ContractAbi(abi)
        code = (
            bytecode if isinstance(bytecode, bytes) else bytes.fromhex(bytecode.removeprefix("0x"))
        )
        sent = self.send(None, data=code + described.constructor_data(arguments), **fields)
        made = self.rpc("eth_getTransactionByHash", f"0x{sent.hash.hex()}")
        address = created_address(parse_data(made["from"]), int(made["nonce"], 16))
        return self.contract(address, abi)

    def contract(self, address: Data, abi: Abi) -> "Contract":
        """A contract that is deployed; reasons of its errors are decoded from now on."""
        described = ContractAbi(abi)
        self._errors.add(described.errors)
        return Contract(self, Hex(_address(address)), described)

    def receipt(self, transaction: Data) -> ReceiptData | None:
        """The receipt of a transaction, which is pre-confirmed or sealed; None while it waits."""
        return self._read(typed_requests.receipt(transaction))

    def failure_of(self, transaction: Data) -> ForeblockError:
        """Why a transaction failed: `Reverted` or `Halted`, with its calls as notes."""
        failure = Halted("the transaction failed")
        return self._traced(failure, "debug_traceTransaction", to_json(transaction))

    @contextmanager
    def impersonate(self, address: Data) -> Iterator[None]:
        """Accept transactions of this account without a signature, inside of this."""
        account = _address(address)
        self._network.run(Impersonate(account))
        try:
            yield
        finally:
            self._network.run(Impersonate(account, is_on=False))

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
        self._set(address, balance=_word(balance))

    def set_nonce(self, address: Data, nonce: int) -> None:
        """Set a nonce; it never falls."""
        self._set(address, nonce=nonce)

    def set_code(self, address: Data, code: Data) -> None:
        self._set(address, code=parse_data(code) if isinstance(code, str) else code)

    def set_storage(self, address: Data, slot: int, value: int) -> None:
        self._set(address, storage={_word(slot): _word(value)})

    def deal_erc20(self, token: Data, owner: Data, amount: int) -> None:
        """Set a balance in a token. Raises `RefusedCommand` if the slot is not found."""
        self.rpc("anvil_dealERC20", *map(to_json, (owner, token, amount)))

    def _set(self, address: Data, **fields: Any) -> None:  # noqa: ANN401, of the command
        self._network.run(SetAccount(_address(address), **fields))

    # --- JSON-RPC ------------------------------------------------------------------------

    def answer(self, body: bytes) -> bytes:
        """The response to a JSON-RPC body: a request or a batch."""
        return self._network.answer(body).body

    @property
    def open_session(self) -> OpenSession:
        """Sessions of clients that subscribe; they are notified in the running loop."""
        return self._network.open_session

    def web3(self) -> Any:  # noqa: ANN401, web3 may not be installed
        """A `web3.Web3` on the chain, which needs the package web3."""
        from web3 import Web3  # noqa: PLC0415, only when it is used

        from foreblock.web3 import Provider  # noqa: PLC0415

        return Web3(Provider(self))

    def async_web3(self) -> Any:  # noqa: ANN401, web3 may not be installed
        """A `web3.AsyncWeb3` on the chain; enter it for subscriptions."""
        from web3 import AsyncWeb3  # noqa: PLC0415, only when it is used

        from foreblock.web3 import AsyncProvider  # noqa: PLC0415

        return AsyncWeb3(AsyncProvider(self))

    def serve(self, port: int = 0, host: str = "127.0.0.1") -> "ChainServer":
        """Serve the chain over HTTP and WebSocket, from a thread; port 0 picks a free one.

        By the clock, time passes meanwhile. Raises `AddressInUse`, `AddressUnusable`.
        """
        from foreblock.dev_chain.serving import ChainServer  # noqa: PLC0415, it loads the server

        server = ChainServer(self._network, f"{host}:{port}", follows_time=self.by_clock)
        self._opened.callback(server.close)
        return server

    def watch(self) -> Callable[[], str]:
        """A function that returns what has happened since now, as `foreblock dev --print` does."""
        return self._network.watch()

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

    # --- The end -----------------------------------------------------------------------

    def close(self) -> None:
        """End the chain; the one in a directory can be opened again."""
        self._close()

    @property
    def is_closed(self) -> bool:
        return not self._close.alive

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class DevTransaction:
    """A transaction that was sent."""

    def __init__(self, chain: DevChain, hash: Hex) -> None:
        self.hash: Final = hash
        self._chain: Final = chain

    def __repr__(self) -> str:
        return f"DevTransaction({self.hash})"

    @property
    def receipt(self) -> ReceiptData | None:
        """The receipt at this moment; None while the transaction waits."""
        return self._chain.receipt(self.hash)

    def check(self) -> ReceiptData | None:
        """The receipt. Raises `Reverted` or `Halted` if the transaction failed."""
        receipt = self.receipt
        if receipt is not None and receipt.status == 0:
            raise self._chain.failure_of(self.hash)
        return receipt


class Contract:
    """A contract at its address; a function is named, or given by its signature."""

    def __init__(self, chain: DevChain, address: Hex, abi: ContractAbi) -> None:
        self.address: Final = address
        self._chain: Final = chain
        self._abi: Final = abi

    def __repr__(self) -> str:
        return f"Contract({self.address})"

    def call(self, function: str, *arguments: object, **options: Any) -> Any:  # noqa: ANN401
        """The output of a function. Raises `Reverted` and `Halted`."""
        signature = self._abi.signature(function, arguments)
        return self._chain.call(self.address, signature, *arguments, **options)

    def send(self, function: str, *arguments: object, **fields: Any) -> DevTransaction:  # noqa: ANN401
        """Send a transaction that calls a function. Raises as `DevChain.send`."""
        signature = self._abi.signature(function, arguments)
        return self._chain.send(self.address, signature, *arguments, **fields)


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.revert()


def _address(given: Data) -> bytes:
    if isinstance(given, str):
        return parse_address(given)
    if len(given) != 20:
        raise InvalidArgument(f"an address has 20 bytes, not {len(given)}")
    return given


def _word(number: int) -> bytes:
    """A number as commands carry it."""
    if not 0 <= number < 1 << 256:
        raise InvalidArgument(f"expected 0 to 2**256 - 1, found {number}")
    return number.to_bytes(32)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
