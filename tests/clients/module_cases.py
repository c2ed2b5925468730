"""web3.py's own tests of a node, on a chain in the process or on anvil.

    python -m pytest module_cases.py
    ANVIL=path/to/anvil python -m pytest module_cases.py

Each test has the chain as it was after the contracts were deployed. test_modules.py runs it with
the libraries of this folder.
"""

# Only in its environment are the base classes installed.
# mypy: disable-error-code="misc"

import asyncio
import os
import re
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio
from eth_account import Account
from eth_utils import to_bytes
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3._utils.contract_sources.contract_data import (
    _custom_contract_data,
    emitter_contract,
    math_contract,
    offchain_lookup,
    panic_errors_contract,
    revert_contract,
    storage_contract,
)
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    EthModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
    GoEthereumDebugModuleTest,
    GoEthereumTxPoolModuleTest,
    NetModuleTest,
    Web3ModuleTest,
)
from web3._utils.module_testing.persistent_connection_provider import (
    PersistentConnectionProviderTest,
)
from web3._utils.module_testing.utils import RequestMocker
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest

from foreblock import DevChain

Json = Any
CONTRACTS = {
    "math_contract": math_contract.MATH_CONTRACT_DATA,
    "emitter_contract": emitter_contract.EMITTER_CONTRACT_DATA,
    "revert_contract": revert_contract.REVERT_CONTRACT_DATA,
    "panic_errors_contract": panic_errors_contract.PANIC_ERRORS_CONTRACT_DATA,
    "storage_contract": storage_contract.STORAGE_CONTRACT_DATA,
    "offchain_lookup_contract": {
        "abi": offchain_lookup.OFFCHAIN_LOOKUP_ABI,
        "bytecode": offchain_lookup.OFFCHAIN_LOOKUP_BYTECODE,
    },
}
LOG = _custom_contract_data.EMITTER_ENUM["LogDoubleWithIndex"]
CHAIN_ID = 131277322940537  # which the tests expect
WORDS = "test test test test test test test test test test test junk"
# Tests whose transactions wait: they replace them, or look at what is not in a block.
WAITING = re.compile("(replace|modify)_transaction(?!_already_mined|_non_existing)|unmined")
# Tests that fail here, with the reason, and what anvil 1.7.1 does.
EXCEPTIONS = {
    "(replace|modify)_transaction(?!_already_mined|_non_existing)": (
        "get_transaction is null for a transaction that waits, as the chain shows what is "
        "pre-confirmed; anvil passes, but for modify_transaction"
    ),
    "eth_sign_transaction": (
        "the result is the raw transaction, as in the execution APIs, and not geth's object; "
        "the same on anvil"
    ),
    "getBlockByHash_pending|Async.*getBlockByNumber_pending": (
        "the pending block has a hash, which pins it; the same on anvil"
    ),
    "TestEth.*test_invalid_eth_sign_typed_data": (
        "the refusal has another text; the same on anvil"
    ),
    "TestAsyncEth.*eth_sign_typed_data": (
        "web3.py 8.0.0 fails before the request; the same on anvil"
    ),
    "syncing-True": "the first notification is the state of the moment; anvil has no such kind",
}


class Target:
    """A chain with the contracts, and blocks with a transaction, with a log and without both."""

    def __init__(self, w3: Web3) -> None:
        self.w3 = w3
        Account.enable_unaudited_hdwallet_features()
        account = Account.from_mnemonic(WORDS)
        self.account, self.key = account.address, account.key.to_0x_hex()
        sender = {"from": self.account}
        self.addresses = {}
        for name, data in CONTRACTS.items():
            self.deployed = w3.eth.contract(**data).constructor().transact(sender)
            receipt = w3.eth.wait_for_transaction_receipt(self.deployed)
            self.addresses[name] = receipt["contractAddress"]
            if name == "math_contract":
                self.math_deployed = self.deployed
        emitter = w3.eth.contract(
            self.addresses["emitter_contract"], abi=CONTRACTS["emitter_contract"]["abi"]
        )
        logged = emitter.functions.logDouble(which=LOG, arg0=12345, arg1=54321).transact(sender)
        self.logged = w3.eth.wait_for_transaction_receipt(logged)
        paid = w3.eth.send_transaction({**sender, "to": self.account, "value": 1})
        self.paid = w3.eth.wait_for_transaction_receipt(paid)
        self.rpc("evm_mine")

    def rpc(self, method: str, *params: Json) -> Json:
        return self.w3.provider.make_request(method, params)["result"]

    def synchronous(self) -> Web3:
        """A Web3 with a provider of its own: providers keep the middleware of their first one."""
        raise NotImplementedError

    def asynchronous(self) -> AsyncWeb3:
        raise NotImplementedError

    def block(self, name: Json) -> Json:
        return self.w3.eth.get_block(name)


class InProcess(Target):
    def __init__(self, chain: DevChain) -> None:
        super().__init__(chain.web3())
        self.chain = chain

    def synchronous(self) -> Web3:
        return self.chain.web3()

    def asynchronous(self) -> AsyncWeb3:
        return self.chain.async_web3()


