"""`foreblock follow` while its upstream is silent, and without one that is usable."""

import signal
import socket
import subprocess
import sys

import pytest

from support.servers.command import run
from support.servers.dev_processes import package_environment
from support.servers.waiting import PATIENCE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_waits_for_its_upstream_says_so_and_can_be_stopped(
    number: signal.Signals,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/key"
        command = [sys.executable, "-m", "foreblock", "follow", "op-mainnet", "--upstream", url]
        with subprocess.Popen(
            [*command, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=package_environment(),
        ) as process:  # fmt: skip
            connection, _ = silent.accept()
            with connection:
                process.send_signal(number)
                printed, errors = process.communicate(timeout=PATIENCE)
    assert printed.startswith("OP Mainnet, chain id 10, from the latest block on\n")
    assert f"  state from   {url.removesuffix('key')}…\n" in printed
    assert "listening" not in printed
    assert (process.returncode, errors) == (0, "")


def test_a_chain_that_cannot_be_followed_is_explained() -> None:
    done = run("follow", "base", "--upstream", "http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "foreblock: chain base: not supported: since its upgrades of 2026 Base has its own rules"
        " and no flashblocks\n"
    )
