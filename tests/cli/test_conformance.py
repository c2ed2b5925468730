"""`foreblock conformance` with a toy endpoint: the table, the JSON, the exit code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from foreblock.cli import main
from foreblock.conformance.replay import find_chain
from foreblock.errors import InvalidArgument
from support.servers.toy_endpoint import toy_endpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for method, name, result in (
        ("eth_getBalance", "right", "0x2a"),
        ("eth_getBalance", "wrong", "0x2b"),
        ("eth_chainId", "missing", "0x1"),
    ):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": ["0x", "latest"]}
        reply = {"jsonrpc": "2.0", "id": 1, "result": result}
        (tmp_path / method).mkdir(exist_ok=True)
        text = f">> {json.dumps(request)}\n<< {json.dumps(reply)}\n"
        (tmp_path / method / f"{name}.io").write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with toy_endpoint({"eth_getBalance": lambda _: "0x2a"}) as address:
        yield address


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", *arguments], catch_exceptions=False)


def test_table_and_differences(folder: Path, url: str) -> None:
    done = run(str(folder), "--url", url)
    assert done.exit_code == 1
    rows = [line.split() for line in done.output.splitlines()]
    assert ["eth_chainId", "·", "·", "1"] in rows
    assert ["eth_getBalance", "1", "1", "·"] in rows
    assert ["all", "1", "1", "1"] in rows
    assert "failed: eth_getBalance/wrong" in done.output
    assert '  $.result: expected "0x2b", found "0x2a"' in done.output
    assert "not served: eth_chainId: missing" in done.output


def test_a_method_left_out_on_purpose_has_its_reason(tmp_path: Path, url: str) -> None:
    case = tmp_path / "testing_buildBlockV1" / "build.io"
    case.parent.mkdir()
    request = '{"jsonrpc":"2.0","id":1,"method":"testing_buildBlockV1","params":[]}'
    case.write_text(f'>> {request}\n<< {{"jsonrpc":"2.0","id":1,"result":{{}}}}\n', "utf-8")
    shown = run(str(tmp_path), "--url", url).output
    assert "not served: testing_buildBlockV1: build (a block builder's private method)" in shown


def test_json(folder: Path, url: str) -> None:
    found = json.loads(run(str(folder), "--url", url, "--json").output)
    assert (found["passed"], found["failed"], found["not_served"]) == (1, 1, 1)
    wrong = next(each for each in found["cases"] if each["case"] == "eth_getBalance/wrong")
    assert wrong["differences"][0]["path"] == "$.result"


def test_not_served_alone_is_no_failure(folder: Path, url: str) -> None:
    (folder / "eth_getBalance" / "wrong.io").unlink()
    assert run(str(folder), "--url", url).exit_code == 0


def test_not_served_is_a_failure_where_it_was_asked_for(folder: Path, url: str) -> None:
    done = run(str(folder), "--url", url, "--method", "eth_chainId")
    assert done.exit_code == 1
    assert "eth_getBalance" not in done.output


def test_unknown_method_is_a_usage_error(folder: Path, url: str) -> None:
    done = run(str(folder), "--url", url, "--method", "eth_nothing")
    assert done.exit_code == 2
    assert "there is no case of eth_nothing" in done.stderr


def test_unreachable_endpoint_is_one_line(folder: Path) -> None:
    done = run(str(folder), "--url", "http://127.0.0.1:1")
    assert done.exit_code == 1
    assert done.stderr.startswith("foreblock: no response from http://127.0.0.1:1: ")


@pytest.mark.parametrize("place", [".", "tests", ".."])
def test_chain_is_found_where_it_lies(tmp_path: Path, place: str) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    where = (cases / place).resolve()
    where.mkdir(exist_ok=True)
    for name in ("genesis.json", "chain.rlp"):
        (where / name).touch()
    found = find_chain(cases)
    assert found.chain.resolve() == where / "chain.rlp"
    assert found.fork_choice is None


def test_missing_chain_is_said(folder: Path) -> None:
    with pytest.raises(InvalidArgument, match="no chain"):
        find_chain(folder)
