"""`foreblock bench rpc --instructions`: counts and verdicts, and a run if valgrind is installed."""

import json
import shutil
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from foreblock.bench.rpc import instructions, peers
from foreblock.bench.rpc.instructions import (
    MAP_BYTES,
    CountedCell,
    Instructions,
    Window,
    is_dump,
    narrow_map,
    rounds_of,
    total_of,
)
from foreblock.bench.rpc.questions import Bound, Question
from foreblock.cli import main
from foreblock.errors import InvalidArgument
from foreblock.ledger.reading.view import Ledger

DUMP = "version: 1\nevents: Ir\nfn=(1) main\n16 400\n\ntotals: 12345\n"


def test_the_total_of_a_dump_is_read() -> None:
    assert total_of(DUMP) == 12345
    assert total_of("summary: 7 \n") == 7
    with pytest.raises(InvalidArgument, match="no total"):
        total_of("version: 1\n")


def test_only_numbered_files_are_counts(tmp_path: Path) -> None:
    names = ("count", "count.log", "count.1", "count.12")
    assert [name for name in names if is_dump(tmp_path / name)] == ["count.1", "count.12"]


def test_what_runs_when_nobody_asks_is_no_part_of_a_request() -> None:
    assert Window(1_000_000, 10, 0.5).per_request(0) == 100_000
    assert Window(1_000_000, 10, 0.5).per_request(200_000) == 90_000


def test_windows_are_alike_in_size() -> None:
    most = instructions.MOST_ROUNDS
    assert [rounds_of(each) for each in (1, 1_000_000, 10**9)] == [most, 25, 1]


@pytest.mark.parametrize(("ours", "verdict"), [(1029, "must met"), (1031, "missed")])
def test_counts_are_held_against_the_build_before(ours: float, verdict: str) -> None:
    question = Question("q", (b"{}",), bounds={"before": Bound(1.03), "geth": Bound(0.2)})
    only_here = Question("new", (b"{}",), bounds={"before": Bound(1.03)})
    found = Instructions(
        {},
        {
            ("q", "foreblock"): CountedCell([ours, 990, 2000]),
            ("q", "before"): CountedCell([1000, 1000, 980]),
            ("new", "foreblock"): CountedCell([5]),
        },
    )
    (ratio,) = found.ratios([question, only_here])
    assert ratio.value == pytest.approx(ours / 1000)
    assert ratio.spread == pytest.approx((0.99, 2000 / 980))
    assert ratio.verdict == verdict


def test_a_store_with_a_narrow_map_is_read_as_before(tmp_path: Path) -> None:
    store = peers.imported(tmp_path)
    narrow_map(store / "data.mdb")
    sizes = [struct.unpack_from("<Q", (store / "data.mdb").read_bytes(), at) for at in (32, 4128)]
    assert sizes == [(MAP_BYTES,)] * 2
    ledger = Ledger.open(str(store))
    ledger.close()


def test_without_valgrind_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = CliRunner().invoke(main, ["bench", "rpc", "--instructions", "--only", "balance"])
    assert done.exit_code
    assert "valgrind is missing: install it (Debian: valgrind)" in done.output


def test_other_servers_are_not_counted() -> None:
    done = CliRunner().invoke(main, ["bench", "rpc", "--instructions", "--peer", "anvil"])
    assert done.exit_code
    assert "builds of foreblock only" in done.output


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("vgdb") is None, reason="valgrind is missing")
def test_a_balance_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(instructions, "WINDOW_INSTRUCTIONS", 1_000_000)
    arguments = ["bench", "rpc", "--instructions", "--only", "balance", "--json"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert not done.exit_code, done.output
    (figure,) = json.loads(done.stdout)["figures"]
    assert 1_000 < figure["instructions"] < 100_000
    assert len(figure["windows"]) == instructions.WINDOWS
