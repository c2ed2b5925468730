"""Nodes of a cluster in separate processes: writers and replicas of one log."""

import re
import signal
import subprocess
import sys
from http.client import HTTPException
from pathlib import Path

from support.servers.dev_processes import exchange
from support.servers.nats_servers import free_port
from support.servers.serving import environment
from support.servers.waiting import PATIENCE, until

_FACT = re.compile(r"^log: epoch (\d+), sequence (\d+), commit (\d+)", re.MULTILINE)


class ClusterNode:
    """One node with its own folder, which outlives its processes."""

    def __init__(self, folder: Path, log: str, *options: str, is_replica: bool) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.snapshots = free_port(), free_port()
        self.copies = f"http://127.0.0.1:{self.snapshots}"
        self._options = [
            f"--data={folder / 'data'}",
            f"--listen=127.0.0.1:{self.port}",
            "--workers=1",
            *(
                ("--source=log",)
                if is_replica
                else ("--test-listen=", "--feed-listen=", "--load=50", "--interval=0.1")
            ),
        ]
        self._with_log = [f"--log={log}", f"--snapshot-listen=127.0.0.1:{self.snapshots}", *options]
        self._verb = "serve" if is_replica else "dev"
        self._process: subprocess.Popen[bytes] | None = None
        self.store = folder / "data" if is_replica else folder / "data" / "main"

    @property
    def output(self) -> str:
        """All its output and logs."""
        return (self.folder / "node.log").read_text("utf-8")

    def start(self, *, with_log: bool = True) -> None:
        """Start, and wait until it is ready."""
        command = [sys.executable, "-m", "foreblock", self._verb, *self._options]
        with (self.folder / "node.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*command, *(self._with_log if with_log else ())],
                stdout=output,
                stderr=output,
                env=environment(),
            )
        until(lambda: self.get("/readyz").startswith("ready"), "the node is ready")

    def get(self, path: str) -> str:
        """Return its response, empty on failure."""
        assert self._process is not None
        assert self._process.poll() is None, self.output
        try:
            return exchange(f"127.0.0.1:{self.port}", path).text
        except (OSError, HTTPException):
            return ""

    def place(self) -> tuple[int, int, int]:
        """Epoch, sequence and commit from its status; zeros without a status."""
        found = _FACT.search(self.get("/readyz?verbose"))
        return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)

    def until_at(self, epoch: int, commit: int) -> None:
        """Wait until it has this commit of this epoch or a later one."""
        until(lambda: self.place()[::2] >= (epoch, commit), f"commit {commit} of epoch {epoch}")

    def stop(self) -> None:
        """Stop it in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)
            self._process = None

    def kill(self) -> None:
        """Kill the main process; the other processes see the end of their parent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None
