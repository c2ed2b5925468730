"""Run a server as a child process, for benchmarks and conformance: start, wait, stop.

A server gets its own session, so that its children can be killed with it. Its output is kept
for the error message if it does not start.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from foreblock.errors import NotAnAnswer, Unreachable
from foreblock.upstream.rpc_client import Endpoint

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 120.0  # enough for a busy machine
STOP_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.02
PORTS: Final = range(20_000, 32_000)  # below the ephemeral ports
PROBE: Final = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}'


@dataclass(frozen=True)
class RunningService:
    """A running service: its URL and its first process."""

    url: str
    pid: int


@contextmanager
def started(
    command: Sequence[str], url: str, output: IO[bytes] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from its first answer at `url` to the end of all of its processes.

    Its output goes to `output`.
    """
    with nullcontext(output) if output is not None else tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603, the caller chose the command
            command, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_until_answering(url, process, log.fileno())
            yield process
        finally:
            _stop(process)


@contextmanager
def serving(
    data: Path, options: Sequence[str] = (), prefix: Sequence[str] = ()
) -> Iterator[RunningService]:
    """`foreblock serve` over a store, ready to answer.

    `prefix` precedes the command, for instance to pin it to a core.
    """
    port = free_port()
    address = f"{HOST}:{port}"
    serve = [sys.executable, "-m", "foreblock", "serve", f"--data={data}", f"--listen={address}"]
    url = f"http://{address}"
    with started([*prefix, *serve, *options], url) as process:
        yield RunningService(url, process.pid)


def free_port() -> int:
    """A free port outside the ephemeral range.

    An ephemeral port is now and then taken by a client of the very server that is started.
    """
    while True:
        port = random.choice(PORTS)  # noqa: S311, not a secret
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port


def _wait_until_answering(url: str, process: subprocess.Popen[bytes], log: int) -> None:
    """Wait until the endpoint answers. Raises with its last output if it ends."""
    begun = time.monotonic()
    while time.monotonic() - begun < START_SECONDS:
        if process.poll() is not None:
            raise Unreachable(url, f"the server ended at its start: {_end_of_log(log)}")
        try:
            with Endpoint(url, timeout=START_SECONDS) as endpoint:
                endpoint.exchange(PROBE)
        except (Unreachable, NotAnAnswer):
            time.sleep(POLL_SECONDS)
        else:
            return
    raise Unreachable(url, f"the server did not start in {START_SECONDS:.0f} s: {_end_of_log(log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process with its own session, and its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGCONT)  # it may be stopped
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    with suppress(ProcessLookupError):  # no child is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_of_log(log: int) -> str:
    size = os.fstat(log).st_size
    text = os.pread(log, 4000, max(0, size - 4000)).decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else "it said nothing"
