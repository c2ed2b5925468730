"""Printed requests: the table of methods while they are printed, and while they are not."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.bus.commands import SetConsoleOutput
from foreblock.errors import RefusedCommand
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.tracing.call_tree import CONSOLE
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.steps import Pipelined
from foreblock.service.printed_requests import PrintedRequests
from foreblock.settings import ChainSettings, Settings
from foreblock.settings.networks import Network
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.payloads.bytecode import code
from support.payloads.solidity import call_data
from support.servers.asking import ANYBODY, request
from support.servers.two_ways import PathPair

OPTIONS = Settings(dialect="ethereum")
NETWORK = Network(name="main", data="none", source="dev", dev=ChainSettings())
BALANCE = request("eth_getBalance", "0x" + ACCOUNTS[0].address.hex(), "latest")
CONTRACT = "0x" + "c0" * 20
TO_CONSOLE = (
    "CALLDATASIZE", 0, 0, "CALLDATACOPY", 0, 0, "CALLDATASIZE", 0, CONSOLE, "GAS", "STATICCALL",
)  # fmt: skip
LOGGING = code(*TO_CONSOLE)
REVERTING = code(*TO_CONSOLE, "CALLDATASIZE", 0, "REVERT")


class Link:
    """A worker's end of the bus that records printed output."""

    def __init__(self) -> None:
        self.printed: list[tuple[str, str, bool]] = []
        self.changed: Callable[[], None] = lambda: None

    def when_changed(self, call: Callable[[], None]) -> None:
        self.changed = call

    def request_printer(self, network: str) -> Callable[[str], None]:
        return lambda method: self.print(network, method, is_request=True)

    def print(self, network: str, text: str, *, is_request: bool = False) -> None:
        self.printed.append((network, text, is_request))


class Printed:
    """A chain, a service over it with a fast path, and its printed output."""

    def __init__(self, folder: Path) -> None:
        self.chain = DevChain(folder / "store", mining="automine")
        ledger = Ledger(self.chain.store, clock=self.chain.clock)
        self.ways, self.link = PathPair(ledger, OPTIONS), Link()
        self.requests = PrintedRequests(ledger, NETWORK, self.link)  # type: ignore[arg-type]
        self.requests.add(self.ways.service.methods, OPTIONS, self.ways.scheduler)
        self.requests.refresh()

    def switch(self, **wanted: bool) -> None:
        """Switch printing; the worker is notified."""
        self.chain.execute(SetConsoleOutput(**wanted))
        self.link.changed()

    def ask(self, method: str, *params: object) -> dict[str, Any]:
        reply = self.ways.answer(request(method, *params), ANYBODY)
        assert isinstance(reply, Reply)
        found: dict[str, Any] = json.loads(reply.body)
        return found

    def printed(self) -> list[tuple[str, str, bool]]:
        found, self.link.printed = self.link.printed, []
        return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Printed]:
    printed = Printed(tmp_path)
    yield printed
    printed.ways.scheduler.close()


def test_nothing_changes_while_nothing_is_printed(service: Printed) -> None:
    assert service.ways.at_once(BALANCE) is not None
    service.ask("eth_chainId")
    assert service.printed() == []


def test_while_requests_are_printed_all_of_them_are(service: Printed) -> None:
    service.switch(is_on=True)
    service.ask("eth_chainId")
    service.ask("no_such_method")
    assert service.printed() == [("main", "eth_chainId", True)]


def test_the_fast_path_prints_what_it_answers(service: Printed) -> None:
    service.switch(is_on=True)
    service.ask("eth_chainId")  # which reads the commit
    service.printed()
    for body, count in ((BALANCE, 1), (b"[%b,%b]" % (BALANCE, BALANCE), 2)):
        assert service.ways.at_once(body) is not None
        assert service.printed() == [("main", "eth_getBalance", True)] * count
    assert service.ways.at_once(request("eth_chainId")) is None
    assert service.printed() == [("main", "eth_chainId", True)]


def test_calls_are_explained_and_not_the_fast_path_s_while_they_are_printed(
    service: Printed,
) -> None:
    asked = ({"to": CONTRACT, "data": "0x12345678"}, "latest")
    service.ask("eth_call", *asked)
    assert service.ways.at_once(request("eth_call", *asked)) is not None, "its kind is short"
    service.switch(is_on=True)
    service.ask("eth_call", *asked)
    assert service.printed() == [("main", "eth_call", True)]
    assert service.ways.at_once(request("eth_call", *asked)) is None
    service.switch(is_on=False)
    service.ask("eth_call", *asked)
    assert service.ways.at_once(request("eth_call", *asked)) is not None


def test_a_request_that_fails_tells_why_at_once_or_later(service: Printed) -> None:
    service.switch(is_on=True)
    why = service.ask("eth_getBalance", "0x", "latest")["error"]["message"]
    name, text = service.printed()
    assert (name, text) == (("main", "eth_getBalance", True), ("main", f"    Error: {why}", False))
    raw = send(ACCOUNTS[0], 0).raw
    why = service.ask("eth_sendRawTransaction", "0x" + raw.hex())["error"]["message"]
    assert service.printed()[1] == ("main", f"    Error: {why}", False)


def test_what_may_be_awaited_together_still_may_while_it_is_printed(service: Printed) -> None:
    async def failing() -> bytes:
        raise RefusedCommand("no")

    table: Any = {"evm_some": lambda _view, _raw: Pipelined(failing(), lambda text: text)}
    service.requests.add(table, OPTIONS, service.ways.scheduler)
    service.switch(is_on=True)
    result = table["evm_some"](None, b"")
    assert isinstance(result, Pipelined)

    async def run() -> None:
        with pytest.raises(RefusedCommand):
            await result

    asyncio.run(run())
    assert service.printed() == [("main", "evm_some", True), ("main", "    Error: no", False)]


def test_afterwards_the_fast_path_answers_again(service: Printed) -> None:
    plain = dict(service.ways.service.methods)
    service.switch(is_on=True)
    assert service.ways.service.methods != plain
    service.switch(is_on=False)
    assert service.ways.service.methods == plain
    service.ask("eth_chainId")
    assert service.ways.at_once(BALANCE) is not None
    assert service.printed() == []


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
def test_a_call_tells_what_it_logged_and_why_it_failed(service: Printed, method: str) -> None:
    service.switch(is_on=True)
    asked = {"to": CONTRACT, "data": "0x" + call_data("log(string)", b"here").hex()}
    answer = service.ask(method, asked, "latest", {CONTRACT: {"code": LOGGING}})
    assert "result" in answer
    assert service.printed() == [("main", method, True), ("main", "here", False)]
    answer = service.ask(method, asked, "latest", {CONTRACT: {"code": REVERTING}})
    assert answer["error"]["code"] == 3
    (_, (_, text, _)) = service.printed()
    assert text.startswith("here\n    Error: reverted with: custom error 0x41304fac")


def test_a_call_that_says_nothing_prints_its_name_alone(service: Printed) -> None:
    service.switch(is_on=True)
    service.ask("eth_call", {"to": CONTRACT}, "latest")
    assert service.printed() == [("main", "eth_call", True)]


def test_all_calls_are_told_on_demand(service: Printed) -> None:
    service.switch(is_on=True, traces=True)
    asked = {"to": CONTRACT, "data": "0x01020304"}
    service.ask("eth_call", asked, "latest", {CONTRACT: {"code": LOGGING}})
    (_, (_, text, _)) = service.printed()
    first, *lines = text.split("\n")
    assert first == "Traces:"
    assert [line.split("] ")[1].split()[0] for line in lines] == ["CALL", "STATICCALL"]
