"""The output of `foreblock serve` when it serves."""

import pytest

from conftest import CHECKOUT
from foreblock.cli.serve import _print_started
from foreblock.service.launch import StartedService


def test_addresses_are_printed_as_the_documentation_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _print_started([""], StartedService(["127.0.0.1:8555"], ["127.0.0.1:8556"], 2))
    printed = capsys.readouterr().out
    assert f"\n{printed}```" in (CHECKOUT / "docs" / "cli.md").read_text("utf-8")
    assert "WebSocket: same address. Use /eth for tools that expect a standard node\n" in printed


def test_each_network_is_printed_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    _print_started(["main: ", "test: "], StartedService(["a:1", "b:2"], ["", "b:3"], 1))
    assert capsys.readouterr().out.splitlines()[:3] == [
        "main: listening on http://a:1 with 1 worker",
        "test: listening on http://b:2 with 1 worker",
        "test: flashblocks at ws://b:3/ws",
    ]
