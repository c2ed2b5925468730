"""A mirror as a service: it is killed, and loses nothing."""

from pathlib import Path

from measures.mirrors import run


def test_a_killed_mirror_loses_nothing(tmp_path: Path) -> None:
    found = run(0.1, load=20, rate=5, folder=tmp_path)
    assert found.delays
    assert found.sent > 5
    assert (found.missing, found.differences, found.dropped) == ([], [], 0)
    assert found.events["network_failed"] == 0
