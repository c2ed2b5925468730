"""`ForeblockProvider`: ape's local network on a `foreblock.DevChain`, in the process of ape."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

from ape.api.config import PluginConfig
from ape.api.providers import TestProviderAPI
from ape.exceptions import ProviderNotConnectedError, UnknownSnapshotError
from ape.utils.testing import DEFAULT_TEST_CHAIN_ID
from ape_ethereum.provider import Web3Provider
from hexbytes import HexBytes
from pydantic_settings import SettingsConfigDict

from foreblock import DevChain

ETHER = 10**18
MOST_GAS = 2**24  # of a transaction since Osaka (EIP-7825)


class ForeblockConfig(PluginConfig):  # type: ignore[misc] # ape may not be installed
    """Settings of the chain; others of `foreblock.DevChain` may be added."""

    rules: Literal["ethereum", "optimism"] = "ethereum"
    fork: str = "newest"
    chain_id: int = DEFAULT_TEST_CHAIN_ID
    auto_mine: bool = True

    model_config = SettingsConfigDict(extra="allow")


class ForeblockProvider(TestProviderAPI, Web3Provider):  # type: ignore[misc] # as above
    """A chain with the accounts of ape's tests, which is `chain`."""

    http_uri: ClassVar[None] = None
    ws_uri: ClassVar[None] = None
    ipc_path: ClassVar[None] = None
    _chain: DevChain | None = None

    @property
    def chain(self) -> DevChain:
        if self._chain is None:
            raise ProviderNotConnectedError
        return self._chain

    # --- Connection ------------------------------------------------------------------------

    def connect(self) -> None:
        """Begin a chain."""
        accounts = self.test_config
        settings = self.settings.model_dump(exclude={"rules", "fork", "auto_mine"})
        self._chain = DevChain(
            self.settings.rules,
            self.settings.fork,
            mode="automine" if self.settings.auto_mine else "manual",
            mnemonic=accounts.mnemonic,
            derivation_path=f"{accounts.hd_path}/",
            accounts=max(accounts.number_of_accounts, 1),
            balance=max(accounts.balance // ETHER, 1),
            **settings,
        )
        self._web3 = self._chain.web3()

    def disconnect(self) -> None:
        """End the chain and its snapshots."""
        if self._chain is not None:
            self._chain.close()
            self.chain_manager._snapshots[self.chain_id] = []
        self._chain = self._web3 = None

    @property
    def chain_id(self) -> int:
        chain_id: int = self.settings.chain_id
        return chain_id

    @property
    def max_gas(self) -> int:
        """The gas of a transaction for which none is given."""
        block_gas: int = super().max_gas
        return min(block_gas, MOST_GAS)

    def stream_request(
        self, method: str, params: Iterable[Any], iter_path: str = "result.item"
    ) -> Iterator[Any]:
        """The items of a list in a response, such as the instructions of a trace."""
        found = self.make_request(method, params)
        for name in iter_path.split(".")[1:-1]:
            found = found[name]
        yield from found

    # --- Blocks and time -------------------------------------------------------------------

    def snapshot(self) -> str:
        taken: str = self.make_request("evm_snapshot")
        return taken

    def restore(self, snapshot_id: str) -> None:
        """Return to a snapshot, once. Raises `UnknownSnapshotError`."""
        if not self.make_request("evm_revert", [snapshot_id]):
            raise UnknownSnapshotError(snapshot_id)

    def set_timestamp(self, new_timestamp: int) -> None:
        """Give the next block its time."""
        self.make_request("evm_setNextBlockTimestamp", [new_timestamp])

    def mine(self, num_blocks: int = 1) -> None:
        self.chain.seal(num_blocks)

    @property
    def auto_mine(self) -> bool:
        return bool(self.make_request("anvil_getAutomine"))

    @auto_mine.setter
    def auto_mine(self, value: bool) -> None:
        self.make_request("evm_setAutomine", [value])

    # --- Accounts --------------------------------------------------------------------------

    def unlock_account(self, address: str) -> bool:
        self.make_request("anvil_impersonateAccount", [address])
        return True

    def relock_account(self, address: str) -> None:
        self.make_request("anvil_stopImpersonatingAccount", [address])

    def set_balance(self, address: str, amount: Any) -> None:
        self.chain.set_balance(address, self.conversion_manager.convert(amount, int))

    def set_code(self, address: str, code: Any) -> bool:
        self.chain.set_code(address, HexBytes(code))
        return True

    def set_storage(self, address: str, slot: int, value: Any) -> None:
        self.chain.set_storage(address, slot, int.from_bytes(HexBytes(value)))
