"""The printed report of a chain: transactions with their logs, blocks, and removals."""

from pathlib import Path

import pytest

from foreblock.bus.commands import Mine, RestartBlock, Revert, SetAccount, SetTime, TakeSnapshot
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.transaction_rules import checksum_address, created_address
from foreblock.ledger.tracing.call_tree import CONSOLE
from foreblock.ledger.tracing.chain_report import (
    MOST_BLOCKS,
    MOST_TRANSACTIONS,
    ChainReport,
    ReachedPosition,
)
from foreblock.types import Transaction
from support.chains.dev_chain import ACCOUNTS, DevChain, send
from support.payloads.bytecode import code
from support.payloads.solidity import call_data

ALICE, BOB = ACCOUNTS[:2]
LOGGING, REVERTING, CALLING = (bytes([number]) * 20 for number in (0xC1, 0xC2, 0xC3))
DATA_TO_MEMORY = ("CALLDATASIZE", 0, 0, "CALLDATACOPY")
CODE = {
    # Each acts on its call data.
    LOGGING: code(*DATA_TO_MEMORY, 0, 0, "CALLDATASIZE", 0, CONSOLE, "GAS", "STATICCALL"),
    REVERTING: code(*DATA_TO_MEMORY, "CALLDATASIZE", 0, "REVERT"),
    CALLING: code(
        *DATA_TO_MEMORY, 0, 0, "CALLDATASIZE", 0, "CALLVALUE", REVERTING, "GAS", "CALL",
        0, 0, "CALLDATASIZE", 0, LOGGING, "GAS", "STATICCALL",
    ),
}  # fmt: skip
LINE = call_data("log(string,uint256)", b"%s is the answer", 42)
ERROR = call_data("Error(string)", b"not enough")


@pytest.fixture
def chain(tmp_path: Path) -> DevChain:
    return begun(tmp_path, "automine")


def begun(folder: Path, mining: str) -> DevChain:
    chain = DevChain(folder / "store", mining=mining)  # type: ignore[arg-type]
    for address, program in CODE.items():
        chain.execute(SetAccount(address, code=bytes.fromhex(program[2:])))
    return chain


def report(chain: DevChain) -> ChainReport:
    return ChainReport(Ledger(chain.store, clock=chain.clock))


def told(report: ChainReport, *, traces: bool = False) -> list[str]:
    """The reported lines."""
    return [line for text in report.report(traces=traces) for line in text.split("\n")]


def run(chain: DevChain, to: bytes | None, data: bytes = b"", value: int = 0) -> Transaction:
    """Send a transaction of the first account, which is mined immediately."""
    nonce = chain.sequencer.next_nonce(ALICE.address)
    transaction = send(ALICE, nonce, to, value, data=data, gas=200_000)
    chain.submit(transaction)
    return transaction


def about(transaction: Transaction, gas: int, *more: str) -> list[str]:
    return ["", f"    Transaction: 0x{transaction.hash.hex()}", f"    Gas used: {gas}", *more]


def sealed(chain: DevChain, time: str) -> list[str]:
    header = chain.sealed()[-1].header
    return [
        "",
        f"    Block Number: {header.number}",
        f"    Block Hash: 0x{header.hash.hex()}",
        f'    Block Time: "{time}"',
        "",
    ]


def test_a_transaction_is_told_with_its_line_and_its_block(chain: DevChain) -> None:
    following = report(chain)
    sent = run(chain, LOGGING, LINE)
    time = "Thu, 01 Jan 2026 00:00:01 +0000"
    assert told(following) == ["42 is the answer", *about(sent, 24_461), *sealed(chain, time)]
    assert told(following) == []


def test_a_look_tells_no_more_than_the_chain_had_reached(chain: DevChain) -> None:
    following, reached = report(chain), []
    sent = []
    for _ in range(3):
        sent.append(run(chain, LOGGING, LINE))
        reached.append(
            ReachedPosition(
                chain.sequencer.builder.parent.number, chain.sequencer.builder.block.partials[-1]
            )
        )
    for number, (transaction, place) in enumerate(zip(sent, reached, strict=True), 1):
        lines = [
            line for text in following.report(place, traces=False) for line in text.split("\n")
        ]
        assert lines[:4] == ["42 is the answer", *about(transaction, 24_461)]
        assert [line for line in lines if "Block Number" in line] == [f"    Block Number: {number}"]
        assert list(following.report(place, traces=False)) == []
    assert told(following) == []


