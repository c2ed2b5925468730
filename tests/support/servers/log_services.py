"""Whole services with a log, in separate processes: writers, standbys and replicas."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self

import lmdb

from foreblock._engine import LogRow, Store
from foreblock.clock import SystemClock
from foreblock.ledger.building.replica_writer import CommitOfLog, ReplicaWriter
from foreblock.ledger.storage.section_index import ADDRESSES, LOGS, touched_key
from foreblock.log.position import LogPosition
from foreblock.log.tail import LogTail, NextCommit
from support.servers.dev_processes import Network, children, exchange, package_environment
from support.servers.log_nodes import node
from support.servers.waiting import PATIENCE, POLL_SECONDS, until

# Everything that a log makes equal; trie nodes and the heads, with a note, differ between stores.
EQUAL_TABLES = ("flat", "deltas", "codes", "sealed", "partials", "rows", "trash")
LOCAL_ROWS = (LOGS.key, ADDRESSES.key, touched_key(0)[:1])
KEPT: dict[str, Any] = {"keep_states": 40, "keep_partials": 8, "keep_nodes": 16}
KEEP = [f"--{name.replace('_', '-')}={count}" for name, count in KEPT.items()]
CHAIN_ID = '{"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}'
FACT = re.compile(
    r"log: epoch (\d+), sequence (\d+), commit (\d+), (\d+\.\d\d) s behind, (.*)", re.MULTILINE
)


class Service:
    """A running service with one network and its log."""

    def __init__(self, process: subprocess.Popen[str], network: Network, output: Path) -> None:
        self.process = process
        self.network = network
        self._output = output

    def output(self) -> str:
        """All its output and logs."""
        return self._output.read_text("utf-8")

    def log(self) -> tuple[int, int, str]:
        """The epoch, the commit and the writer's state in its status."""
        _, text = self.network.probe("/readyz?verbose")
        found = FACT.search(text)
        return (0, 0, "") if found is None else (int(found[1]), int(found[3]), found[5])

    def is_ready(self) -> bool:
        return self.network.probe("/readyz")[0] == 200

    def until_epoch(self, epoch: int, words: str = "") -> None:
        """Wait until its status has this epoch and this state of the writer."""

        def shows() -> bool:
            found, _, writer = self.log()
            return found == epoch and words in writer

        until(shows, f"epoch {epoch} {words}")

    def until_commit(self, commit: int) -> None:
        def has() -> bool:
            self.network.ask("eth_chainId")
            return self.network.commit >= commit

        until(has, f"commit {commit}")

    def signal_writer(self, number: int) -> None:
        """Send a signal to the writer process."""
        (pid,) = children(self.process.pid)["writer"]
        os.kill(pid, number)

    def kill(self) -> None:
        """Kill all its processes at once, like a power failure."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


@contextmanager
def service(output: Path, *words: str) -> Iterator[Service]:
    """`foreblock WORDS`, from its first response to its end."""
    command = [sys.executable, "-m", "foreblock", *words, "--workers=1", "--listen=127.0.0.1:0"]
    with output.open("ab") as written:
        process = subprocess.Popen(
            command, stdout=written, stderr=subprocess.STDOUT, text=True,
            env=package_environment(), start_new_session=True,
        )  # fmt: skip

    def listens() -> str | None:
        text = output.read_text("utf-8")
        assert process.poll() is None, text
        found = re.search(r"^(?:main.*\n +|listening on )(http://[^/\s]+)", text, re.MULTILINE)
        return None if found is None else found[1]

    try:
        yield Service(process, Network(until(listens, "it listens"), ""), output)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)


class RoamingClient:
    """A client that sends requests to one endpoint after another, with the last seen commit as
    minimum.
    """

    def __init__(self) -> None:
        self.networks: list[Network] = []
        self.commit = 0
        self.answers = 0
        self.refusals = 0
        self.wrong: list[str] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._roam, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE)

    def _roam(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            for network in tuple(self.networks):
                self._ask(network.url)

    def _ask(self, url: str) -> None:
        try:
            reply = exchange(url, "/", CHAIN_ID, {"Foreblock-Min-Commit": f"{self.commit}"})
        except (OSError, HTTPException):
            return  # it was killed, or has not started yet
        if reply.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.refusals += 1
            return
        if reply.commit < self.commit:
            self.wrong.append(f"{url} is at {reply.commit}, {self.commit} was seen")
        self.commit = reply.commit
        self.answers += 1


def read_log_to_end(data: Path, url: str) -> None:
    """Let a closed store read the log to its end, and maintain it."""

    async def run() -> None:
        async with node(url, make=False) as found:
            with Store(str(data), write=True, **KEPT) as store:
                replica = ReplicaWriter(store, SystemClock())

                async def apply(commits: Sequence[NextCommit]) -> int:
                    for commit, position in commits:
                        message = commit.message
                        row = LogRow(position.epoch, position.link, position.sequence)
                        one = CommitOfLog(message.body, message.before, message.after, row)
                        replica.apply([one], lambda freshness, _: freshness)
                    return len(commits)

                row = replica.row
                assert row is not None
                at = LogPosition(row.epoch, row.link, row.sequence, replica.last_commit)
                await LogTail(found.connection, found.reader, at, apply).catch_up()
                while store.maintain(1_000):
                    pass

    asyncio.run(run())


def tables(data: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    """Return the replicated tables of a closed store, byte for byte."""
    with lmdb.open(str(data), max_dbs=16, readonly=True, lock=False) as environment:
        found = {}
        for name in EQUAL_TABLES:
            table = environment.open_db(name.encode(), create=False)
            with environment.begin(table) as transaction:
                found[name] = [(bytes(key), bytes(row)) for key, row in transaction.cursor()]
    found["rows"] = [each for each in found["rows"] if each[0][:1] not in LOCAL_ROWS]
    return found