class Anvil(Target):
    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(self.synchronous())

    def synchronous(self) -> Web3:
        return Web3(HTTPProvider(f"http://{self.address}"))

    def asynchronous(self) -> AsyncWeb3:
        return AsyncWeb3(WebSocketProvider(f"ws://{self.address}"))


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    program = os.environ.get("ANVIL")
    if not program:
        with DevChain("ethereum", chain_id=CHAIN_ID, timestamp=int(time.time())) as chain:
            yield InProcess(chain)
        return
    with subprocess.Popen(
        [program, "--port=0", f"--chain-id={CHAIN_ID}"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = next(line for line in process.stdout if line.startswith("Listening on "))
        threading.Thread(target=process.stdout.read, daemon=True).start()  # it prints on
        yield Anvil(said.split()[-1])
        process.kill()


@pytest.fixture(autouse=True)
def fresh(target: Target, request: pytest.FixtureRequest) -> Iterator[None]:
    """Take the chain back after the test, and expect the exceptions to fail."""
    name = f"{request.cls.__name__}.{request.node.name}"
    for exception, reason in EXCEPTIONS.items():
        if not os.environ.get("ANVIL") and re.search(exception, name):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    snapshot = target.rpc("evm_snapshot")
    if WAITING.search(name):
        target.rpc("evm_setAutomine", False)
    yield
    target.rpc("evm_setAutomine", True)
    target.rpc("evm_revert", snapshot)


@pytest.fixture
def w3(target: Target) -> Web3:
    return target.synchronous()


@pytest_asyncio.fixture  # type: ignore[untyped-decorator] # as the base classes
async def async_w3(target: Target, request: pytest.FixtureRequest) -> AsyncIterator[AsyncWeb3]:
    async with target.asynchronous() as w3:
        if request.cls is not TestSubscriptions:
            yield w3
            return
        blocks = asyncio.create_task(seal_blocks(target))
        yield w3
        blocks.cancel()
        with suppress(asyncio.CancelledError):
            await blocks


async def seal_blocks(target: Target) -> None:
    while True:
        target.rpc("evm_mine")
        await asyncio.sleep(0.02)


def fixtures_of(name: str) -> Iterator[tuple[str, Json]]:
    """The contract for both kinds of Web3."""
    abi = CONTRACTS[name]["abi"]
    yield name, lambda w3, target: w3.eth.contract(target.addresses[name], abi=abi)
    yield (
        f"async_{name}",
        lambda async_w3, target: async_w3.eth.contract(target.addresses[name], abi=abi),
    )


for contract in CONTRACTS:
    for fixture, make in fixtures_of(contract):
        globals()[fixture] = pytest.fixture(name=fixture)(make)
OF_TARGET: dict[str, Callable[..., object]] = {
    "keyfile_account_pkey": lambda target: target.key,
    "mined_txn_hash": lambda target: target.paid["transactionHash"],
    "txn_hash_with_log": lambda target: target.logged["transactionHash"],
    "math_contract_deploy_txn_hash": lambda target: target.math_deployed,
    "skip_if_testrpc": lambda: lambda _: None,
    "async_skip_if_testrpc": lambda: lambda _: None,
    "request_mocker": lambda: RequestMocker,
}
FOR_BOTH: dict[str, Callable[..., object]] = {
    "keyfile_account_address": lambda target: target.account,
    "keyfile_account_address_dual_type": lambda target: target.account,
    "empty_block": lambda target: target.block(target.paid["blockNumber"] + 1),
    "block_with_txn": lambda target: target.block(target.paid["blockNumber"]),
    "block_with_txn_with_log": lambda target: target.block(target.logged["blockNumber"]),
    "math_contract_address": lambda target, convert: convert(target.addresses["math_contract"]),
    "emitter_contract_address": lambda target, convert: convert(
        target.addresses["emitter_contract"]
    ),
}
OF_TARGET |= FOR_BOTH | {f"async_{name}": make for name, make in FOR_BOTH.items()}
for fixture, make in OF_TARGET.items():
    globals()[fixture] = pytest.fixture(name=fixture)(make)


@pytest.fixture(params=["text", "bytes"])
def convert(request: pytest.FixtureRequest) -> Json:
    return str if request.param == "text" else lambda text: to_bytes(hexstr=text)


class TestEth(EthModuleTest): ...


class TestAsyncEth(AsyncEthModuleTest): ...


class TestWeb3(Web3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version


class TestAsyncWeb3(AsyncWeb3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version


class TestNet(NetModuleTest): ...


class TestAsyncNet(AsyncNetModuleTest): ...


class TestDebug(GoEthereumDebugModuleTest): ...


class TestAsyncDebug(GoEthereumAsyncDebugModuleTest): ...


class TestTxPool(GoEthereumTxPoolModuleTest): ...


class TestAsyncTxPool(GoEthereumAsyncTxPoolModuleTest): ...


class TestSubscriptions(PersistentConnectionProviderTest): ...
