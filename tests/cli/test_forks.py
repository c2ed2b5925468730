"""`foreblock forks` lists and removes the fetched state of forks."""

import json
from pathlib import Path

from click.testing import CliRunner

from foreblock.cli import main
from foreblock.follow.fetch_result import FetchResult
from foreblock.fork.cache import ForkFile

FILES = ("1/5-aabb.proven", "1/6-ccdd.proven", "10/5-eeff.trusted")


def listed(folder: Path, *options: str) -> list[tuple[int, int, bool]]:
    command = ["forks", "--cache-path", str(folder), "--json", *options]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    return [(each["chainId"], each["block"], each["proven"]) for each in found]


def test_files_are_listed_and_removed(tmp_path: Path) -> None:
    for name in FILES:
        ForkFile(tmp_path / name).put_values(FetchResult(), {1: bytes(32)})
    (tmp_path / "1" / "notes.txt").write_text("mine", "utf-8")
    assert listed(tmp_path) == [(1, 5, True), (1, 6, True), (10, 5, False)]
    assert listed(tmp_path, "1", "--block", "6") == [(1, 6, True)]
    text = CliRunner().invoke(main, ["forks", "--cache-path", str(tmp_path)]).output
    assert "chain 10, block 5 (0xeeff…), trusted" in text
    assert text.splitlines()[-1].startswith("3 files, ")
    assert listed(tmp_path, "1", "--remove") == [(1, 5, True), (1, 6, True)]
    assert listed(tmp_path) == [(10, 5, False)]
    assert (tmp_path / "1" / "notes.txt").exists()
    assert listed(tmp_path / "nowhere") == []
