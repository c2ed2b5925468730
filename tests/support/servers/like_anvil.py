"""`foreblock dev --like anvil`, and anvil itself, in separate processes."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreblock.bench.rpc.peers import find
from foreblock.upstream.rpc_client import Endpoint
from support.servers.dev_processes import package_environment
from support.servers.waiting import PATIENCE

CHECKOUT = Path(__file__).resolve().parents[3]
LISTENING = "Listening on "


class Running:
    """A listening chain: its output, and a client of its first address."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.output: list[str] = []
        for line in process.stdout:
            self.output.append(line.rstrip("\n"))
            if line.startswith(LISTENING):
                break
        assert self.output[-1:], "it ended at its start"
        assert self.output[-1].startswith(LISTENING), self.output
        self.addresses = self.output[-1].removeprefix(LISTENING).split(", ")
        self.endpoint = Endpoint(f"http://{self.addresses[0]}", PATIENCE)

    def ask(self, method: str, *params: object) -> object:
        """Return the result; raises `ErrorAnswer`."""
        return self.endpoint.request(method, params)

    def stop(self) -> int:
        """Stop it as Ctrl-C does; return its exit code."""
        self.endpoint.close()
        self.process.send_signal(2)
        return self.process.wait(PATIENCE)


@contextmanager
def running(command: Sequence[str], **environment: str) -> Iterator[Running]:
    """A chain from its last line of output to its end."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=package_environment() | environment,
        start_new_session=True,
    )
    found: Running | None = None
    try:
        found = Running(process)
        yield found
    finally:
        if found is not None:
            found.endpoint.close()
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


NO_ANVIL = "anvil is not installed; bench/peers.sh installs it"


def like_anvil(*flags: str) -> list[str]:
    """The command, on a free port unless the flags have one."""
    port = [] if {"-p", "--port"} & set(flags) else ["--port", "0"]
    return [sys.executable, "-m", "foreblock", "dev", "--like", "anvil", *port, *flags]


def anvil_program() -> Path | None:
    """Return anvil's executable and not its wrapper script, which does not forward signals."""
    peers = CHECKOUT / "build" / "peers"
    programs = peers.glob("node_modules/@foundry-rs/anvil-*/bin/anvil")
    return next(programs, None) or find("anvil", peers)


def anvil(*flags: str) -> list[str]:
    """The command of anvil; skips the test if it is not installed."""
    program = anvil_program()
    if program is None:
        pytest.skip(NO_ANVIL)
    return [str(program), "--port", "0", *flags]
