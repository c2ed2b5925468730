"""`DevChain`: a dev chain in the calling process.

Each request runs a method or a command of `foreblock dev`, and its failure is an exception of
`foreblock.errors`. Results are the values of `foreblock.client`.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from msgspec import structs

from foreblock.client import typed_requests
from foreblock.client.typed_requests import Data, call_data, to_json
from foreblock.client.values import Hex, ReceiptData, camel_case
from foreblock.clock import SECOND_NS, DrivenClock
from foreblock.dev_chain.contract_abi import Abi, ContractAbi
from foreblock.dev_chain.control import ChainControl, account_address, data_bytes
from foreblock.dev_chain.failures import CustomErrors
from foreblock.dev_chain.following import ChainFollower
from foreblock.dev_chain.local_network import LocalNetwork
from foreblock.dev_chain.local_service import RESOURCES
from foreblock.errors import BadSetting, ForeblockError, Halted
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.primitives import parse_data
from foreblock.sequencer.dev_genesis import DEFAULT_TIMESTAMP
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.service.temporary import memory_folder, temporary_folder
from foreblock.settings import ChainSettings, KeepSettings
from foreblock.settings.declare import Bounds, Declared, build, declared, flat, from_value
from foreblock.settings.networks import Network, check_interval, check_kept

if TYPE_CHECKING:
    from foreblock.fork.forked_chain import Fork

Mode = Literal["automine", "clock", "manual"]
NOT_HERE: Final = {"mining", "mirror", "mirror_feed"}  # settings of `foreblock dev` only


class DevChain(ChainControl):
    """A chain of its own, with funded accounts, until it is closed.

    Reads are of the latest block, or of another one by `at`.
    """

    def __init__(
        self,
        rules: Literal["optimism", "ethereum"] = "optimism",
        fork: str | Mapping[str, Any] = "newest",
        *,
        mode: Mode = "automine",
        seed: int = 0,
        data: str | Path | None = None,
        history: int = 1_800,
        **settings: Any,  # noqa: ANN401, of the chain
    ) -> None:
        """Begin a chain in memory, or begin or continue that in the directory `data`.

        In `automine` each transaction seals a block. By the `clock`, blocks and flashblocks are
        due while time is advanced. In `manual` mode they are closed by `flashblock` and `seal`.
        `fork` is a fork of the rules, the URL or the name of a chain whose latest block to fork,
        or the settings of such a fork, as `{"url": …, "block_number": …}`.
        States of `history` blocks behind the latest can be read, or all with 0. `settings` are
        those of `foreblock dev`, such as `block_time`. Raises `BadSetting`.
        """
        forking = _forking(fork)
        settings |= forking or {"fork": fork}
        chain = _settings(rules=rules, mode=mode, seed=seed, **settings)
        keep = KeepSettings(states=history)
        check_kept(keep)
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
            opened_fork = _open_fork(network, keeps_id="chain_id" in settings)
            began = DEFAULT_TIMESTAMP if opened_fork is None else opened_fork.header.timestamp
            clock = DrivenClock((chain.timestamp or began) * SECOND_NS)
            local = LocalNetwork(network, clock, accounts, opened_fork)
            opened.callback(local.close)
            kept = opened.pop_all()
        super().__init__(local, CustomErrors(), kept, by_clock=mode == "clock")
        self._close: Final = weakref.finalize(self, kept.close)
        self._keys: Final = {each.address: each.secret for each in accounts}
        self.accounts: Final = tuple(Hex(each.address) for each in accounts)

    def key(self, account: Data) -> bytes:
        """The secret key of one of the accounts."""
        return self._keys[account_address(account)]

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
        wanted = {camel_case(name): each for name, each in given.items() if each is not None}
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
        self._errors.add(described.errors)
        if isinstance(bytecode, str):  # compilers leave out the prefix
            bytecode = data_bytes(f"0x{bytecode.removeprefix('0x')}")
        sent = self.send(None, data=bytecode + described.constructor_data(arguments), **fields)
        made = self.rpc("eth_getTransactionByHash", f"0x{sent.hash.hex()}")
        address = created_address(parse_data(made["from"]), int(made["nonce"], 16))
        return self.contract(address, abi)

    def contract(self, address: Data, abi: Abi) -> "Contract":
        """A contract that is deployed; reasons of its errors are decoded from now on."""
        described = ContractAbi(abi)
        self._errors.add(described.errors)
        return Contract(self, Hex(account_address(address)), described)

    def receipt(self, transaction: Data) -> ReceiptData | None:
        """The receipt of a transaction, which is pre-confirmed or sealed; None while it waits."""
        return self._read(typed_requests.receipt(transaction))

    def failure_of(self, transaction: Data) -> ForeblockError:
        """Why a transaction failed: `Reverted` or `Halted`, with its calls as notes."""
        failure = Halted("the transaction failed")
        return self._traced(failure, "debug_traceTransaction", to_json(transaction))

    # --- Followers -----------------------------------------------------------------------

    def follow(self) -> ChainFollower:
        """A second service, which follows the feed of this chain from its genesis.

        It closes with the chain.
        """
        from foreblock.dev_chain.local_follower import LocalFollower  # noqa: PLC0415, loads sources

        with ExitStack() as opened:
            folder = opened.enter_context(temporary_folder(where=memory_folder()))
            network = LocalFollower(self._network, folder / "follower")
            opened.callback(network.close)
            kept = opened.pop_all()
        self._opened.callback(kept.close)
        follower = ChainFollower(network, self._errors, kept)
        follower.wait()
        return follower

    # --- The end -----------------------------------------------------------------------

    def close(self) -> None:
        """End the chain; the one in a directory can be opened again."""
        self._close()

    @property
    def is_closed(self) -> bool:
        return not self._close.alive

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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


def _forking(fork: object) -> dict[str, Any]:
    """The settings of a fork of another chain; none for a fork of the rules."""
    if isinstance(fork, Mapping):
        named = {f"fork_{name}": each for name, each in fork.items()}
        url = named.get("fork_url", ())
        return {**named, "fork_url": (url,) if isinstance(url, str) else tuple(url)}
    if not isinstance(fork, str) or fork == ChainSettings.fork:
        return {}
    from foreblock.chains.chain_file import names  # noqa: PLC0415, most chains need none

    is_chain = fork.startswith(("http://", "https://")) or fork in names()
    return {"fork_url": (fork,)} if is_chain else {}


def _open_fork(network: Network, *, keeps_id: bool) -> "Fork | None":
    """The block of another chain that a chain begins on. Raises `ForeblockError`."""
    assert network.dev is not None, "it is a dev chain"
    if not network.dev.forking.is_on:
        return None
    from foreblock.fork.forked_chain import Fork, fork_of  # noqa: PLC0415, others need none

    point = fork_of(network.dev, Path(network.data), keeps_id=keeps_id)
    return Fork(structs.replace(network, fork=point))


@cache
def _known_settings() -> dict[str, Declared]:
    return {each.name: each for each in declared(ChainSettings) if each.name not in NOT_HERE}


def _settings(mode: Mode, **given: Any) -> ChainSettings:  # noqa: ANN401, of the settings
    """The settings of a chain. Raises `BadSetting`."""
    known = _known_settings()
    for name in given.keys() - known.keys():
        raise BadSetting(name, "a chain has no such setting")
    checked = {
        name: from_value(name, known[name].kind, known[name].bounds, value)
        for name, value in given.items()
    }
    mining: Any = from_value("mode", Mode, Bounds(), mode)
    chain = build(ChainSettings, {**flat(ChainSettings()), **checked, "mining": mining})
    check_interval(chain)
    return chain
