"""`foreblock import --state` and `foreblock store dump` for people and scripts."""

import json
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import Header, decode_block
from foreblock.cli.state_import import read_header_file
from foreblock.errors import BadState
from support.servers.asking import Asker
from support.servers.command import run, run_apart

CUT = 50


@pytest.fixture(scope="module")
def whole(long_chain: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    done = run("import", *long_chain.options(folder / "store"))
    assert done.returncode == 0, done.stderr
    return folder / "store"


def test_dump_and_import_are_each_others_inverse(
    long_chain: ChainFiles, whole: Path, tmp_path: Path
) -> None:
    dump, header = tmp_path / "state.jsonl", tmp_path / "header.rlp"
    done = run("store", "dump", whole, dump, "--block", CUT, "--header", header)
    assert (done.returncode, done.stderr) == (0, "")
    dumped, block, root = done.stdout.splitlines()
    assert dumped.startswith("dumped     ")
    assert block.startswith(f"block      {CUT} 0x")
    assert json.loads(dump.read_text().splitlines()[0]) == {"root": root.split()[1]}

    data = tmp_path / "begun"
    state = ["--state", dump, "--header", header, "--genesis", long_chain.genesis, "--data", data]
    done = run("import", *state)
    assert (done.returncode, done.stderr) == (0, "")
    imported, latest = done.stdout.splitlines()
    assert imported.split()[1:4] == dumped.split()[1:4]
    assert latest == block.replace("block ", "latest")

    rest = tmp_path / "rest.rlp"
    rest.write_bytes(b"".join(long_chain.items()[CUT:]))
    done = run("import", "--chain", rest, "--data", data)
    assert (done.returncode, done.stderr) == (0, "")
    here, there = (run("store", "dump", each, "-").stdout for each in (data, whole))
    assert here == there
    assert run_apart("store", "check", data).returncode == 0

    again = run("import", *state)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"foreblock: {data} already exists\n"


def test_mistakes_are_one_line_with_the_line_number(
    long_chain: ChainFiles, whole: Path, tmp_path: Path
) -> None:
    dump, header = tmp_path / "state.jsonl", tmp_path / "header.rlp"
    assert run("store", "dump", whole, dump, "--header", header).returncode == 0
    lines = dump.read_text().splitlines(keepends=True)
    dump.write_text("".join([*lines[:3], lines[3].replace("balance", "blance"), *lines[4:]]))
    data = tmp_path / "begun"
    before = sorted(tmp_path.iterdir())
    done = run("import", "--state", dump, "--header", header, "--genesis", long_chain.genesis,
               "--data", data)  # fmt: skip
    why = 'state: line 4: "blance" is not a key of an account'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"foreblock: {why}\n")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--state", "X"], "--state requires --header"),
        (["--state", "X", "--header", "X"], "--preset or --genesis"),
        (["--state", "X", "--chain", "X"], "--chain and --state cannot be used together"),
        (["--chain", "X", "--header", "X"], "--header is used with --state"),
        (["--genesis", "X"], "--chain or --state is required"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], said: str, tmp_path: Path
) -> None:
    some = tmp_path / "some"
    some.write_text("{}")
    done = run("import", "--data", tmp_path / "d", *(str(some) if o == "X" else o for o in options))
    assert done.returncode == 2
    assert said in done.stderr


def test_existing_file_is_not_overwritten_by_a_dump(whole: Path, tmp_path: Path) -> None:
    dump = tmp_path / "state.jsonl"
    dump.write_text("mine")
    assert run("store", "dump", whole, dump).returncode == 1
    assert dump.read_text() == "mine"
    done = run("store", "dump", whole, tmp_path / "other", "--block", 99)
    assert (done.returncode, done.stderr) == (1, "foreblock: unknown block 99\n")
    assert not (tmp_path / "other").exists()


def headers(long_chain: ChainFiles) -> list[Header]:
    return [decode_block(item, 0)[0].header for item in long_chain.items()]


def test_headers_are_read_in_every_form(long_chain: ChainFiles, tmp_path: Path) -> None:
    file = tmp_path / "header"
    blocks, expected = long_chain.items(), headers(long_chain)
    file.write_bytes(b"".join(blocks))
    assert list(read_header_file(file).headers) == expected
    file.write_bytes(expected[-1].encode())
    assert list(read_header_file(file).headers) == expected[-1:]
    file.write_text(f"0x{expected[-1].encode().hex()}\n")
    assert list(read_header_file(file).headers) == expected[-1:]


def test_header_in_json_is_that_of_a_node(
    long_chain: ChainFiles, tmp_path: Path, ethereum: Asker
) -> None:
    file = tmp_path / "header.json"
    expected = headers(long_chain)
    for number in (30, 54):
        block = ethereum.ask("eth_getBlockByNumber", hex(number), False)
        for text in (block, {"jsonrpc": "2.0", "id": 1, "result": block}, [block]):
            file.write_text(json.dumps(text))
            assert list(read_header_file(file).headers) == [expected[number - 1]]
    block["gasUsed"] = "0x1"
    file.write_text(json.dumps(block))
    with pytest.raises(BadState, match="has the hash 0x"):
        read_header_file(file)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"nonsense", b"0xzz", b"\xf8", b"null"])
def test_what_is_no_header_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "header"
    file.write_bytes(content)
    with pytest.raises(BadState):
        read_header_file(file)
