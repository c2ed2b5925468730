"""Multicall3: the sixteen functions of the public interface."""

import pytest

from foreblock.sequencer.predeploys import MULTICALL, TOKEN, WETH
from support.payloads.bytecode import code
from support.payloads.dev_state import ALICE, BOB, COINBASE, DevState, number
from support.payloads.solidity import call_data, decode

ETHER = 10**18
REFUSER = b"\x0e" * 20  # reverts with the word 7
DATA_7 = (7).to_bytes(32)
BALANCE_OF_ALICE = call_data("balanceOf(address)", number(ALICE))
RESULTS = [(int, bytes)]

READ = (number(TOKEN), BALANCE_OF_ALICE)
FAIL = (number(REFUSER), b"")
TOKENS = (1_000_000 * ETHER).to_bytes(32)


@pytest.fixture
def state() -> DevState:
    state = DevState()
    refuse = code(7, 0, "MSTORE", 32, 0, "REVERT")
    state.overlay.set(REFUSER, code=bytes.fromhex(refuse[2:]))
    state.overlay.set_block_hash(0, b"\x77" * 32)
    return state


def refused(state: DevState, signature: str, *values: object, value: int = 0) -> bytes:
    outcome = state.call(MULTICALL, signature, *values, value=value)
    assert outcome.status == "revert"
    assert outcome.output[:4].hex() == "08c379a0"
    text: bytes = decode(bytes, outcome.output[4:])
    return text


def test_what_it_tells_of_the_block(state: DevState) -> None:
    values = {
        "getBlockNumber()": 1,
        "getCurrentBlockCoinbase()": number(COINBASE),
        "getCurrentBlockDifficulty()": number(b"\x5a" * 32),
        "getCurrentBlockGasLimit()": 400_000_000,
        "getCurrentBlockTimestamp()": 1_767_225_602,
        "getLastBlockHash()": number(b"\x77" * 32),
        "getBasefee()": 10**9,
        "getChainId()": 31337,
    }
    assert {name: state.ask(MULTICALL, name) for name in values} == values
    assert state.ask(MULTICALL, "getBlockHash(uint256)", 0) == number(b"\x77" * 32)
    assert state.ask(MULTICALL, "getBlockHash(uint256)", 1) == 0
    assert state.ask(MULTICALL, "getEthBalance(address)", number(BOB)) == 10_000 * ETHER


def test_aggregate(state: DevState) -> None:
    signature = "aggregate((address,bytes)[])"
    found = state.ask(MULTICALL, signature, [READ, READ], shape=(int, [bytes]))
    assert found == (1, [TOKENS, TOKENS])
    assert state.ask(MULTICALL, signature, [], shape=(int, [bytes])) == (1, [])
    assert refused(state, signature, [READ, FAIL]) == b"Multicall3: call failed"


def test_aggregate3(state: DevState) -> None:
    signature = "aggregate3((address,bool,bytes)[])"
    read, may_fail, must_not = (READ[0], 0, READ[1]), (FAIL[0], 1, b""), (FAIL[0], 0, b"")
    found = state.ask(MULTICALL, signature, [read, may_fail, read], shape=[*RESULTS])
    assert found == [(1, TOKENS), (0, DATA_7), (1, TOKENS)]
    assert refused(state, signature, [may_fail, must_not]) == b"Multicall3: call failed"


def test_call_of_an_account_without_code_succeeds_with_nothing(state: DevState) -> None:
    found = state.ask(
        MULTICALL, "aggregate3((address,bool,bytes)[])", [(0x99, 0, b"\1")], shape=[*RESULTS]
    )
    assert found == [(1, b"")]


def test_try_aggregate(state: DevState) -> None:
    signature = "tryAggregate(bool,(address,bytes)[])"
    found = state.ask(MULTICALL, signature, 0, [FAIL, READ], shape=[*RESULTS])
    assert found == [(0, DATA_7), (1, TOKENS)]
    assert refused(state, signature, 1, [READ, FAIL]) == b"Multicall3: call failed"


def test_try_block_and_aggregate(state: DevState) -> None:
    signature = "tryBlockAndAggregate(bool,(address,bytes)[])"
    found = state.ask(MULTICALL, signature, 0, [FAIL, READ], shape=(int, int, RESULTS))
    assert found == (1, 0, [(0, DATA_7), (1, TOKENS)])
    assert refused(state, signature, 1, [FAIL]) == b"Multicall3: call failed"


def test_block_and_aggregate(state: DevState) -> None:
    signature = "blockAndAggregate((address,bytes)[])"
    found = state.ask(MULTICALL, signature, [READ], shape=(int, int, RESULTS))
    assert found == (1, 0, [(1, TOKENS)])
    assert refused(state, signature, [FAIL]) == b"Multicall3: call failed"


def test_aggregate_with_values(state: DevState) -> None:
    signature = "aggregate3Value((address,bool,uint256,bytes)[])"
    deposit = call_data("deposit()")
    calls = [(number(WETH), 0, 3, deposit), (number(BOB), 0, 4, b""), (READ[0], 0, 0, READ[1])]
    outcome = state.run(MULTICALL, signature, calls, value=7)
    assert outcome.status == "success"
    assert decode([*RESULTS], outcome.output) == [(1, b""), (1, b""), (1, TOKENS)]
    assert state.ask(WETH, "balanceOf(address)", number(MULTICALL)) == 3
    account = state.overlay.account(BOB)
    assert account is not None
    assert account.balance == 10_000 * ETHER + 4


def test_values_must_make_up_what_is_sent(state: DevState) -> None:
    signature = "aggregate3Value((address,bool,uint256,bytes)[])"
    calls = [(number(BOB), 0, 4, b"")]
    assert refused(state, signature, calls, value=5) == b"Multicall3: value mismatch"
    assert refused(state, signature, calls, value=3) == b"Multicall3: call failed"
    may_fail = [(number(REFUSER), 1, 4, b"")]
    assert refused(state, signature, may_fail, value=3) == b"Multicall3: value mismatch"
    # The ether of a call that was allowed to fail counts, and stays.
    outcome = state.run(MULTICALL, signature, may_fail, value=4)
    assert decode([*RESULTS], outcome.output) == [(0, DATA_7)]
    assert state.ask(MULTICALL, "getEthBalance(address)", number(MULTICALL)) == 4


def test_calls_see_what_earlier_ones_did(state: DevState) -> None:
    approve = call_data("approve(address,uint256)", number(BOB), 5)
    ask = call_data("allowance(address,address)", number(MULTICALL), number(BOB))
    calls = [(number(TOKEN), 0, approve), (number(TOKEN), 0, ask)]
    found = state.ask(MULTICALL, "aggregate3((address,bool,bytes)[])", calls, shape=[*RESULTS])
    assert found == [(1, (1).to_bytes(32)), (1, (5).to_bytes(32))]


def test_unknown_function_is_refused(state: DevState) -> None:
    assert state.call(MULTICALL, "nothing()").status == "revert"
