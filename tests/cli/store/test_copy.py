"""`foreblock store copy` of a store that another process writes."""

import json
from pathlib import Path

from foreblock._engine import Store
from support.payloads.small_store import append
from support.servers.command import run, run_apart


def test_a_store_is_copied_while_it_is_written(tmp_path: Path) -> None:
    data, to = tmp_path / "store", tmp_path / "copy"
    with Store(str(data), write=True) as store:
        for _ in range(3):
            heads = append(store)
        done = run_apart("store", "copy", data, to, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        summary = json.loads(done.stdout)
        assert summary["commit"] == heads.commit
        assert summary["latest"] == {"number": 2, "hash": "0x" + (2).to_bytes(32).hex()}
        assert summary["bytes_before"] >= summary["bytes_after"] > 0
        append(store)
    with Store(str(to)) as copy, copy.view() as view:
        assert view.heads.commit == heads.commit

    again = run("store", "copy", data, to)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"foreblock: {to} already exists\n"

    said = run("store", "copy", data, tmp_path / "second")
    copied, latest = said.stdout.splitlines()
    assert copied.startswith("copied     ")
    assert latest == "latest     3 0x" + (3).to_bytes(32).hex()
