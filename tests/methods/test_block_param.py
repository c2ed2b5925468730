"""Every form of a block parameter, on a chain whose head is block 54."""

from support.chains.long_chain import COINBASE, FIRST_HASH, GENESIS_HASH, HEAD_HASH
from support.chains.long_chain import EMITTER as ADDRESS
from support.each_case import each_case
from support.servers.asking import Asker, error

NOWHERE = "0x" + "12" * 32

FORMS: list[tuple[object, int]] = [
    ("latest", 54),
    ("pending", 54),
    ("safe", 53),
    ("finalized", 52),
    ("earliest", 0),
    ("0x0", 0),
    ("0x36", 54),
    ("0X1b", 27),
    (HEAD_HASH, 54),
    (FIRST_HASH, 1),
    (GENESIS_HASH, 0),
    ("0x" + HEAD_HASH[2:].upper(), 54),
    ({"blockNumber": "0x1b"}, 27),
    ({"blockNumber": "latest"}, 54),
    ({"blockNumber": "earliest"}, 0),
    ({"blockHash": FIRST_HASH}, 1),
    ({"blockHash": FIRST_HASH, "requireCanonical": True}, 1),
    ({"blockHash": FIRST_HASH, "requireCanonical": False}, 1),
    ({"blockHash": FIRST_HASH, "blockNumber": None}, 1),
    ({"blockNumber": "0x1b", "requireCanonical": True, "more": 1}, 27),
]


@each_case(("named", "number"), FORMS)
def test_block_is_found_under_every_form(preconf: Asker, named: object, number: int) -> None:
    block = preconf.ask("eth_getBlockByNumber", named, False)
    assert block["number"] == hex(number)


@each_case(("named", "number"), FORMS)
def test_state_and_calls_are_of_that_block(preconf: Asker, named: object, number: int) -> None:
    balance = preconf.ask("eth_getBalance", COINBASE, named)
    assert balance == preconf.ask("eth_getBalance", COINBASE, hex(number))
    code = {ADDRESS: {"code": "0x4360005260206000f3"}}  # NUMBER
    called = preconf.ask("eth_call", {"to": ADDRESS}, named, code)
    assert int(called, 16) == number


def test_state_differs_between_blocks(preconf: Asker) -> None:
    """Otherwise the tests above would prove nothing: each mined block pays its miner."""
    balances = {preconf.ask("eth_getBalance", COINBASE, hex(n)) for n in range(20)}
    assert len(balances) == 20


UNKNOWN: list[tuple[object, str]] = [
    ("0x37", "header not found"),
    ("0x7fffffffffffffff", "header not found"),
    ({"blockNumber": "0x37"}, "header not found"),
    (NOWHERE, "header for hash not found"),
    ({"blockHash": NOWHERE}, "header for hash not found"),
    ({"blockHash": NOWHERE, "requireCanonical": True}, "header for hash not found"),
    ({"blockNumber": "0x36", "flashblockIndex": "0x0"}, "header for hash not found"),
    ({"blockNumber": "0x37", "flashblockIndex": "0x2"}, "header for hash not found"),
]


@each_case(("named", "message"), UNKNOWN)
def test_unknown_block(preconf: Asker, named: object, message: str) -> None:
    assert preconf.ask("eth_getBalance", ADDRESS, named) == error(-32000, message)
    assert preconf.ask("eth_call", {"to": ADDRESS}, named) == error(-32000, message)
    assert preconf.ask("eth_getBlockByNumber", named, False) is None


NOT_A_BLOCK = "hex string without 0x prefix, nor one of latest, pending, safe, finalized, earliest"
BAD: list[tuple[object, str]] = [
    ("12", NOT_A_BLOCK),
    ("Latest", NOT_A_BLOCK),
    ("abc", NOT_A_BLOCK),
    ("", NOT_A_BLOCK),
    (" latest", NOT_A_BLOCK),
    ("0x", 'hex string "0x" without digits'),
    ("0x01", "hex number with leading zero digits"),
    ("0xzz", "invalid hex string"),
    ("0x10000000000000000", "hex number > 64 bits"),
    ("0x8000000000000000", "block number larger than int64"),
    ("0xffffffffffffffff", "block number larger than int64"),
    ("0x" + "z" * 64, "invalid hex string"),
    ("1" * 66, "hex string without 0x prefix"),
    (5, "expected a string or an object, found a number"),
    (True, "expected a string or an object, found true or false"),
    ([], "expected a string or an object, found an array"),
    ({}, "must specify either blockHash or blockNumber"),
    ({"blockHash": None}, "must specify either blockHash or blockNumber"),
    ({"blockHash": FIRST_HASH, "blockNumber": "0x1"},
     "cannot specify both blockHash and blockNumber, choose one"),
    ({"blockHash": "0x12"}, "$.blockHash: hex string has length 2, want 64 for a hash"),
    ({"blockHash": 5}, "$.blockHash: expected a string, found a number"),
    ({"blockNumber": FIRST_HASH}, "$.blockNumber: hex number > 64 bits"),
    ({"blockNumber": 5}, "$.blockNumber: expected a string, found a number"),
    ({"blockNumber": "nope"}, f"$.blockNumber: {NOT_A_BLOCK}"),
    ({"blockHash": FIRST_HASH, "requireCanonical": "yes"},
     "$.requireCanonical: expected true or false, found a string"),
    ({"flashblockIndex": "0x1"}, "must specify either blockHash or blockNumber"),
    ({"blockNumber": "pending", "flashblockIndex": "0x1"},
     "$.flashblockIndex: goes with a block number, not with a tag"),
    ({"blockHash": FIRST_HASH, "flashblockIndex": "0x1"},
     "$.flashblockIndex: is allowed with blockNumber only"),
    ({"blockNumber": "0x1", "flashblockIndex": "1"},
     "$.flashblockIndex: hex string without 0x prefix"),
    ({"blockNumber": "0x1", "flashblockIndex": 1},
     "$.flashblockIndex: expected a string, found a number"),
]  # fmt: skip


@each_case(("named", "why"), BAD)
def test_bad_block_parameter(preconf: Asker, named: object, why: str) -> None:
    first = error(-32602, f"invalid argument 0: {why}")
    second = error(-32602, f"invalid argument 1: {why}")
    assert preconf.ask("eth_getBlockByNumber", named, False) == first
    assert preconf.ask("eth_getBalance", ADDRESS, named) == second
    assert preconf.ask("eth_call", {"to": ADDRESS}, named) == second
