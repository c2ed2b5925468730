"""`foreblock dev` up to the start of its processes."""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from foreblock.cli import main
from foreblock.errors import AddressInUse
from foreblock.server.head import LOOPBACK
from foreblock.service import launch
from foreblock.settings import Settings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Settings and networks that would have been started."""
    found: list[Any] = []

    def run(
        settings: Settings,
        served: Sequence[launch.ServedNetwork],
        started: Callable[[launch.StartedService], None],
        *,
        in_one_process: bool,
    ) -> bool:
        assert not in_one_process
        addresses = [each.listen.replace(",", ", ") for each in served]
        started(launch.StartedService(addresses, [""] * len(served), 1))
        found.extend((settings, *served))
        return False

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "run", run)
    return found


def test_defaults_of_its_own(started: list[Any]) -> None:
    assert CliRunner().invoke(main, ["dev"], catch_exceptions=False).exit_code == 0
    settings, first, second = started
    assert (settings.nice, settings.access.cors_origins) == (5, LOOPBACK)
    assert not settings.creates, "the contract requires `to`"
    assert (settings.dialect, settings.view) == ("preconf", "preconfirmed")
    assert [each.network.dev.dev_methods for each in (first, second)] == ["loopback"] * 2


def test_defaults_give_way_to_what_is_told(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBLOCK_CORS_ORIGINS", "")
    options = ["--nice", "0", "--test-listen", "", "--dev-methods", "off", "--mining", "mixed",
               "--call-create"]  # fmt: skip
    assert CliRunner().invoke(main, ["dev", *options], catch_exceptions=False).exit_code == 0
    settings, only = started
    assert (settings.nice, settings.access.cors_origins) == (0, ())
    assert settings.creates
    assert (only.network.dev.dev_methods, only.network.dev.mining) == ("off", "mixed")


def test_flashblocks_must_not_be_further_apart_than_blocks(started: list[Any]) -> None:
    result = CliRunner().invoke(main, ["dev", "--interval", "2.1"])
    assert result.stderr == "foreblock: interval: expected at most block_time, which is 2\n"
    assert not started


def test_the_name_of_a_chain_is_not_one_of_rules() -> None:
    result = CliRunner().invoke(main, ["dev", "--fork", "op-mainnet"])
    assert result.exit_code
    assert "op-mainnet is a chain: fork it with --fork-url op-mainnet" in result.output


CANNOT = "  they cannot change the chain or use its unlocked accounts (dev_methods)"
CAN = CANNOT.replace("cannot", "can")
KEYS = "  the keys of its accounts are well known"


def pages(which: str) -> str:
    return f"  web pages of {which} use it (cors_origins, hosts)"


LISTED, EVERY = pages("6 listed origins can"), pages("every origin can")


@pytest.mark.parametrize(
    ("options", "reached", "said"),
    [
        ("--listen 127.0.0.1:1,0.0.0.0:1", "0.0.0.0:1", [CANNOT, KEYS, LISTED]),
        ("--test-listen 10.0.0.1:1", "10.0.0.1:1", [CANNOT, KEYS, LISTED]),
        ("--listen [::]:1 --dev-methods everywhere --cors-origins=", "[::]:1",
         [CAN, KEYS, pages("other origins cannot")]),
        ("--listen 0.0.0.0:1 --cors-origins=* --mnemonic 'legal winner thank year wave sausage "
         "worth useful legal winner thank yellow'", "0.0.0.0:1", [CANNOT, EVERY]),
        ("--like anvil --host 0.0.0.0 --workers 2", "0.0.0.0:8545", [CAN, KEYS, EVERY]),
        ("--like anvil --host 0.0.0.0 --no-cors -q --workers 2", "0.0.0.0:8545",
         [CAN, KEYS, EVERY]),
    ],
)  # fmt: skip
def test_addresses_that_other_machines_reach_are_warned_of(
    started: list[Any], options: str, reached: str, said: list[str]
) -> None:
    done = CliRunner().invoke(main, ["dev", *shlex.split(options)], catch_exceptions=False)
    assert started
    assert done.stderr.splitlines() == [f"warning: other machines reach {reached}", *said]
    assert max(map(len, done.output.splitlines())) <= 80 or "--like" in options


@pytest.mark.parametrize("options", [[], ["--like", "anvil", "--workers", "2"]])
def test_loopback_addresses_are_not_warned_of(started: list[Any], options: list[str]) -> None:
    done = CliRunner().invoke(main, ["dev", *options], catch_exceptions=False)
    assert (bool(started), done.stderr) == (True, "")


def addresses(networks: Sequence[launch.ServedNetwork]) -> list[str]:
    return [address for each in networks for address in (each.listen, each.feed)]


def test_one_port_moves_all_addresses_but_those_of_options(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBLOCK_LISTEN", "0.0.0.0:1,[::1]:2")
    monkeypatch.setenv("FOREBLOCK_FEED_LISTEN", "")
    options = ["dev", "--port", "18545", "--test-listen", "127.0.0.1:7"]
    assert CliRunner().invoke(main, options, catch_exceptions=False).exit_code == 0
    moved = ["0.0.0.0:18545,[::1]:18545", "", "127.0.0.1:7", "127.0.0.1:19546"]
    assert addresses(started[1:]) == moved


def test_port_0_picks_free_ones(started: list[Any]) -> None:
    CliRunner().invoke(main, ["dev", "--port", "0"], catch_exceptions=False)
    assert addresses(started[1:]) == ["127.0.0.1:0"] * 4


def test_an_address_in_use_is_refused_with_its_owner_and_the_remedy(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> bool:
        raise AddressInUse("127.0.0.1:8545", "foreblock dev (pid 7)")

    monkeypatch.setattr(launch, "run", run)
    line = "foreblock: 127.0.0.1:8545: address already in use by foreblock dev (pid 7)"
    for options in (["dev"], ["dev", "--like", "anvil"], ["serve", "--data", "x"]):
        done = CliRunner().invoke(main, options)
        assert done.stderr == f"{line}; choose another port with --port\n"
        assert done.exit_code == 2, "systemd is told not to restart it"
    assert not started


def test_each_url_stands_beside_the_tools_that_it_is_for(started: list[Any]) -> None:
    options = ["--listen", "127.0.0.1:1,127.0.0.1:3", "--test-listen", "127.0.0.1:2"]
    printed = CliRunner().invoke(main, ["dev", *options], catch_exceptions=False).stdout
    assert started
    assert (
        """
