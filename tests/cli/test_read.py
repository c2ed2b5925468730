"""Reading commands with a toy endpoint, for people and scripts."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foreblock.cli import main
from support.each_case import each_case
from support.servers.toy_endpoint import (
    HttpRequest,
    ToyError,
    ToyResponse,
    http_endpoint,
    refusal,
    toy_endpoint,
)

ADDRESS = "0x" + "ab" * 20
BLOCK: dict[str, Any] = {
    "number": "0x7", "hash": "0x" + "01" * 32, "parentHash": "0x" + "02" * 32,
    "timestamp": "0x64", "gasUsed": "0x5208", "gasLimit": "0x1c9c380", "size": "0x400",
    "baseFeePerGas": "0x59682f00", "miner": ADDRESS, "stateRoot": "0x" + "03" * 32,
    "transactions": ["0x" + "04" * 32],
}  # fmt: skip
FULL = {"hash": "0x" + "04" * 32, "from": ADDRESS, "to": None, "value": hex(15 * 10**17)}


def get_block(params: list[Any]) -> object:
    tag, full = params
    if tag not in ("latest", "0x7", "0x" + "01" * 32):
        return None
    return {**BLOCK, "transactions": [FULL]} if full else BLOCK


def get_balance(params: list[Any]) -> object:
    if params[1] == "pending":
        raise refusal(-32000, "there is no pending state")
    return {"latest": hex(15 * 10**17), "0x0": "0x1"}[params[1]]


def call(params: list[Any]) -> object:
    message, _ = params
    if message.get("data") == "0xdead":
        error = {
            "code": -32000,
            "message": "execution reverted",
            "data": "0x4e487b71" + "00" * 31 + "01",
        }
        raise ToyError(error)  # fmt: skip
    if message.get("data") == "0xbeef":
        data = "0x7e273289" + "00" * 31 + "07"
        raise ToyError({"code": 3, "message": "execution reverted", "data": data})
    return "0x" + message.get("data", "0x")[10:]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    methods = {
        "eth_getBlockByNumber": get_block,
        "eth_getBlockByHash": get_block,
        "eth_getBalance": get_balance,
        "eth_call": call,
        "echo": lambda params: params,
    }
    with toy_endpoint(methods) as address:
        yield address


def run(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"FOREBLOCK_URL": url}, catch_exceptions=False)


def test_block_for_people(url: str) -> None:
    assert run(url, "block").stdout.splitlines() == [
        "block      7 0x" + "01" * 32,
        "parent     0x" + "02" * 32,
        "time       100 (1970-01-01 00:01:40 UTC)",
        "gas        21,000 of 30,000,000",
        "base fee   1.5 gwei",
        "miner      " + ADDRESS,
        "state      0x" + "03" * 32,
        "size       1,024 bytes",
        "contents   1 transaction",
        "         0 0x" + "04" * 32,
    ]


@pytest.mark.parametrize("block", ["7", "0x7", "0x" + "01" * 32, "latest"])
def test_block_for_scripts(url: str, block: str) -> None:
    assert json.loads(run(url, "block", block, "--json").output) == BLOCK


def test_whole_transactions(url: str) -> None:
    last = run(url, "block", "--full").output.splitlines()[-1]
    assert last.endswith(f"{ADDRESS} → creation 1.5 ether")


def test_unknown_block_is_a_failure_for_people_and_null_for_scripts(url: str) -> None:
    missing = run(url, "block", "8")
    assert (missing.exit_code, missing.stderr) == (1, "foreblock: unknown block 8\n")
    assert run(url, "block", "8", "--json").output == "null\n"


def test_balance(url: str) -> None:
    assert run(url, "balance", ADDRESS).stdout == "1.5 ether (1500000000000000000 wei)\n"
    assert run(url, "balance", ADDRESS, "0").output == "0.000000000000000001 ether (1 wei)\n"
    assert run(url, "balance", ADDRESS, "--json").output == '"0x14d1120d7b160000"\n'


SNAPSHOT = f"commit=9; latest=0x36:0x{'01' * 32}"


@contextmanager
def foreblock(pending: str) -> Iterator[tuple[str, list[Any]]]:
    """An endpoint that names its snapshot, and the parameters of its requests."""
    asked: list[Any] = []

    def answer(request: HttpRequest) -> ToyResponse:
        asked.append(json.loads(request.body)["params"])
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": "0x70"}).encode()
        return ToyResponse(200, body, {"Foreblock-Snapshot": SNAPSHOT + pending})

    with http_endpoint(answer) as url:
        yield url, asked


@each_case(
    ("block", "pending", "told"),
    [
        ([], f"; pending=0x37.4:0x{'02' * 32}", "at pending, block 55.4\n"),
        ([], "", "at pending, which is latest, block 54\n"),
        (["latest"], f"; pending=0x37.4:0x{'02' * 32}", "at latest, block 54; pending is 55.4\n"),
        (["latest"], "", "at latest, block 54\n"),
        (["53"], "", ""),
    ],
)
def test_pending_of_foreblock_is_the_default_and_the_block_is_named(
    block: list[str], pending: str, told: str
) -> None:
    with foreblock(pending) as (url, asked):
        done = run(url, "balance", ADDRESS, *block)
        assert (done.stdout, done.stderr) == ("0.000000000000000112 ether (112 wei)\n", told)
        assert asked == [[ADDRESS, hex(53) if block == ["53"] else (block or ["pending"])[0]]]
        assert run(url, "balance", ADDRESS, *block, "--json").output == '"0x70"\n'
        options = ["--block", *block] if block else []
        done = run(url, "call", ADDRESS, "--data", "0x", *options)
        assert (done.stdout, done.stderr, asked[-1][1]) == ("0x70\n", told, asked[0][1])


@each_case(
    ("arguments", "headers", "line"),
    [
        (["balance", ADDRESS, "99"], f"{SNAPSHOT}; pending=0x37.4:0x{'02' * 32}",
         "error -32000: header not found: 99; latest is 54, pending is 55.4"),
        (["balance", ADDRESS, "0x" + "07" * 32], SNAPSHOT,
         f"error -32000: header not found: 0x{'07' * 32}; latest is 54"),
        (["call", ADDRESS, "--data", "0x", "--block", "99"], "",
         "error -32000: header not found: 99; latest is 7"),
        (["block", "99"], SNAPSHOT, "unknown block 99; latest is 54"),
        (["block", "99"], "", "unknown block 99; latest is 7"),
    ],
)  # fmt: skip
def test_a_missing_block_is_named_beside_the_latest(
    arguments: list[str], headers: str, line: str
) -> None:
    def answer(request: HttpRequest) -> ToyResponse:
        method = json.loads(request.body)["method"]
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": json.loads(request.body)["id"]}
        results: dict[str, object] = {"eth_blockNumber": "0x7", "eth_getBlockByNumber": None}
        if method in results:
            body["result"] = results[method]
        else:
            body["error"] = {"code": -32000, "message": "header not found"}
        text = json.dumps(body).encode()
        return ToyResponse(200, text, {"Foreblock-Snapshot": headers} if headers else {})

    with http_endpoint(answer) as url:
        done = run(url, *arguments)
    assert (done.exit_code, done.stderr) == (1, f"foreblock: {line}\n")


def test_latest_is_the_default_of_other_servers(url: str) -> None:
    """They may have no pending state, or another one."""
    assert run(url, "balance", ADDRESS).stderr == "at latest\n"
    assert run(url, "call", ADDRESS, "--data", "0x000000002a").stderr == "at latest\n"


@each_case(
    "signature",
    ["f(uint8[])(uint8[])", "f(uint8[]) returns (uint8[])",
     "function f(uint8[] calldata a) external view returns (uint8[] memory)"],
)  # fmt: skip
def test_each_form_of_a_signature_decodes_the_output(url: str, signature: str) -> None:
    done = run(url, "call", ADDRESS, signature, "[1, 2]")
    assert done.stdout == "[1, 2]\n"


def test_call_in_words(url: str) -> None:
    done = run(url, "call", ADDRESS, "f(int8,string)(int8,string)", "--", "-5", "hello")
    assert done.stdout == "-5\nhello\n"


def test_call_with_arrays_and_tuples(url: str) -> None:
    kinds = "uint8[],(address,bool),string[2]"
    address = "0x" + "ab" * 20
    arguments = ["[1, 2]", f"({address}, true)", '["a, b", "ü"]']
    done = run(url, "call", ADDRESS, f"f({kinds})({kinds})", *arguments)
    assert done.stdout.splitlines() == arguments


def test_call_with_data(url: str) -> None:
    assert run(url, "call", ADDRESS, "--data", "0x000000002a").stdout == "0x2a\n"


def test_revert_says_why(url: str) -> None:
    done = run(url, "call", ADDRESS, "--data", "0xdead")
    assert done.exit_code == 1
    line = "foreblock: error -32000: execution reverted: assert(false) (data 0x4e48"
    assert done.stderr.startswith(line)


def test_revert_names_a_known_error(url: str) -> None:
    done = run(url, "call", ADDRESS, "--data", "0xbeef")
    assert done.exit_code == 1
    line = "foreblock: error 3: execution reverted: ERC721NonexistentToken(tokenId: 7) (data 0x7e27"
    assert done.stderr.startswith(line)


def test_numbers_of_arguments_and_values_may_have_a_power_or_a_unit(url: str) -> None:
    done = run(url, "call", ADDRESS, "f(uint256,uint256[])(uint256,uint256[])", "1e30",
               "[1.5ether, 2]", "--value", "0.1 gwei")  # fmt: skip
    assert done.stdout == f"{10**30}\n[{15 * 10**17}, 2]\n"
    refused = run(url, "call", ADDRESS, "f()", "--value", "1.5")
    assert refused.exit_code == 2
    assert "'1.5' is not a whole number of wei" in refused.stderr


def test_rpc_takes_json_and_text(url: str) -> None:
    done = run(url, "rpc", "--json", "echo", "latest", "true", '{"a": 1}', "0x1", "12")
    assert json.loads(done.output) == ["latest", True, {"a": 1}, "0x1", 12]


@each_case(
    ("arguments", "line"),
    [
        (["rpc", "nothing"], "error -32601: the method nothing does not exist"),
        (["balance", "0x12"], "address '0x12': expected 20 bytes, found 1"),
        (
            ["balance", ADDRESS, "Latest"],
            "block 'Latest': expected a number, a hash, latest, pending, "
            "safe, finalized or earliest; did you mean latest?",
        ),
        (["call", ADDRESS, "f(bool)", "maybe"], '"maybe" is not a valid bool: invalid boolean'),
        (["block", "--url", "example"], "'example' is not a URL of the form http://HOST:PORT"),
    ],
)
def test_failures_are_one_line(url: str, arguments: list[str], line: str) -> None:
    done = run(url, *arguments)
    assert (done.exit_code, done.stderr) == (1, f"foreblock: {line}\n")


def test_signature_and_data_exclude_each_other(url: str) -> None:
    assert run(url, "call", ADDRESS, "f()", "--data", "0x").exit_code == 2


@each_case(
    ("arguments", "code"),
    [
        (("block",), 1),
        (("balance", ADDRESS), 1),
        (("call", ADDRESS, "f()"), 1),
        (("rpc", "eth_chainId"), 1),
        (("simulate", "-"), 1),
        (("send", "--to", ADDRESS), 1),
        (("status",), 2),
        (("watch", "--once", "{url}"), 1),
        (("watch", "--once", "--json", "{url}"), 1),
    ],
)
def test_a_dead_endpoint_is_one_line_and_a_failure(arguments: tuple[str, ...], code: int) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        given = [each.format(url=url) for each in arguments]
        done = CliRunner().invoke(main, given, env={"FOREBLOCK_URL": url}, input="[]")
    assert done.exit_code == code
    assert done.stderr == f"foreblock: no response from {url}: connection refused\n"
