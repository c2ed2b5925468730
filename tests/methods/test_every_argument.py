"""No wrong argument of any method causes an internal error.

The examples in docs/rpc, which have one of every method, are damaged position by position: each
argument and each part of one is removed, replaced by null and by every other JSON type, and changed
in length. A new method is covered by its example. The same requests run in both dialects and on all
paths of reading a request: at once, long parameters in steps, long bodies in steps.
"""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.methods import make_table
from foreblock.settings import Settings
from support.each_case import each_case
from support.rpc_pages import rpc_text
from support.servers.asking import Asker, asker
from support.servers.long_work import scheduler, thresholds

Params = list[Any]

METHODS = list(make_table(Settings(), scheduler(1)).functions)
DOCS = rpc_text()
ADDRESS = "0x" + "35" * 20
WORD = "0x" + "0" * 63 + "1"
CALL = {
    "from": ADDRESS, "to": ADDRESS, "gas": "0x186a0", "value": "0x0", "input": "0x", "nonce": "0x0",
    "maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0", "chainId": "0x539",
    "accessList": [{"address": ADDRESS, "storageKeys": [WORD]}],
}  # fmt: skip
ACCOUNTS = {
    ADDRESS: {"balance": "0x1", "nonce": "0x1", "code": "0x", "stateDiff": {WORD: WORD}},
    "0x" + "00" * 19 + "04": {"state": {WORD: WORD}, "movePrecompileToAddress": "0x" + "04" * 20},
}
TIME = "0xffffffff"
PLACE = {"blockHash": WORD, "requireCanonical": True}
# Arguments that are missing in the docs' examples.
FULL: dict[str, list[Params]] = {
    "eth_call": [[CALL, PLACE, ACCOUNTS, {"time": TIME, "baseFeePerGas": "0x1"}]],
    "eth_estimateGas": [[CALL, {"blockNumber": "0x1", "flashblockIndex": "0x0"}, ACCOUNTS, {}]],
    "eth_simulateV1": [
        [
            {
                "blockStateCalls": [
                    {
                        "blockOverrides": {"time": TIME, "gasLimit": "0xffffff", "withdrawals": []},
                        "stateOverrides": ACCOUNTS,
                        "calls": [CALL, {"to": ADDRESS}],
                    }
                ],
                "traceTransfers": True,
                "validation": False,
                "returnFullTransactions": True,
            },
            "latest",
        ]
    ],
}
SPOILED: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, "", "x", "0x", "0xffffffffffffffffff", "\u0660", [], [None], {},
    {"x": None},
)  # fmt: skip
# Blanks before the first argument, the depth of damage to its parts, and the limit that the blanks
# exceed: long parameters are read in steps, and long bodies before their parameters are parsed.
WAYS: dict[str, tuple[int, int, dict[str, float]]] = {
    "at once": (0, 9, {}),
    "long parameters": (1_100, 9, {"long_params_bytes": 1024}),
    "long body": (1_100, 1, {"long_body_bytes": 1024}),
}


def examples() -> dict[str, list[Params]]:
    """Parameters of every documented method, and of some others."""
    found = defaultdict(list, {name: list(params) for name, params in FULL.items()})
    for request in re.findall(r"^--> (.*)$", DOCS, re.MULTILINE):
        body = json.loads(request)
        if isinstance(body, dict):
            found[body["method"]].append(body["params"])
    return found


EXAMPLES = examples()


def spoiled(value: Any, depth: int) -> Iterator[Any]:  # noqa: ANN401, it is JSON
    """A value with one position changed or removed, each in turn."""
    yield from SPOILED
    if not depth:
        return
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield [*value[:place], *value[place + 1 :]]
            for other in spoiled(item, depth - 1):
                yield [*value[:place], other, *value[place + 1 :]]
        yield from ([*value, other] for other in SPOILED)
    elif isinstance(value, dict):
        for key, item in value.items():
            rest = {name: each for name, each in value.items() if name != key}
            yield rest
            for other in spoiled(item, depth - 1):
                yield rest | {key: other}


def requests(method: str, blanks: int, depth: int) -> Iterator[str]:
    """The damaged requests of a method, each once."""
    texts: set[str] = set()
    for params in EXAMPLES[method]:
        texts.update(json.dumps(params[:end]) for end in range(len(params)))
        texts.update(json.dumps(each) for each in spoiled(params, depth))
    start = f'{{"jsonrpc":"2.0","id":1,"method":"{method}"'
    yield start + " " * blanks + "}"
    for text in sorted(texts):
        opening = text[:1] if text[0] in "[{" else ""
        yield f'{start},"params":{opening}{" " * blanks}{text[len(opening) :]}}}'


@pytest.fixture(scope="module")
def ledger(example: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The example chain, on which the docs' examples run."""
    folder = tmp_path_factory.mktemp("arguments") / "store"
    import_files(example.genesis, example.chain, folder, example.fork_choice, lambda _: None)
    opened = Ledger.open(str(folder))
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def client(ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[Asker]:
    with asker(ledger, request.param) as found:
        yield found


@pytest.mark.parametrize(
    ("client", "way"),
    [
        *(("preconf", way) for way in WAYS),
        ("ethereum", "at once"),
        pytest.param("ethereum", "long parameters", marks=pytest.mark.heavy),
        pytest.param("ethereum", "long body", marks=pytest.mark.heavy),
    ],
    indirect=["client"],
)
@each_case("method", METHODS)
def test_no_spoiled_argument_is_an_internal_error(
    client: Asker, method: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    blanks, depth, limits = WAYS[way]
    with thresholds(**limits):
        for body in requests(method, blanks, depth):
            answer = json.loads(client.reply(body.encode()).body)
            code = answer.get("error", {}).get("code")
            assert code != -32603, body.replace(" " * blanks, "", 1)
            assert not caplog.records, body.replace(" " * blanks, "", 1)


@each_case("method", METHODS)
def test_every_method_has_parameters_to_spoil(method: str) -> None:
    assert EXAMPLES[method]


@each_case(
    ("params", "why"),
    [
        ([None, "0x0", "latest"], "invalid argument 0: address is required, found null"),
        ([ADDRESS, None, "latest"], "invalid argument 1: slot is required, found null"),
        ([], "missing value for required argument 0 (address)"),
    ],
)
def test_storage_needs_an_address_and_a_slot(client: Asker, params: Params, why: str) -> None:
    assert client.ask("eth_getStorageAt", *params) == {"code": -32602, "message": why}
