"""`foreblock dev --print`: events of a chain on standard output."""

import re
import threading
from collections.abc import Callable, Iterator

import pytest

from foreblock.ledger.tracing.call_tree import CONSOLE
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.payloads.bytecode import code
from support.payloads.solidity import call_data
from support.servers.dev_processes import Dev, Network, RpcError, dev_chain
from support.servers.waiting import until

OPTIONS = ("--mining=automine", "--test-listen=", "--dialect=ethereum", "--print")
ALICE, BOB = ("0x" + each.address.hex() for each in dev_accounts(TEST_MNEMONIC, 2))
CONTRACT = "0x" + "c0" * 20
LOGGING = code(
    "CALLDATASIZE", 0, 0, "CALLDATACOPY", 0, 0, "CALLDATASIZE", 0, CONSOLE, "GAS", "STATICCALL"
)
REVERTING = code("CALLDATASIZE", 0, 0, "CALLDATACOPY", "CALLDATASIZE", 0, "REVERT")


class Output:
    """The output of a chain since its start."""

    def __init__(self, dev: Dev) -> None:
        self.lines: list[str] = []
        assert dev.process.stdout is not None
        self._stdout = dev.process.stdout
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, *lines: str, since: int = 0) -> list[str]:
        """Wait for these lines in this order; return all lines up to the last of them."""

        def found() -> int | None:
            at = since
            for line in lines:
                if line not in self.lines[at:]:
                    return None
                at = self.lines.index(line, at) + 1
            return at

        return self.lines[since : until(found, f"{lines} are printed, not {self.lines}")]

    def end(self) -> None:
        self._thread.join()


@pytest.fixture(scope="module")
def printing() -> Iterator[tuple[Network, Output]]:
    with dev_chain(*OPTIONS, "--print-traces") as running:
        output = Output(running)
        yield running.main, output
    output.end()


def call(network: Network, program: str, data: bytes) -> Callable[[], object]:
    """A call of this code."""
    asked = {"to": CONTRACT, "data": "0x" + data.hex()}
    return lambda: network.ask("eth_call", asked, "latest", {CONTRACT: {"code": program}})


def test_requests_transactions_and_the_console_are_printed_in_order(
    printing: tuple[Network, Output],
) -> None:
    network, output = printing
    network.ask("anvil_setCode", CONTRACT, LOGGING)
    data = call_data("log(string,uint256)", b"the answer is %s", 42)
    sent = {"from": ALICE, "to": CONTRACT, "data": "0x" + data.hex(), "gas": hex(100_000)}
    transaction = network.ask("eth_sendTransaction", sent)
    receipt = network.ask("eth_getTransactionReceipt", transaction)
    output.wait_for(
        "anvil_setCode",
        "eth_sendTransaction",
        "the answer is 42",
        "",
        f"    Transaction: {transaction}",
        f"    Gas used: {int(receipt['gasUsed'], 16)}",
        "",
        f"    Block Number: {int(receipt['blockNumber'], 16)}",
        f"    Block Hash: {receipt['blockHash']}",
        "",
        "eth_getTransactionReceipt",
    )


def test_calls_that_fail_are_printed_with_the_reason_and_their_calls(
    printing: tuple[Network, Output],
) -> None:
    network, output = printing
    asked = {"to": CONTRACT, "data": "0x" + call_data("Error(string)", b"too late").hex()}
    body = [asked, "latest", {CONTRACT: {"code": REVERTING}}]
    assert "too late" in refused(network, "eth_call", *body)
    assert "too late" in refused(network, "eth_estimateGas", *body)
    expected = ("Traces:", "    Error: reverted with: too late")
    output.wait_for("eth_call", *expected, "eth_estimateGas", *expected)


def refused(network: Network, method: str, *params: object) -> str:
    with pytest.raises(RpcError) as refusal:
        network.ask(method, *params)
    return refusal.value.message


def test_it_is_switched_while_it_runs_in_every_worker(printing: tuple[Network, Output]) -> None:
    network, output = printing
    latest, since = network.latest(), len(output.lines)
    network.ask("anvil_setLoggingEnabled", False)
    for _ in range(20):  # some for each worker
        network.ask("eth_getBalance", BOB, "latest")
        network.ask("eth_blockNumber")
    network.ask("hardhat_setLoggingEnabled", True)
    for _ in range(20):
        network.ask("eth_getBalance", BOB, "latest")
        network.ask("eth_chainId")
    network.ask("anvil_mine")  # output of earlier requests precedes its response
    lines = output.wait_for(f"    Block Number: {latest + 1}", since=since)
    assert times(lines, "eth_blockNumber") == 0
    assert times(lines, "eth_getBalance") == times(lines, "eth_chainId") == 20


def times(lines: list[str], method: str) -> int:
    """Return the number of calls of a method, from the output."""
    more = [re.fullmatch(rf"{method} \((\d+) times\)", line) for line in lines]
    return lines.count(method) + sum(int(found[1]) - 1 for found in more if found)


@pytest.mark.heavy
def test_a_chain_that_is_not_printed_prints_nothing() -> None:
    with dev_chain(*OPTIONS[:-1]) as running:
        output = Output(running)
        sent = {"from": ALICE, "to": BOB, "value": "0x1"}
        running.main.ask("eth_sendTransaction", sent)
    output.end()
    assert output.lines == ["stopped"]


@pytest.mark.heavy
def test_the_next_writer_goes_on_as_it_was_told() -> None:
    with dev_chain(*OPTIONS[:-1]) as running:
        output, network = Output(running), running.main
        network.ask("anvil_setLoggingEnabled", True)
        killed = running.kill("writer")
        until(lambda: running.pids("writer") not in ([], [killed]), "the next writer")
        sent = {"from": ALICE, "to": BOB, "value": "0x1"}
        transaction = until(lambda: accepted(network, sent), "it takes transactions")
        output.wait_for(f"    Transaction: {transaction}", "    Block Number: 1")
    output.end()


def accepted(network: Network, sent: dict[str, str]) -> str | None:
    """The hash of a transaction, if it can be accepted."""
    try:
        found: str = network.ask("eth_sendTransaction", sent)
    except RpcError:
        return None
    return found


@pytest.mark.heavy
def test_a_reader_that_stops_stops_nothing_and_hears_what_it_missed() -> None:
    line = call_data("log(string)", b"x" * 100_000)
    with dev_chain(*OPTIONS) as running:
        log = call(running.main, LOGGING, line)
        for _ in range(30):  # more than a pipe and the queue hold
            log()
        sent = {"from": ALICE, "to": BOB, "value": "0x1"}
        transaction = running.main.ask("eth_sendTransaction", sent)
        assert running.main.ask("eth_getTransactionReceipt", transaction)["status"] == "0x1"
        output = Output(running)
        until(lambda: any("are not shown" in line for line in output.lines), "it is printed")
        running.main.ask("eth_gasPrice")
        output.wait_for("eth_gasPrice")
    output.end()
