"""docs/cluster.md: its commands and settings exist."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from foreblock.cli import main
from foreblock.settings import ServeSettings
from foreblock.settings.declare import declared
from foreblock.settings.loading import load
from foreblock.settings.networks import log_of, networks_of
from foreblock.snapshot.packing import HEADER, TRAILER


@pytest.fixture
def page(checkout: Path) -> str:
    return (checkout / "docs" / "cluster.md").read_text("utf-8")


def test_commands_are_understood(page: str) -> None:
    lines = re.findall(r"^\$ foreblock (.*)$", page, re.MULTILINE)
    lines += re.findall(r"`foreblock ([a-z]+ [a-z]+[^`]*|[a-z]+ --[^`]*)`", page)
    assert len(lines) > 8
    for line in lines:
        command: click.Command = main
        words = shlex.split(line)
        while isinstance(command, click.Group) and words:
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        known = {each for parameter in command.params for each in parameter.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


def test_settings_load(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- settings: serve -->\n```toml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert set(tomllib.loads(block)) <= {each.name for each in declared(ServeSettings)}
        file = tmp_path / "foreblock.toml"
        file.write_text(block, "utf-8")
        (network,) = networks_of(load(ServeSettings, {}, {}, file).settings)
        options = log_of(network.name, network.settings.replication)
        assert options is not None
        assert (len(options.log), options.log_name) == (3, "main")


def test_the_bytes_of_a_snapshot_are_as_described(page: str) -> None:
    section = page[page.index("## Snapshots") :]
    rows = re.findall(r"^\| (\d*) ?\| (\d*) ?\|", section, re.MULTILINE)
    place = 0
    for at, size in rows[:-3]:
        assert int(at) == place
        place += int(size)
    assert rows[-3] == (str(HEADER.size), "")
    assert place == HEADER.size
    assert sum(int(size) for _, size in rows[-2:]) == TRAILER.size


def test_users_of_nats_are_those_of_the_composition(page: str, checkout: Path) -> None:
    text = (checkout / "deploy" / "cluster" / "nats.conf").read_text("utf-8")
    (block,) = re.findall(r"^authorization \{\n.*?^\}\n", text, re.DOTALL | re.MULTILINE)
    assert block in page
