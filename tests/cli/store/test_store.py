"""`foreblock store` for people and scripts, and the examples of its page."""

import itertools
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from subprocess import DEVNULL, PIPE
from types import SimpleNamespace

import pytest

from conftest import ChainFiles
from foreblock._engine import Store
from foreblock.cli import progress
from support.chains.importing import import_bytes
from support.payloads.small_store import append
from support.servers.command import run, run_apart
from support.servers.dev_processes import Network, RpcError, package_environment
from support.servers.waiting import until
from support.store_damage import damaging

FOREBLOCK = [sys.executable, "-m", "foreblock"]


@pytest.fixture
def imported(example: ChainFiles, tmp_path: Path) -> Path:
    genesis, chain = example.genesis.read_bytes(), example.chain.read_bytes()
    import_bytes(tmp_path / "store", genesis, chain)
    return tmp_path / "store"


def test_info_for_scripts_names_the_chain_and_its_tables(imported: Path) -> None:
    done = run("store", "info", imported, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    info = json.loads(done.stdout)
    with Store(str(imported)) as store, store.view() as view:
        assert view.heads.latest is not None
        assert info["latest"] == {"number": 12, "hash": f"0x{view.heads.latest[1].hex()}"}
        assert info["store_id"] == view.heads.store_id.hex()
        pages = {name: pages for name, _, pages, _ in store.sizes()[3]}
    assert {each["name"]: each["pages"] for each in info["tables"]} == pages
    assert (info["chain_id"], info["rules"], info["format"]) == (1337, "ethereum", 1)
    assert info["kept"] == {"states_from": 0, "trie_nodes_from": 0, "flashblocks_from": None}
    used = sum(pages.values()) + info["free_pages"]
    assert used <= info["pages"] <= info["file_bytes"] // info["page_bytes"]
    assert not info["written"]


def test_info_of_a_store_in_use_says_so(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        empty = run_apart("store", "info", tmp_path / "store")
        assert (empty.returncode, empty.stderr) == (0, "")
        assert "being written" in empty.stdout
        assert "no block" in empty.stdout
        append(store)
        info = json.loads(run_apart("store", "info", tmp_path / "store", "--json").stdout)
    assert (info["written"], info["commit"], info["chain_id"]) == (True, 2, None)


def test_damage_is_one_line_and_exit_code_1(imported: Path) -> None:
    assert run_apart("store", "check", imported).returncode == 0
    with damaging(imported) as tables:
        key = tables["codes"].flip(lambda _, code: bool(code))
    done = run_apart("store", "check", imported)
    assert (done.returncode, done.stderr) == (1, "")
    line, summary = done.stdout.splitlines()
    assert line.startswith(f"codes 0x{key.hex()}: the code has the hash 0x")
    assert summary.startswith("1 damage in 13 blocks and 7 transactions, commit ")
    told = run_apart("store", "check", imported, "--json")
    assert told.returncode == 1
    (damage,) = json.loads(told.stdout)["damages"]
    assert (damage["table"], damage["key"]) == ("codes", f"0x{key.hex()}")


def test_a_store_that_cannot_be_opened_is_damage_or_none(imported: Path, tmp_path: Path) -> None:
    with damaging(imported) as tables:
        tables[""].put(b"heads", b"\1")
    done = run_apart("store", "check", imported)
    assert done.returncode == 1
    assert done.stdout.startswith("store: the store is damaged: ")
    (tmp_path / "empty").mkdir()
    none = run_apart("store", "check", tmp_path / "empty")
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == f"foreblock: no store at {tmp_path / 'empty'}\n"
    assert run_apart("store", "check", tmp_path / "nowhere").returncode == 2


def test_compact_says_what_it_saved_and_refuses_a_store_in_use(imported: Path) -> None:
    with Store(str(imported), write=True) as store:
        for size in (3_000_000, 10):
            store.put_rows([(b"row", bytes(size))], [])
        refused = run_apart("store", "compact", imported)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith(f"foreblock: the store at {imported} is already being")
        store.put_rows([], [b"row"])
    done = run("store", "compact", imported, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    saved = json.loads(done.stdout)
    assert saved["bytes_after"] == (imported / "data.mdb").stat().st_size
    assert saved["bytes_before"] - saved["bytes_after"] > 2_000_000
    assert run_apart("store", "check", imported).returncode == 0


def test_a_copy_is_refused_where_something_is(imported: Path, tmp_path: Path) -> None:
    done = run("store", "copy", imported, tmp_path / "copy", "--json")
    assert (done.returncode, json.loads(done.stdout)["latest"]["number"]) == (0, 12)
    assert run_apart("store", "check", tmp_path / "copy").returncode == 0
    again = run("store", "copy", imported, tmp_path / "copy")
    there = f"foreblock: {tmp_path / 'copy'} already exists\n"
    assert (again.returncode, again.stdout, again.stderr) == (1, "", there)


def measured(text: str) -> list[str]:
    """Lines without figures that depend on the machine and the time."""
    text = re.sub(r"\d[\d.,]*(?: [KMGT]iB| s\b| d\b| Mgas/s)", "…", text)
    return [line.rstrip() for line in text.splitlines()]


def test_the_examples_of_the_page_run(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout / "examples", tmp_path / "examples")
    text = (checkout / "docs" / "store.md").read_text("utf-8")
    examples = re.findall(r"<!-- run -->\n```console\n\$ foreblock (.*)\n((?:.*\n)*?)```", text)
    assert len(examples) == 5
    for command, output in examples:
        words = shlex.split(command)
        done = (run_apart if "check" in words else run)(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert measured(done.stdout) == measured(output), command


def test_a_terminal_shows_a_bar_for_each_part_and_files_have_the_results(imported: Path) -> None:
    with damaging(imported) as tables:
        tables["codes"].flip(lambda _, code: bool(code))
    ours, theirs = pty.openpty()
    with closing_both(ours, theirs):
        command = [*FOREBLOCK, "store", "check", str(imported)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        done = subprocess.run(
            command, stdout=PIPE, stderr=theirs, text=True, check=False, env=environment
        )
        shown = os.read(ours, 1 << 20).decode()
    assert "roots of kept states" in shown
    assert "13/13" in shown
    damage, summary = done.stdout.splitlines()
    assert damage.startswith("codes 0x")
    assert summary.startswith("1 damage in ")


def test_without_a_terminal_long_work_prints_lines(
    imported: Path, example: ChainFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(0, 60)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    for arguments, first in [
        (("import", *example.options(tmp_path / "new")), r"import: \d+ KiB of 8 KiB, block \d+, "),
        (("store", "copy", imported, tmp_path / "copy"), r"store copy: .* KiB of "),
        (("store", "compact", imported), r"store compact: .* KiB of "),
        (("store", "dump", imported, tmp_path / "dump"), r"store dump: \d+/100 percent"),
    ]:
        done = run(*arguments)
        assert done.returncode == 0
        assert re.match(first, done.stderr), done.stderr
        assert done.stderr.endswith(" s left\n")


@contextmanager
def closing_both(*descriptors: int) -> Iterator[None]:
    try:
        yield
    finally:
        for each in descriptors:
            os.close(each)


def test_a_service_that_reads_goes_on_with_the_compacted_store(imported: Path) -> None:
    options = ["--data", str(imported), "--listen", "127.0.0.1:0", "--workers", "1"]
    command = [*FOREBLOCK, "serve", *options]
    environment = package_environment()
    with subprocess.Popen(command, stdout=PIPE, stderr=DEVNULL, text=True, env=environment) as one:
        try:
            assert one.stdout is not None
            (url,) = re.findall(r"http://\S+", one.stdout.readline())
            network = Network(url, "")
            before = network.ask("eth_getBlockByNumber", "latest", True)
            assert run("store", "compact", imported).returncode == 0
            new = (imported / "data.mdb").stat()
            until(partial(has_open, one.pid, new.st_ino), "a worker has opened the new file")
            until(partial(is_answered, network, before), "the same block is served again")
        finally:
            one.terminate()


def has_open(supervisor: int, inode: int) -> bool:
    """Return whether a child of the process has opened the file."""
    for children in Path(f"/proc/{supervisor}/task").glob("*/children"):
        for pid in children.read_text("ascii").split():
            for file in Path(f"/proc/{pid}/fd").glob("*"):
                with suppress(OSError):
                    if file.stat().st_ino == inode:
                        return True
    return False


def is_answered(network: Network, expected: object) -> bool:
    try:
        return bool(network.ask("eth_getBlockByNumber", "latest", True) == expected)
    except (OSError, HTTPException, RpcError):
        return False


def test_a_file_that_was_cut_short_is_damage_and_not_a_crash(imported: Path) -> None:
    file = imported / "data.mdb"
    os.truncate(file, file.stat().st_size // 3)
    done = run_apart("store", "check", imported, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    (damage,) = json.loads(done.stdout)["damages"]
    assert damage["table"] == "store"
    plain = run_apart("store", "check", imported)
    assert (plain.returncode, plain.stderr) == (1, "")
    assert plain.stdout.splitlines()[-1] == "1 damage; the store cannot be read"
