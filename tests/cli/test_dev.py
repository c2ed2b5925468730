"""`foreblock dev` up to the start of its processes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from foreblock.cli import main
from foreblock.server.origins import LOOPBACK
from foreblock.service import launch
from foreblock.settings import Settings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Settings and networks that would have been started."""
    found: list[Any] = []

    def run(
        settings: Settings,
        served: Sequence[launch.ServedNetwork],
        started: Callable[[launch.Started], None],
        *,
        in_one_process: bool,
    ) -> bool:
        assert not in_one_process
        addresses = [each.listen.replace(",", ", ") for each in served]
        started(launch.Started(addresses, [""] * len(served), 1))
        found.extend((settings, *served))
        return False

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "run", run)
    return found


def test_defaults_of_its_own(started: list[Any]) -> None:
    assert CliRunner().invoke(main, ["dev"], catch_exceptions=False).exit_code == 0
    settings, first, second = started
    assert (settings.nice, settings.access.cors_origins) == (5, LOOPBACK)
    assert (settings.dialect, settings.view) == ("preconf", "preconfirmed")
    assert [each.network.dev.dev_methods for each in (first, second)] == ["loopback"] * 2


def test_defaults_give_way_to_what_is_told(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBLOCK_CORS_ORIGINS", "")
    options = ["--nice", "0", "--test-listen", "", "--dev-methods", "off", "--mining", "mixed"]
    assert CliRunner().invoke(main, ["dev", *options], catch_exceptions=False).exit_code == 0
    settings, only = started
    assert (settings.nice, settings.access.cors_origins) == (0, ())
    assert (only.network.dev.dev_methods, only.network.dev.mining) == ("off", "mixed")


@pytest.mark.parametrize(
    ("options", "is_said"),
    [
        ((), False),
        (("--listen", "127.0.0.1:1,0.0.0.0:1"), True),
        (("--test-listen", "10.0.0.1:1"), True),
        (("--listen", "0.0.0.0:1", "--dev-methods", "everywhere"), False),
    ],
)
def test_who_cannot_change_the_chains_is_said(
    started: list[Any], options: Sequence[str], is_said: bool
) -> None:
    done = CliRunner().invoke(main, ["dev", *options], catch_exceptions=False)
    assert started
    assert ("other machines cannot change" in done.output) == is_said
    assert max(map(len, done.output.splitlines())) <= 80
