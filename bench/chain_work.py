"""The work of python_chains.py: the same payments, snapshots and calls on each chain.

    python chain_work.py CHAIN SECONDS

prints times in milliseconds as JSON. pytest runs the test at the end. titanoboa and pyrevm have
neither transactions nor receipts: a payment is a bare call there.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

import pytest

ALICE: Final = "0x" + "11" * 20
BOB: Final = "0x" + "22" * 20
ETHER: Final = 10**18
PATIENCE: Final = 10  # seconds for a request
# Ten thousand times: subtract one and jump back. Then it returns one.
LOOP: Final = bytes.fromhex("6127105b6001900380600357600160005260206000f3")
DEPLOYS: Final = bytes([0x60, len(LOOP)]) + bytes.fromhex("80600b6000396000f3") + LOOP
ONE: Final = bytes(31) + b"\1"


class Chain:
    """A chain that is measured."""

    statement = ""  # that imports it
    distribution = ""

    @cached_property
    def w3(self) -> Any:
        """A web3.Web3. Raises `ModuleNotFoundError` if web3.py is missing."""
        raise NotImplementedError

    @cached_property
    def looping(self) -> Any:
        """The address of the loop."""
        raise NotImplementedError

    def pay(self) -> int:
        """Pay Bob one wei, check the receipt, and return Bob's balance."""
        raise NotImplementedError

    def call(self) -> bytes:
        """Call the loop."""
        raise NotImplementedError

    def snapshot(self) -> AbstractContextManager[Any]:
        """Take the chain back at the end."""
        raise NotImplementedError

    def version(self) -> str:
        return version(self.distribution)

    def close(self) -> None:
        """End it."""

    def pay_by_web3(self) -> int:
        eth = self.w3.eth
        sent = eth.send_transaction({"from": eth.accounts[0], "to": BOB, "value": 1})
        assert eth.wait_for_transaction_receipt(sent, poll_latency=0.001)["status"] == 1
        balance: int = eth.get_balance(BOB)
        return balance


class Foreblock(Chain):
    """foreblock.DevChain."""

    statement = "from foreblock import DevChain"
    distribution = "foreblock"

    def __init__(self) -> None:
        from foreblock import DevChain

        self.chain = DevChain()
        self.snapshot = self.chain.snapshot
        self.close = self.chain.close

    @cached_property
    def w3(self) -> Any:
        return self.chain.web3()

    @cached_property
    def looping(self) -> Any:
        return self.chain.deploy(DEPLOYS).address

    def pay(self) -> int:
        return pay_on(self.chain)

    def call(self) -> bytes:
        return bytes(self.chain.call_raw(self.looping))


def pay_on(chain: Any) -> int:
    """Pay on a DevChain."""
    assert chain.send(BOB, value=1).receipt.status == 1
    balance: int = chain.balance(BOB)
    return balance


class EthTester(Chain):
    """eth-tester with its own backend, py-evm."""

    statement = "from eth_tester import EthereumTester, PyEVMBackend; import eth.chains"
    distribution = "eth-tester"

    def __init__(self) -> None:
        from eth_tester import EthereumTester

        self.tester: Any = EthereumTester(self.backend())
        self.sender = self.tester.get_accounts()[0]

    @cached_property
    def w3(self) -> Any:
        from web3 import EthereumTesterProvider, Web3

        return Web3(EthereumTesterProvider(self.tester))

    @cached_property
    def looping(self) -> Any:
        made = {"from": self.sender, "data": "0x" + DEPLOYS.hex(), "gas": 200_000}
        sent = self.tester.send_transaction(made)
        return self.tester.get_transaction_receipt(sent)["contract_address"]

    def backend(self) -> Any:
        import eth.chains  # eth-tester has a mock instead if py-evm is missing
        from eth_tester import PyEVMBackend

        assert eth.chains
        return PyEVMBackend()

    def pay(self) -> int:
        fields = {"from": self.sender, "to": BOB, "value": 1, "gas": 21_000}
        sent = self.tester.send_transaction(fields)
        assert self.tester.get_transaction_receipt(sent)["status"] == 1
        balance: int = self.tester.get_balance(BOB)
        return balance

    def call(self) -> bytes:
        fields = {"from": self.sender, "to": self.looping, "gas": 1_000_000}
        return bytes.fromhex(self.tester.call(fields)[2:])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        snapshot = self.tester.take_snapshot()
        yield
        self.tester.revert_to_snapshot(snapshot)


class EthTesterOnForeblock(EthTester):
    """eth-tester with the backend of foreblock."""

    statement = "from eth_tester import EthereumTester; from foreblock.eth_tester import Backend"

    def backend(self) -> Any:
        from foreblock.eth_tester import Backend

        return Backend()

    def close(self) -> None:
        self.tester.backend.chain.close()


