"""Requests and results as values: their JSON, as the specifications write it."""

import json
from typing import Any

import pytest

from foreblock.client import Hex, RpcRequest, call_data, typed_requests
from foreblock.client.exchange import Demand, HeadData, SnapshotData, snapshot_of
from foreblock.errors import InvalidArgument, Undecodable
from support.each_case import each_case

BOB = b"\xbb" * 20
BOB_TEXT = "0x" + "bb" * 20
HASH = b"\x11" * 32
HASH_TEXT = "0x" + "11" * 32
WORD = "{:064x}".format
AT_HASH = {"blockHash": HASH_TEXT}
TOPICS = [None, [HASH_TEXT]]
CALL = {"to": BOB_TEXT, "data": f"0x70a08231{WORD(int(BOB_TEXT, 16))}"}

REQUESTS: list[tuple[RpcRequest[Any], str, list[Any]]] = [
    (typed_requests.balance(BOB), "eth_getBalance", [BOB_TEXT, "safe"]),
    (typed_requests.balance(BOB_TEXT, 5), "eth_getBalance", [BOB_TEXT, "0x5"]),
    (typed_requests.nonce(BOB, HASH), "eth_getTransactionCount", [BOB_TEXT, AT_HASH]),
    (typed_requests.code(BOB, HASH_TEXT), "eth_getCode", [BOB_TEXT, AT_HASH]),
    (
        typed_requests.storage(BOB, 7, (55, 0)),
        "eth_getStorageAt",
        [BOB_TEXT, "0x7", {"blockNumber": "0x37", "flashblockIndex": "0x0"}],
    ),
    (typed_requests.block(), "eth_getBlockByNumber", ["safe", False]),
    (typed_requests.block("pending", full=True), "eth_getBlockByNumber", ["pending", True]),
    (typed_requests.block(HASH), "eth_getBlockByHash", [HASH_TEXT, False]),
    (typed_requests.receipts(3), "eth_getBlockReceipts", ["0x3"]),
    (typed_requests.receipt(HASH), "eth_getTransactionReceipt", [HASH_TEXT]),
    (typed_requests.call(BOB, "balanceOf(address)(uint256)", BOB), "eth_call", [CALL, "safe"]),
    (
        typed_requests.call(BOB, "f()", block=1, fields={"from": BOB, "gas": 9}),
        "eth_call",
        [{"to": BOB_TEXT, "data": "0x26121ff0", "from": BOB_TEXT, "gas": "0x9"}, "0x1"],
    ),
    (
        typed_requests.simulate([{"to": BOB}], {"calls": [], "blockOverrides": {"number": 9}}),
        "eth_simulateV1",
        [
            {"blockStateCalls": [
                {"calls": [{"to": BOB_TEXT}]}, {"calls": [], "blockOverrides": {"number": "0x9"}},
            ]},
            "safe",
        ],
    ),
    (
        typed_requests.logs(1, "latest", address=[BOB], topics=[None, [HASH]]),
        "eth_getLogs",
        [{"fromBlock": "0x1", "toBlock": "latest", "address": [BOB_TEXT], "topics": TOPICS}],
    ),
    (typed_requests.logs(block=HASH), "eth_getLogs", [{"blockHash": HASH_TEXT, "topics": []}]),
    (typed_requests.send_raw_sync(b"\2", 50), "eth_sendRawTransactionSync", ["0x02", 50]),
    (typed_requests.rpc("any", 5, BOB, {"a": 1}), "any", [5, BOB_TEXT, {"a": 1}]),
]  # fmt: skip


@each_case("request, method, params", REQUESTS)
def test_a_request_has_the_json_of_its_method(
    request: RpcRequest[Any], method: str, params: list[Any]
) -> None:
    found, made = request.at("safe")
    assert (found, json.loads(json.dumps(made))) == (method, params)


def test_a_block_of_a_client_at_a_hash_is_requested_by_hash() -> None:
    assert typed_requests.block().at(HASH)[0] == "eth_getBlockByHash"


@each_case(
    "arguments, words",
    [
        (("(uint8,bool)", (3, True)), [3, 1]),
        (("int256", -1), [2**256 - 1]),
        (("bytes4", b"\1\2\3\4"), [0x01020304 << 224]),
        (("address[]", [BOB, BOB_TEXT]), [32, 2, int(BOB_TEXT, 16), int(BOB_TEXT, 16)]),
        (("string", 'say "]"'), [32, 7, int.from_bytes(b'say "]"') << 200]),
        (("string[]", ["a, b]"]), [32, 1, 32, 5, int.from_bytes(b"a, b]") << 216]),
        (("string[]", ['"']), [32, 1, 32, 1, ord('"') << 248]),
        (("bytes", b""), [32, 0]),
    ],
)
def test_values_become_the_words_of_the_abi(
    arguments: tuple[str, object], words: list[int]
) -> None:
    kind, value = arguments
    assert call_data(f"f({kind})", value)[4:].hex() == "".join(map(WORD, words))