def test_a_revert_is_told_with_its_reason(chain: DevChain) -> None:
    following = report(chain)
    for data, why in (
        (ERROR, "reverted with: not enough"),
        (call_data("Panic(uint256)", 0x11), "reverted with: arithmetic underflow or overflow"),
        (b"\1\2\3\4", "reverted with: custom error 0x01020304"),
        (b"", "reverted"),
        (call_data("Error(string)", b"\x1b[2Jgone"), r"reverted with: \x1b[2Jgone"),
    ):
        run(chain, REVERTING, data)
        assert f"    Error: {why}" in told(following)


def test_a_contract_that_is_created_is_named(chain: DevChain) -> None:
    following = report(chain)
    run(chain, None, b"\x00")
    created = checksum_address(created_address(ALICE.address, 0))
    assert f"    Contract created: {created}" in told(following)


def test_all_calls_are_told_on_demand(chain: DevChain) -> None:
    following = report(chain)
    run(chain, CALLING, ERROR, value=3)
    lines = told(following, traces=True)
    named = {address: checksum_address(address) for address in (*CODE, CONSOLE)}
    start = lines.index("Traces:")
    kinds = [line.split("] ")[1] for line in lines[start + 1 : start + 5]]
    assert kinds == [
        f"CALL {named[CALLING]} 0x08c379a0 value 3",
        f"CALL {named[REVERTING]} 0x08c379a0 value 3 ← reverted with: not enough",
        f"STATICCALL {named[LOGGING]} 0x08c379a0",
        f"STATICCALL {named[CONSOLE]} 0x08c379a0",
    ]
    depths = [len(line) - len(line.lstrip()) for line in lines[start + 1 : start + 5]]
    assert depths == [2, 4, 4, 6]


def test_by_the_clock_a_transaction_is_told_before_its_block(tmp_path: Path) -> None:
    chain = begun(tmp_path, "clock")
    chain.run(4_000)
    following = report(chain)
    number = chain.sequencer.builder.block.number
    sent = send(ALICE, 0)
    chain.submit(sent)
    chain.run(400)
    (*_, place) = first = told(following)
    assert first[:3] == about(sent, 21_000)
    assert place.startswith(f"    Flashblock: {number}.")
    chain.run(6_000)
    lines = told(following)
    assert [line for line in lines if "Block Number" in line] == [f"    Block Number: {number}"]


def test_transactions_of_one_flashblock_are_told_each(tmp_path: Path) -> None:
    chain = begun(tmp_path, "manual")
    following = report(chain)
    data = [call_data("log(uint256)", number) for number in range(3)]
    chain.submit(
        *(send(ALICE, nonce, LOGGING, 0, data=each, gas=60_000) for nonce, each in enumerate(data))
    )
    chain.execute(Mine())
    lines = told(following)
    assert [line for line in lines if line.isdigit()] == ["0", "1", "2"]
    used = [line for line in lines if "Gas used" in line]
    assert used == [f"    Gas used: {gas}" for gas in (23_831, 23_843, 23_843)]


def test_many_transactions_are_counted(tmp_path: Path) -> None:
    chain = begun(tmp_path, "manual")
    following = report(chain)
    chain.submit(*(send(ALICE, nonce) for nonce in range(MOST_TRANSACTIONS + 10)))
    chain.execute(Mine())
    lines = told(following)
    assert sum("Transaction: " in line for line in lines) == MOST_TRANSACTIONS
    assert "    … and 10 more transactions" in lines


def test_many_blocks_are_counted(chain: DevChain) -> None:
    following = report(chain)
    chain.execute(Mine(MOST_BLOCKS + 10))
    lines = told(following)
    assert lines[0] == "    Blocks 1 to 10 are not shown"
    assert sum("Block Number: " in line for line in lines) == MOST_BLOCKS


def test_a_chain_that_is_taken_back_says_so(chain: DevChain) -> None:
    number = chain.execute(TakeSnapshot())
    following = report(chain)
    run(chain, BOB.address, value=1)
    chain.execute(Mine())
    told(following)
    chain.execute(Revert(number))
    assert told(following) == ["    Removed blocks: 2, after block 0"]


def test_a_flashblock_that_is_given_up_is_told(tmp_path: Path) -> None:
    chain = begun(tmp_path, "manual")
    following = report(chain)
    chain.submit(send(ALICE, 0))
    chain.run(1_000)
    block = chain.sequencer.builder.block
    told(following)
    chain.execute(RestartBlock())
    lines = told(following)
    assert f"    Dropped flashblock: {block.number}.{block.index - 1}" in lines


def test_a_time_that_no_date_has_is_a_number(chain: DevChain) -> None:
    following = report(chain)
    chain.execute(SetTime(10**12))
    chain.execute(Mine())
    assert any(line.startswith('    Block Time: "10000') for line in told(following))
