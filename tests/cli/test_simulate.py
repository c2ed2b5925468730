"""`foreblock simulate` with foreblock itself and with a toy."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foreblock.cli import main
from support.each_case import each_case
from support.payloads.bytecode import code
from support.servers.asking import A0, A1, A2, Asker, block, funded
from support.servers.toy_endpoint import ToyError, toy_endpoint

BLOCKS = [
    block(
        {"from": A0, "to": A1, "value": hex(5 * 10**17), "gasPrice": hex(10**9)},
        {"from": A0, "to": A2},
        accounts=funded(A0)
        | {A2: {"code": code(0, 0) + "a0" + code(0x2A, 0, "MSTORE", 32, 0, "REVERT")[2:]}},
    )
]


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    client: Asker = request.getfixturevalue(request.param)

    def simulate(params: list[Any]) -> object:
        found = client.ask("eth_simulateV1", *params)
        if "code" in found:
            raise ToyError(found)
        return found

    with toy_endpoint({"eth_simulateV1": simulate}) as address:
        yield address


def run(url: str, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments, f"--url={url}"], input=text)


def test_account_of_a_simulation(url: str, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text(json.dumps({"blockStateCalls": BLOCKS}), "utf-8")
    done = run(url, str(file))
    assert done.exit_code == 0
    first, *lines = done.stdout.splitlines()
    assert first.startswith("block 55 0x")
    word = "0x" + "00" * 31 + "2a"
    returned = [f"    returned {word}"] if "returned" in done.stdout else []
    gas = int(lines[1].split()[1].replace(",", "")) - 21_000
    assert lines == [
        "  552 (1970-01-01 00:09:12 UTC), base fee 0 gwei",
        f"  gas {21_000 + gas:,} of 200,000,000",
        f"  call 0 ok: {A0} → {A1} 0.5 ether, 21,000 gas",
        f"    transfer {A0} → {A1} 0.5 ether",
        f"  call 1 failed: {A0} → {A2}, {gas:,} gas",
        "    error execution reverted",
        *returned,
        "balances",
        f"  {A0} -0.500021 ether",
        f"  {A1} +0.5 ether",
    ]


def test_a_known_error_is_named() -> None:
    data = "0x7e273289" + "00" * 31 + "07"
    call = {"status": "0x0", "gasUsed": "0x5208", "returnData": data, "logs": [],
            "error": {"code": 3, "message": "execution reverted", "data": data}}  # fmt: skip
    found = {"number": "0x7", "hash": "0x" + "01" * 32, "timestamp": "0x64", "gasUsed": "0x5208",
             "gasLimit": "0x1c9c380", "calls": [call],
             "transactions": [{"from": A0, "to": A1, "value": "0x0"}]}  # fmt: skip
    with toy_endpoint({"eth_simulateV1": lambda _: [found]}) as address:
        done = run(address, "-", text=json.dumps(BLOCKS))
    assert "    error execution reverted: ERC721NonexistentToken(tokenId: 7)\n" in done.stdout


def test_blocks_alone_from_standard_input(url: str) -> None:
    done = run(url, "-", text=json.dumps(BLOCKS))
    assert done.exit_code == 0
    assert "call 1 failed" in done.stdout


def test_json_is_the_result_of_the_payload_as_it_is(url: str) -> None:
    done = run(url, "-", "--json", "--block=54", text=json.dumps({"blockStateCalls": BLOCKS}))
    (found,) = json.loads(done.stdout)
    assert found["calls"][0]["logs"] == []
    assert isinstance(found["transactions"][0], str)


@each_case("text", ["", "{", "7", '"text"'])
def test_what_is_no_payload_is_said_in_one_line(url: str, text: str) -> None:
    done = run(url, "-", text=text)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_refusal_is_one_line(url: str) -> None:
    done = run(url, "-", text="[]")
    assert done.exit_code == 1
    assert done.stderr == "foreblock: error -32602: empty input\n"


@each_case("answer", [None, 7, {}, [{}], [{"timestamp": 5}]])
def test_an_endpoint_that_answers_something_else(answer: object) -> None:
    with toy_endpoint({"eth_simulateV1": lambda _: answer}) as address:
        done = run(address, "-", text="[{}]")
    assert done.exit_code in (0, 1)
    assert "Traceback" not in done.stderr
