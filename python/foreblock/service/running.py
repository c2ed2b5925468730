"""Servers as processes: started, waited for, stopped.

A server gets a session of its own, so that whatever it starts can be ended with it. What
it prints is kept for the one message that needs it: why it did not start.
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
from foreblock.upstream.client import Endpoint

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 120.0  # more than a machine takes that is busy with something else
STOP_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.02
PORTS: Final = range(20_000, 32_000)  # below those that systems give to clients
PROBE: Final = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}'


@dataclass(frozen=True)
class RunningService:
    """A running service: where it answers, and its first process."""

    url: str
    pid: int


@contextmanager
def started(
    command: Sequence[str], url: str, output: IO[bytes] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from its first answer at `url` to the end of the last of its processes.

    What it prints goes to `output`, for whoever reads it.
    """
    with nullcontext(output) if output is not None else tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603, whoever calls has chosen the command
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
    """`foreblock serve` over a store, until it answers and while the block runs.

    `prefix` stands before the command, for whoever pins it to a core.
    """
    port = free_port()
    address = f"{HOST}:{port}"
    serve = [sys.executable, "-m", "foreblock", "serve", f"--data={data}", f"--listen={address}"]
    url = f"http://{address}"
    with started([*prefix, *serve, *options], url) as process:
        yield RunningService(url, process.pid)


def free_port() -> int:
    """A port that was free a moment ago, and that the system gives to nobody who asks for any.

    One that it might give would be taken, now and then, by a client of the very server that is
    waited for.
    """
    while True:
        port = random.choice(PORTS)  # noqa: S311, nobody is kept from guessing it
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port


def _wait_until_answering(url: str, process: subprocess.Popen[bytes], log: int) -> None:
    """Return when the endpoint answers; raise with its last words if it ends instead."""
    begun = time.monotonic()
    while time.monotonic() - begun < START_SECONDS:
        if process.poll() is not None:
            raise Unreachable(url, f"the server ended at its start: {_last_words(log)}")
        try:
            with Endpoint(url, timeout=START_SECONDS) as endpoint:
                endpoint.exchange(PROBE)
        except (Unreachable, NotAnAnswer):
            time.sleep(POLL_SECONDS)
        else:
            return
    raise Unreachable(url, f"the server did not start in {START_SECONDS:.0f} s: {_last_words(log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and whatever it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGCONT)  # it may have been halted meanwhile
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    with suppress(ProcessLookupError):  # nothing outlived it
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(log: int) -> str:
    size = os.fstat(log).st_size
    text = os.pread(log, 4000, max(0, size - 4000)).decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else "it said nothing"