class Anvil(Chain):
    """Anvil in a process of its own, over HTTP: JSON by http.client, or web3.py's HTTPProvider."""

    def __init__(self) -> None:
        program = os.environ.get("ANVIL")
        if not program:
            raise ModuleNotFoundError(name="anvil")
        self.process: Any = subprocess.Popen(
            [program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.close = weakref.finalize(self, end, self.process)
        said = next(line for line in self.process.stdout if line.startswith("Listening on "))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # it prints on
        self.address = said.split()[-1]
        self.connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        self.sender = self.request("eth_accounts")[0]

    @cached_property
    def w3(self) -> Any:
        from web3 import HTTPProvider, Web3

        return Web3(HTTPProvider(f"http://{self.address}"))

    @cached_property
    def looping(self) -> Any:
        made = {"from": self.sender, "data": "0x" + DEPLOYS.hex()}
        sent = self.request("eth_sendTransaction", made)
        return self.receipt(sent)["contractAddress"]

    def request(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return json.loads(self.connection.getresponse().read())["result"]

    def receipt(self, sent: str) -> Any:
        """A receipt; the transaction may not be in a block yet."""
        until = time.monotonic() + PATIENCE
        while (found := self.request("eth_getTransactionReceipt", sent)) is None:
            assert time.monotonic() < until, "the transaction is in no block"
        return found

    def pay(self) -> int:
        fields = {"from": self.sender, "to": BOB, "value": "0x1"}
        sent = self.request("eth_sendTransaction", fields)
        assert self.receipt(sent)["status"] == "0x1"
        return int(self.request("eth_getBalance", BOB, "latest"), 16)

    def call(self) -> bytes:
        return bytes.fromhex(self.request("eth_call", {"to": self.looping}, "latest")[2:])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        snapshot = self.request("evm_snapshot")
        yield
        assert self.request("evm_revert", snapshot)

    def version(self) -> str:
        return str(self.request("web3_clientVersion")).removeprefix("anvil/")


def end(process: subprocess.Popen[str]) -> None:
    """End a process and its children: npm's anvil is the child of a script."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Titanoboa(Chain):
    """titanoboa's Env, which is py-evm without blocks."""

    statement = "import boa"
    distribution = "titanoboa"

    def __init__(self) -> None:
        import boa

        self.env: Any = boa.Env()
        self.env.set_balance(self.env.eoa, ETHER)
        self.snapshot = self.env.anchor

    @cached_property
    def looping(self) -> Any:
        return self.env.deploy_code(bytecode=DEPLOYS)[0]

    def pay(self) -> int:
        self.env.raw_call(BOB, value=1)
        balance: int = self.env.get_balance(BOB)
        return balance

    def call(self) -> bytes:
        return bytes(self.env.raw_call(self.looping, simulate=True).output)


class Pyrevm(Chain):
    """pyrevm's EVM: revm without blocks."""

    statement = "from pyrevm import EVM"
    distribution = "pyrevm"

    def __init__(self) -> None:
        from pyrevm import EVM

        self.evm: Any = EVM()
        self.evm.set_balance(ALICE, ETHER)

    @cached_property
    def looping(self) -> Any:
        return self.evm.deploy(ALICE, DEPLOYS)

    def pay(self) -> int:
        self.evm.message_call(ALICE, BOB, value=1)
        balance: int = self.evm.get_balance(BOB)
        return balance

    def call(self) -> bytes:
        return bytes(self.evm.message_call(ALICE, self.looping, is_static=True))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        snapshot = self.evm.snapshot()
        yield
        self.evm.revert(snapshot)


CHAINS: Final[Mapping[str, type[Chain]]] = {
    "foreblock": Foreblock,
    "eth-tester on foreblock": EthTesterOnForeblock,
    "eth-tester": EthTester,
    "anvil": Anvil,
    "titanoboa": Titanoboa,
    "pyrevm": Pyrevm,
}


def times(kind: type[Chain], seconds: float) -> dict[str, Any]:
    """The times of each work."""
    exec(kind.statement, {})  # noqa: S102, it imports the chain
    found = {"first chain": [timed(lambda: kind().close())]}
    found["another chain"] = repeated(lambda: kind().close(), seconds)
    chain = kind()
    assert chain.call() == ONE
    with chain.snapshot():
        assert chain.pay() == 1
    assert chain.pay() == 1  # the snapshot took the first one back
    found["transfer, receipt, balance"] = repeated(chain.pay, seconds)
    without = ""
    with suppress(NotImplementedError):
        try:
            found["the same by web3.py"] = repeated(chain.pay_by_web3, seconds)
        except ModuleNotFoundError:
            without = "web3.py"
    found["snapshot, revert"] = repeated(lambda: _within(chain, int), seconds)
    found["snapshot, transfer, revert"] = repeated(lambda: _within(chain, chain.pay), seconds)
    found["call of 10,000 rounds"] = repeated(chain.call, seconds)
    told = {"version": chain.version(), "statement": kind.statement, "without": without}
    chain.close()
    return {"times": found, **told}


def _within(chain: Chain, work: Callable[[], object]) -> None:
    with chain.snapshot():
        work()


def repeated(work: Callable[[], object], seconds: float) -> list[float]:
    """Times of the work, at least three and 500 at most."""
    until, found = time.perf_counter() + seconds, list[float]()
    while len(found) < 3 or (time.perf_counter() < until and len(found) < 500):
        found.append(timed(work))
    return found


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


@pytest.fixture(scope="session")
def shared() -> Iterator[Chain | None]:
    """The chain whose snapshot each test has; foreblock's own fixture does this by itself."""
    kind = CHAINS[os.environ["CHAIN"]]
    if kind is Foreblock:
        yield None
        return
    chain = kind()
    yield chain
    chain.close()


@pytest.fixture
def fresh(shared: Chain | None, request: pytest.FixtureRequest) -> Iterator[Callable[[], int]]:
    """A payment on a fresh chain."""
    if shared is None:
        chain = request.getfixturevalue("chain")
        yield lambda: pay_on(chain)
        return
    with shared.snapshot():
        yield shared.pay


@pytest.mark.parametrize("number", range(int(os.environ.get("TESTS", "1"))))
def test_a_payment_on_a_fresh_chain(fresh: Callable[[], int], number: int) -> None:  # noqa: ARG001
    assert fresh() == 1


if __name__ == "__main__":
    try:
        print(json.dumps(times(CHAINS[sys.argv[1]], float(sys.argv[2]))))
    except ModuleNotFoundError as why:
        print(json.dumps({"missing": why.name}))
