"""The flags of `--like anvil`: all of anvil's, each as documented, without a process."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foreblock.cli import anvil as command
from foreblock.cli import main
from foreblock.cli.anvil import FLAGS
from foreblock.cli.anvil.flag_table import FORKS, IGNORED, NOT_TO_BE_HAD, TAKEN, AnvilFlag
from foreblock.sequencer.mnemonic import TEST_MNEMONIC
from foreblock.settings import DevSettings
from foreblock.settings.declare import flat
from support.servers.like_anvil import anvil

HELP = {"-h", "--help", "-V", "--version"}
NAME = r"--?[a-zA-Z][\w-]*"
# Accepted by anvil, but not in its help.
UNSAID = {"--optimism", "--tempo", "--silent"}


class Started(list[DevSettings]):
    """The settings of chains that commands would have started."""

    def run(self, *flags: str) -> Result:
        return CliRunner().invoke(main, ["dev", "--like", "anvil", *flags], catch_exceptions=False)

    def settings(self, *flags: str) -> dict[str, Any]:
        done = self.run(*flags)
        assert done.exit_code == 0, done.output
        return flat(self.pop())


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """Commands run until the start of processes."""
    found = Started()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_serve", lambda settings, _: found.append(settings))
    return found


def names_of(flag: AnvilFlag) -> list[str]:
    return [*flag.names, *flag.aliases]


def example(flag: AnvilFlag, folder: Path) -> list[str]:
    """A realistic value of the flag."""
    if not flag.metavar or flag.otherwise is not None:
        return [flag.names[-1]]
    given = {
        "--network": "optimism", "--order": "fifo", "--hardfork": "cancun", "--port": "1",
        "--host": "127.0.0.2", "--mnemonic": "word " * 12, "--derivation-path": "m/44'/1'/0'/",
        "--allow-origin": "https://app.example", "--gas-limit": "7000000",
    }.get(flag.names[-1], "7")  # fmt: skip
    if flag.metavar == "FILE":
        (folder / "file.json").write_text('{"alloc": {}}', "utf-8")
        given = str(folder / "file.json")
    return [flag.names[-1], given]


def table(checkout: Path) -> list[tuple[list[str], str]]:
    """The rows of the docs: names of a flag, and its treatment."""
    text = (checkout / "docs" / "from-anvil.md").read_text("utf-8")
    section = text.split("\n## Flags\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`-.*?) \| (.*?) \|", section, flags=re.MULTILINE)
    return [(re.findall(r"`(.*?)`", names), said) for names, said in rows]


def test_docs_have_each_flag_as_it_is(checkout: Path) -> None:
    said = dict.fromkeys((*TAKEN, *FORKS), "taken")
    said |= dict.fromkeys(IGNORED, "without effect")
    said |= dict.fromkeys(NOT_TO_BE_HAD, "refused")
    assert table(checkout) == [(names_of(flag), said[flag]) for flag in FLAGS]


def test_every_flag_of_anvil_is_known() -> None:
    (program, *_) = anvil()
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    flags = re.findall(rf"^ +((?:{NAME}(?:, )?)+)", text, flags=re.MULTILINE)
    aliases = re.findall(rf"\[aliases: ((?:{NAME}(?:, )?)+)\]", text)
    theirs = {name for each in (*flags, *aliases) for name in re.findall(NAME, each)}
    assert theirs - HELP == {name for flag in FLAGS for name in names_of(flag)} - UNSAID


@pytest.mark.parametrize("flag", TAKEN, ids=lambda flag: flag.key)
def test_a_flag_that_is_taken_has_an_effect(
    started: Started, tmp_path: Path, flag: AnvilFlag
) -> None:
    beside = ["--block-time", "3"] if flag.key == "mixed_mining" else []
    usual = started.settings(*beside)
    for name in (flag.names[0], *flag.aliases):
        given = [name, *example(flag, tmp_path)[1:]]
        found = started.settings(*beside, *given)
        # The others affect the output or files.
        beyond = {"dump_state", "state_interval", "config_out", "print_traces"}
        assert found != usual or flag.key in beyond, name


@pytest.mark.parametrize("flag", IGNORED, ids=lambda flag: flag.key)
def test_a_flag_without_effect_has_none(started: Started, tmp_path: Path, flag: AnvilFlag) -> None:
    assert started.settings(*example(flag, tmp_path)) == started.settings()


@pytest.mark.parametrize("flag", NOT_TO_BE_HAD, ids=lambda flag: flag.key)
def test_a_flag_that_is_refused_says_why(started: Started, tmp_path: Path, flag: AnvilFlag) -> None:
    done = started.run(*example(flag, tmp_path))
    assert done.exit_code == 2
    assert not started
    assert f"{flag.names[-1]}: {flag.help}" in done.output


def test_defaults_are_those_of_anvil(started: Started) -> None:
    found = started.settings()
    wanted = {
        "listen": "127.0.0.1:8545", "chain_id": 31337, "accounts": 10, "balance": 10_000,
        "gas_limit": 30_000_000, "base_fee": 10**9, "mnemonic": TEST_MNEMONIC,
        "rules": "ethereum", "fork": "newest", "mining": "automine", "dialect": "ethereum",
        "view": "sealed", "client_version": "anvil/v1.7.1", "cors_origins": ("*",),
        "hosts": ("localhost",), "test_listen": "", "feed_listen": "", "workers": 1, "data": "",
        "dev_methods": "everywhere", "keep_states": 0,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("-p 1 --host ::1 --host 127.0.0.1", {"listen": "[::1]:1,127.0.0.1:1"}),
        ("--host 0.0.0.0", {"listen": "0.0.0.0:8545", "hosts": ("*",)}),
        ("-b 3", {"mining": "clock", "block_time": 3}),
        ("-b 0.25", {"mining": "clock", "block_time": 0.25}),
        ("-b 0.05", {"mining": "clock", "block_time": 0.1, "interval": 0.1}),
        ("-b 1.5", {"mining": "clock", "block_time": 2}),
        ("-b 3 --mixed-mining", {"mining": "mixed", "block_time": 3}),
        ("--no-mining", {"mining": "manual"}),
        ("--optimism --hardfork Isthmus", {"rules": "optimism", "fork": "Isthmus"}),
        ("--no-cors", {"cors_origins": ()}),
        ("--mnemonic-seed-unsafe 0", {"accounts": 10}),
        ("--feed-listen 127.0.0.1:0 --workers 2", {"feed_listen": "127.0.0.1:0", "workers": 2}),
        ("-vvv -a 3 --balance 5", {"accounts": 3, "balance": 5}),
    ],
)
def test_flags_become_settings(started: Started, flags: str, wanted: dict[str, object]) -> None:
    found = started.settings(*flags.split())
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("--mnemonic a --mnemonic-random", "--mnemonic cannot be used with --mnemonic-random"),
        ("--no-mining -b 1", "--no-mining cannot be used with --block-time"),
        ("--mixed-mining", "--mixed-mining needs --block-time"),
        ("--state a --dump-state b", "--state cannot be used with --dump-state"),
        ("-b never", "--block-time: 'never' is not a time"),
        ("-b 0", "--block-time: '0' is not a time"),
        ("-n tempo", "--network: tempo is not supported"),
        ("--no-such-flag", "No such option"),
    ],
)
def test_what_contradicts_itself_is_refused(started: Started, flags: str, why: str) -> None:
    done = started.run(*flags.split())
    assert (done.exit_code, why in done.output) == (2, True), done.output


def test_environment_and_file_replace_defaults_and_flags_replace_those(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBLOCK_DEV_METHODS", "loopback")
    monkeypatch.setenv("ANVIL_IP_ADDR", "127.0.0.3")
    (tmp_path / "foreblock.toml").write_text("chain_id = 7\ngas_limit = 9000000\n", "utf-8")
    found = started.settings("--chain-id", "8")
    assert (found["dev_methods"], found["chain_id"]) == ("loopback", 8)
    assert (found["gas_limit"], found["listen"]) == (9_000_000, "127.0.0.3:8545")


def test_a_genesis_file_gives_what_anvil_reads_of_it(started: Started, tmp_path: Path) -> None:
    file = tmp_path / "genesis.json"
    file.write_text(
        '{"config": {"chainId": 5}, "timestamp": "0x64", "baseFeePerGas": 9, "gasLimit": 9,'
        ' "alloc": {}}',
        "utf-8",
    )
    found = started.settings("--init", str(file), "--base-fee", "8")
    assert (found["chain_id"], found["timestamp"], found["base_fee"]) == (5, 100, 8)
    assert found["gas_limit"] == 30_000_000
    assert found["alloc"] == str(file)
    file.write_text('{"number": "0x5", "alloc": {}}', "utf-8")
    assert "starts with block 0, not 5" in started.run("--init", str(file)).output


def test_help_has_sections_and_fits(started: Started) -> None:
    assert not started
    for columns in (80, 120):
        done = CliRunner().invoke(
            main, ["dev", "--like=anvil", "--help"], terminal_width=columns, catch_exceptions=False
        )
        lines = done.output.splitlines()
        assert max(map(len, lines)) <= columns
        headings = [line[:-1] for line in lines if line.endswith(":") and line[0] != " "]
        sections: Sequence[str] = list(dict.fromkeys(flag.section for flag in FLAGS))
        assert headings == [*sections, "Other options"]
        assert "dev --like anvil [OPTIONS]" in lines[0]


def test_plain_dev_knows_what_it_can_be_like() -> None:
    done = CliRunner().invoke(main, ["dev", "--like", "ganache"])
    assert done.exit_code == 2
    assert "'ganache' is not 'anvil'" in done.output