@each_case("value", [1.5, None, ["'\""]])
def test_a_value_that_the_abi_cannot_have_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument):
        call_data("f(string[])", value)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        typed_requests.balance(BOB, -1).at("latest")


@each_case(
    "signature, output, expected",
    [
        ("f()(uint256)", WORD(5), 5),
        ("f()(uint256,bool)", WORD(5) + WORD(1), (5, True)),
        ("f()", WORD(5), bytes.fromhex(WORD(5))),
        ("f()()", "", b""),
    ],
)
def test_outputs_are_what_the_signature_says(signature: str, output: str, expected: object) -> None:
    assert typed_requests.call(BOB, signature).read(f"0x{output}") == expected


def test_output_of_no_contract_is_refused() -> None:
    with pytest.raises(Undecodable):
        typed_requests.call(BOB, "f()(uint256)").read("0x")


BLOCK = {
    "number": "0x5", "hash": HASH_TEXT, "parentHash": HASH_TEXT, "timestamp": "0x6553f100",
    "gasLimit": "0x1c9c380", "gasUsed": "0x0", "stateRoot": HASH_TEXT, "transactions": [],
}  # fmt: skip


def test_a_block_may_lack_what_a_chain_does_not_have() -> None:
    pending = typed_requests.block().read({**BLOCK, "number": None, "hash": None})
    assert (pending.number, pending.hash, pending.base_fee_per_gas) == (None, None, None)
    found = typed_requests.block().read({**BLOCK, "transactions": [HASH_TEXT], "more": 1})
    assert (found.transactions, found.json["more"]) == ((HASH,), 1)
    assert str(found.hash) == f"{found.hash}" == HASH_TEXT


@each_case(
    "changed, why",
    [
        ({"gasUsed": None}, "gasUsed: "),
        ({"gasUsed": "0xg"}, "gasUsed: "),
        ({"hash": 5}, "hash: expected hex text"),
        ({"transactions": {}}, "transactions: expected a list"),
        ({"transactions": [{"hash": HASH_TEXT}]}, "transactions: from: "),
    ],
)
def test_another_shape_is_refused_by_the_name_of_the_field(
    changed: dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        typed_requests.block().read({**BLOCK, **changed})


ERROR = {"code": 3, "message": "m", "data": "0x02"}


@each_case(
    "call, output, reason",
    [
        ({"status": "0x1", "returnData": "0x01"}, b"\1", ""),
        ({"status": "0x0", "returnData": "0x01", "error": "reverted"}, b"\1", "reverted"),
        ({"status": "0x0", "returnData": "0x", "error": ERROR}, b"\2", "m"),
        (
            {"status": "0x0", "returnData": f"0x08c379a0{WORD(32)}{WORD(2)}6e6f{'00' * 30}"},
            bytes.fromhex(f"08c379a0{WORD(32)}{WORD(2)}6e6f{'00' * 30}"), "no",
        ),
    ],
)  # fmt: skip
def test_outcomes_of_both_dialects(call: dict[str, object], output: bytes, reason: str) -> None:
    block = {**BLOCK, "calls": [{"gasUsed": "0x1", **call}]}
    ((outcome,),) = (each.calls for each in typed_requests.simulate().read([block]))
    assert (outcome.output, outcome.reason) == (output, reason)


NAMED = f"commit=56; latest=0x36:{HASH_TEXT}; pending=0x37.4:0x{'22' * 32}; trust=proven"


def test_the_snapshot_of_a_response() -> None:
    pending = HeadData(0x37, Hex(b"\x22" * 32), 4)
    latest = HeadData(0x36, Hex(HASH))
    assert snapshot_of({"foreblock-snapshot": NAMED}) == SnapshotData(56, latest, pending)
    text = NAMED.replace("pending", "base")
    assert snapshot_of({"Foreblock-Snapshot": text}) == SnapshotData(56, latest, None)
    assert snapshot_of({}) is None


@each_case(
    "wanted, is_met",
    [
        (Demand(), True),
        (Demand(commit=56), True),
        (Demand(commit=57), False),
        (Demand(flashblock=(0x37, 4)), True),
        (Demand(flashblock=(0x37, 5)), False),
        (Demand(flashblock=(0x36, 9)), True),
        (Demand(flashblock=(0x38, 0)), False),
        (Demand(commit=57, flashblock=(0x36, 0)), False),
    ],
)
def test_what_a_snapshot_includes(wanted: Demand, is_met: bool) -> None:
    assert wanted.is_met(snapshot_of({"Foreblock-Snapshot": NAMED})) == is_met
    assert wanted.is_met(None) == (wanted == Demand())


def test_headers_of_a_demand() -> None:
    assert Demand().headers(0) == {}
    assert Demand(commit=5).headers(7) == {"Foreblock-Min-Commit": "7"}
    assert Demand(8, (55, 4), wait=0.25).headers(7) == {
        "Foreblock-Min-Commit": "8; wait=250",
        "Foreblock-Min-Place": "0x37.4; wait=250",
    }