main, chain id 31337
  http://127.0.0.1:1/eth  forge, cast, Hardhat, wallets: unchanged
  http://127.0.0.1:3/eth  forge, cast, Hardhat, wallets: unchanged
  http://127.0.0.1:1      viem, ethers, web3.py: read at `pending`
  http://127.0.0.1:3      viem, ethers, web3.py: read at `pending`
test, chain id 31338
  http://127.0.0.1:2/eth  forge, cast, Hardhat, wallets: unchanged
  http://127.0.0.1:2      viem, ethers, web3.py: read at `pending`
WebSocket: the same addresses, with ws://
a browser shows the chains at http://127.0.0.1:1
"""
        in printed
    )


def test_without_pre_confirmations_one_url_is_for_all_tools(started: list[Any]) -> None:
    options = ["--view", "sealed", "--test-listen", "", "--page", "false"]
    printed = CliRunner().invoke(main, ["dev", *options], catch_exceptions=False).stdout
    assert started
    assert "\n  http://127.0.0.1:8545  any tool, unchanged\nWebSocket" in printed
    assert "browser" not in printed


def test_a_command_off_the_path_is_shown_how_to_be_found(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "its folder"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    line = f"  export PATH='{folder}':$PATH\n"

    def printed(path: str) -> str:
        monkeypatch.setenv("PATH", path)
        return CliRunner().invoke(main, ["dev"], catch_exceptions=False).stdout

    assert line not in printed("/nowhere"), "there is no such command"
    (folder / "foreblock").write_text("#!/bin/sh\n", "utf-8")
    (folder / "foreblock").chmod(0o755)
    assert line in printed("/nowhere")
    assert line not in printed(str(folder))
    assert started
