"""Nodes of a log as real commands: `foreblock dev --log` and `foreblock serve --source log`."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import Any

from replicas.places import Place
from support.servers.dev_processes import children, exchange, package_environment
from support.servers.nats_servers import free_port
from support.servers.waiting import until

NAME = "main"
MUTATION = "FOREBLOCK_TEST_MUTATION"  # the defect of all processes, if set
_TESTS = Path(__file__).parent.parent
_MUTATED = _TESTS / "replicas" / "mutated"


class NotAnswered(Exception):
    """No response, or an error for a missing one."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


@dataclass
class Node:
    """One service with one network; its folder outlives its processes."""

    name: str
    place: Place
    folder: Path
    options: list[str]
    before: list[str] = field(default_factory=list)  # precedes the command
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.port = free_port()
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"{self.place.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def store(self) -> Path:
        """The folder of its store."""
        return self.folder / "data" / NAME

    def start(self) -> None:
        # `dev` takes the parent of its networks' folders.
        data = self.store.parent if self.options[0] == "dev" else self.store
        command = [
            *self.place.prefix, *self.before, sys.executable, "-m", "foreblock", *self.options,
            f"--data={data}", f"--listen={self.address}",
        ]  # fmt: skip
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True,
                env=_environment(),
            )  # fmt: skip

    def wait(self, *, commit: int = 1) -> None:
        """Wait until it responds from this commit on."""
        until(lambda: self.commit() >= commit, f"{self.name} is at commit {commit}")

    def stop(self) -> None:
        """Stop it as an operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill all its processes at once: none of them can shut down in order."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def kill_writer(self) -> None:
        """Kill the process that writes the store; its supervisor starts another one."""
        os.kill(self.writer_pid, signal.SIGKILL)

    @property
    def writer_pid(self) -> int:
        assert self.process is not None
        return children(self.process.pid)["writer"][0]

    def halt(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, sign: signal.Signals) -> None:
        """Signal all processes: each has a separate process group."""
        assert self.process is not None
        others = children(self.process.pid).values()
        for pid in (self.process.pid, *chain.from_iterable(others)):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)

    def _end(self, sign: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(60)
            self.process = None

    # Its responses.

    def commit(self) -> int:
        """The commit of its response; 0 without one."""
        try:
            return self.ask("eth_blockNumber")[1]
        except (OSError, HTTPException, NotAnswered):
            return 0

    def commit_inside(self) -> int:
        """The commit of its response from inside its place, which others may not reach."""
        body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
        command = [
            *self.place.prefix, "curl", "-s", "-i", "-m", "2", "-d", body,
            "-H", "Content-Type: application/json", self.url,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"commit=(\d+)", done.stdout)
        return int(found[1]) if found else 0

    def probe(self) -> str:
        """The contents of `/readyz?verbose`; empty without a response."""
        try:
            return exchange(self.address, "/readyz?verbose", timeout=5).text
        except (OSError, HTTPException):
            return ""

    def ask(
        self, method: str, *params: object, least: int = 0, wait: int = 250, seconds: float = 5
    ) -> tuple[Any, int]:
        """A result and its commit, which is at least the given one."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Foreblock-Min-Commit": f"{least}; wait={wait}"} if least else {}
        reply = exchange(self.address, "/", json.dumps(body), headers, seconds)
        if reply.status != 200 or not reply.commit:
            raise NotAnswered(reply.status, reply.text)
        answer = json.loads(reply.body)
        if "error" in answer:
            raise NotAnswered(200, json.dumps(answer["error"]))
        return answer["result"], reply.commit

    def events(self, name: str) -> list[dict[str, Any]]:
        """The logged events of a name."""
        lines = self.output.read_text(errors="replace").splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{") and name in line]
        return [each for each in found if each.get("event") == name]


def _environment() -> dict[str, str]:
    environment = package_environment() | {"FOREBLOCK_LOG_FORMAT": "json"}
    if MUTATION in environment:
        environment["PYTHONPATH"] += f"{os.pathsep}{_MUTATED}{os.pathsep}{_TESTS}"
    return environment
