"""The printed output of a network: in order, repeated requests once, and never awaited."""

import threading
from pathlib import Path

import pytest

from foreblock.bus.commands import Revert, TakeSnapshot
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.tracing.chain_report import ReachedPosition
from foreblock.settings import ChainSettings
from foreblock.sources.console_output import (
    MOST_WAITING,
    ConsoleOutput,
    NetworkPrinter,
    console_output_of,
)
from support.chains import dev_chain
from support.chains.dev_chain import ACCOUNTS, send
from support.servers.waiting import PATIENCE

CHAIN = ChainSettings(print=True)


def printed(*requests: str, label: str = "") -> list[str]:
    texts: list[str] = []
    printer = NetworkPrinter(texts.append, label)
    for each in requests:
        if each.startswith(" "):
            printer.text(each)
        else:
            printer.request(each)
    printer.close()
    return texts


def test_requests_and_texts_come_in_their_order() -> None:
    assert printed("eth_chainId", "eth_call", " a line\n another", "eth_call") == [
        "eth_chainId", "eth_call", " a line\n another", "eth_call",
    ]  # fmt: skip


def test_the_same_request_again_is_counted_before_the_next_line() -> None:
    assert printed(*["eth_blockNumber"] * 5, "eth_call", "eth_blockNumber") == [
        "eth_blockNumber", "eth_blockNumber (5 times)", "eth_call", "eth_blockNumber",
    ]  # fmt: skip


def test_a_text_between_begins_the_count_again() -> None:
    assert printed("eth_call", " logged", "eth_call") == ["eth_call", " logged", "eth_call"]


def test_each_line_of_several_networks_begins_with_its_name() -> None:
    assert printed("eth_call", " one\n\n two", label="main  ") == [
        "main  eth_call", "main   one\n\nmain   two",
    ]  # fmt: skip


def test_who_gives_something_up_prints_it_first(tmp_path: Path) -> None:
    chain = dev_chain.DevChain(tmp_path / "store", mining="automine")
    texts: list[str] = []
    printer = NetworkPrinter(texts.append)
    printer.follow(Ledger(chain.store, clock=chain.clock), ConsoleOutput(is_on=True, traces=False))
    before = chain.execute(TakeSnapshot())
    for number in range(2):
        printer.request("eth_sendRawTransaction")
        chain.submit(send(ACCOUNTS[0], number))
        partial = chain.sequencer.builder.block.partials[-1]
        printer.committed(ReachedPosition(chain.sequencer.builder.parent.number, partial))
        printer.request("eth_getTransactionReceipt")
    printer.catch_up()
    lines = [line for text in texts for line in text.split("\n")]
    names = ("eth_", "    Transaction", "    Block Number")
    assert [line for line in lines if line.startswith(names)] == [
        *("eth_sendRawTransaction", _transaction(0), "    Block Number: 1"),
        *("eth_getTransactionReceipt", "eth_sendRawTransaction", _transaction(1)),
        *("    Block Number: 2", "eth_getTransactionReceipt"),
    ]
    chain.execute(Revert(before))
    printer.committed(ReachedPosition(0, chain.sequencer.builder.block.partials[-1]))
    printer.close()
    assert texts[-1] == "    Removed blocks: 2, after block 0"
    chain.kill()


def _transaction(nonce: int) -> str:
    return f"    Transaction: 0x{send(ACCOUNTS[0], nonce).hash.hex()}"


def test_what_is_too_much_is_dropped_and_counted() -> None:
    texts: list[str] = []
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def put(text: str) -> None:
        texts.append(text)
        begun.set()
        assert free.wait(PATIENCE)
        if text == str(MOST_WAITING - 1):
            ended.set()

    printer = NetworkPrinter(put)
    printer.text("first")
    assert begun.wait(PATIENCE)
    for number in range(MOST_WAITING + 3):
        printer.text(str(number))
    printer.miss(4)
    free.set()
    assert ended.wait(PATIENCE)
    printer.close()
    assert texts[:3] == ["first", "(7 requests or texts are not shown)", "0"]
    assert texts[3:] == [str(number) for number in range(1, MOST_WAITING)]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, ConsoleOutput(is_on=True, traces=False)),
        (DevState(b""), ConsoleOutput(is_on=True, traces=False)),
        (DevState(b"", prints=False), ConsoleOutput(is_on=False, traces=False)),
        (DevState(b"", prints_traces=True), ConsoleOutput(is_on=True, traces=True)),
    ],
)
def test_what_the_chain_was_told_goes_before_the_settings(
    state: DevState | None, expected: ConsoleOutput
) -> None:
    assert console_output_of(CHAIN, state) == expected
