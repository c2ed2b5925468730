"""`foreblock execute`: real and generated blocks, from their witnesses alone."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from follow.witness_files import real_blocks
from foreblock.cli import main
from support.chains import long_chain as made
from support.servers.asking import Asker, text_of, witness_file

Json = Any


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["execute", *map(str, arguments)])


@pytest.fixture
def file(ethereum: Asker, tmp_path: Path) -> Path:
    """The last block of the long chain."""
    path = tmp_path / "last.json"
    path.write_bytes(text_of(_last(ethereum)))
    return path


def _last(ethereum: Asker) -> Json:
    return witness_file(ethereum, json.loads(made.genesis())["config"], made.HEAD)


def test_a_block_ends_in_its_hash(file: Path) -> None:
    done = run(file)
    assert (done.exit_code, done.stderr) == (0, "")
    line, total = done.stdout.splitlines()
    assert line.startswith(f"{made.HEAD} {made.HEAD_HASH} ok ")
    assert total == "1 block has its expected hash"


def test_it_says_so_to_scripts(file: Path) -> None:
    packed = file.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    done = run("--json", file, packed)
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert (said["executed"], said["failed"]) == (2, 0)
    for block, path in zip(said["blocks"], (file, packed), strict=True):
        assert block["file"] == path.name
        assert block["hash"] == block["expected"] == made.HEAD_HASH
        assert block["error"] is None


def _without(part: str, place: int = 0) -> Callable[[Json], None]:
    return lambda file: file["witness"][part].pop(place)


def _other_chain(file: Json) -> None:
    file["chain"]["chainId"] = 1


def _no_parent(file: Json) -> None:
    file["witness"]["headers"] = []


def _no_chain(file: Json) -> None:
    del file["chain"]


def _unknown_chain(file: Json) -> None:
    file["chain"] = "nowhere"


def _cut_block(file: Json) -> None:
    file["block"] = file["block"][:-2]


def _not_hex(file: Json) -> None:
    file["witness"]["state"][1] = "0xzz"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_without("state"), "the witness is incomplete: no trie node at path '"),
        (_without("codes"), "the witness is incomplete: no code with hash 0x"),
        (_no_parent, "witness: witness.headers: the header of the block's parent is not among"),
        (_other_chain, "block 54: transaction 0: expected one that is valid here, found "),
        (_no_chain, "witness: chain: missing"),
        (_unknown_chain, "witness: chain: not a chain that foreblock knows"),
        (_cut_block, "witness: block: "),
        (_not_hex, "witness: witness.state[1]: not all characters are hex digits"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    ethereum: Asker, tmp_path: Path, file: Path, spoil: Callable[[Json], None], why: str
) -> None:
    content = _last(ethereum)
    spoil(content)
    spoiled = tmp_path / "spoiled.json"
    spoiled.write_bytes(text_of(content))
    done = run(spoiled, file)
    assert done.exit_code == 1
    assert done.stdout.startswith(f"{made.HEAD} {made.HEAD_HASH} ")  # the other one continues
    first, last = done.stderr.splitlines()
    assert first.startswith(f"foreblock: spoiled.json: {why}")
    assert last == "foreblock: 1 of 2 blocks do not have the expected hash"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "file: not JSON"),
        (b"[]", "file: expected an object"),
        (b"{}", "executing_payload: missing"),
        (gzip.compress(b"{}", mtime=0)[:-4], "file: cut short"),
        (b"\x1f\x8bnothing", "file: not gzip"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    done = run(path)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"foreblock: file.json: witness: {why}")


def test_real_blocks_end_in_their_published_hashes() -> None:
    files = sorted(real_blocks().glob("*.json.gz"))
    done = run("--json", *files)
    said = json.loads(done.stdout)
    assert [each["error"] for each in said["blocks"]] == [None] * len(files)
    for path, block in zip(files, said["blocks"], strict=True):
        published = json.loads(gzip.decompress(path.read_bytes()))["expected_block_hash"]
        assert block["hash"] == published
    assert done.exit_code == 0


def test_a_real_block_with_another_content_has_another_hash(tmp_path: Path) -> None:
    smallest = min(real_blocks().glob("*.json.gz"), key=lambda path: path.stat().st_size)
    content = json.loads(gzip.decompress(smallest.read_bytes()))
    content["executing_payload"]["transactions"].pop()
    path = tmp_path / "shorter.json"
    path.write_text(json.dumps(content))
    done = run(path)
    assert done.exit_code == 1
    assert f", expected {content['expected_block_hash']}" in done.stderr


def test_real_blocks_need_all_that_they_have(tmp_path: Path) -> None:
    """Some nodes are only needed for the root: without one there is none."""
    smallest = min(real_blocks().glob("*.json.gz"), key=lambda path: path.stat().st_size)
    whole = json.loads(gzip.decompress(smallest.read_bytes()))
    lacking = 0
    path = tmp_path / "lacking.json"
    for key in list(whole["preimages"])[::10]:
        left = {name: text for name, text in whole["preimages"].items() if name != key}
        path.write_text(json.dumps(whole | {"preimages": left}))
        done = run(path)
        assert done.exit_code == 0 or "the witness is incomplete: no " in done.stderr
        lacking += done.exit_code
    assert lacking > 20
