"""Progress of long work without a terminal."""

import threading
import time

import pytest

from foreblock.cli.progress import line, progress, ticking
from support.each_case import each_case
from support.servers.waiting import PATIENCE


@each_case(
    ("done", "total", "seconds", "shown"),
    [
        (0, 0, 5.0, "geth"),
        (0, 8, 5.0, "0/8 geth"),
        (2, 8, 10.0, "2/8 geth, 30 s left"),
        (1, 20, 30.0, "1/20 geth, 10 min left"),
        (8, 8, 40.0, "8/8 geth, 0 s left"),
    ],
)
def test_a_line_has_the_time_left(done: int, total: int, seconds: float, shown: str) -> None:
    assert line("geth", done, total, seconds) == shown


def test_bytes_have_units() -> None:
    assert line("", 1 << 20, 3 << 30, 0.01, in_bytes=True) == "1.0 MiB of 3.0 GiB, 31 s left"


def test_each_stage_has_its_own_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([100.0, 110.0, 120.0, 130.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    with progress("import") as report:
        for stage, done in (("reading", 8), ("storing", 0), ("storing", 2)):
            report(stage, done, 8)
    assert capsys.readouterr().err.splitlines() == [
        "import: 8/8 reading, 0 s left",
        "import: 0/8 storing",
        "import: 2/8 storing, 30 s left",
    ]


def test_a_step_is_a_line_but_not_sooner_than_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([100.0, 105.0, 112.0, 113.0, 123.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    with progress("bench", every=10) as report:
        for step in range(1, 5):
            report("a", step, 8)
    assert capsys.readouterr() == ("", "bench: 2/8 a, 36 s left\nbench: 4/8 a, 23 s left\n")


def test_work_that_tells_nothing_is_reported_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreblock.cli.progress.TICK_SECONDS", 0.001)
    seen: list[tuple[str, int, int]] = []
    reported = threading.Event()

    def report(*given: tuple[str, int, int]) -> None:
        seen.append(given)  # type: ignore[arg-type]
        reported.set()

    with ticking(report, "s", 60):  # type: ignore[arg-type]
        assert reported.wait(PATIENCE)
    assert seen[0][0] == "s"
    assert 0 <= seen[0][1] <= seen[0][2] == 60
    assert not [each for each in threading.enumerate() if each.name == "progress"]
