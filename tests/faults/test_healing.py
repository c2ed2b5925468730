"""Real networks whose disk fails: each recovers, reports the reason, and loses nothing."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

import pytest

from faults.disk import ALL, Disk, Fault
from faults.life import FOLLOWED, SEQUENCED, SOURCE
from foreblock._engine import Store
from foreblock.errors import StoreError
from foreblock.ledger.reading.view import Ledger
from support.each_case import sampled
from support.servers.asking import Asker, asker
from support.servers.dev_processes import package_environment
from support.servers.toy_endpoint import HttpRequest, ToyResponse, http_endpoint
from support.servers.waiting import PATIENCE, until


@contextmanager
def canonical(store: Path) -> Iterator[str]:
    """Its address, before the store exists."""
    ready: list[Asker] = []
    one_at_a_time = Lock()

    def reply(request: HttpRequest) -> ToyResponse:
        with one_at_a_time:
            try:
                if not ready:
                    ready.append(opened.enter_context(asker(Ledger.open(str(store)))))
            except StoreError as why:
                return ToyResponse(503, str(why).encode())
            body = ready[0].reply(request.body).body
        return ToyResponse(body=body, headers={"Content-Type": "application/json"})

    with ExitStack() as opened, http_endpoint(reply) as url:
        yield url


TESTS = Path(__file__).resolve().parent.parent
CALLS = int(os.environ.get("FOREBLOCK_FAULTS", "0"))  # number of each kind; else a few
# One at each call of some commits, including boundaries of blocks.
ONCE = [Fault(before=before) for before in range(CALLS or 16)]
# One, and then one more at each call of a network's restart.
AGAIN = [Fault(between=between) for between in range(CALLS or 16)]
SHORT = [Fault(0, before=before) for before in range(CALLS or 4)]
LASTING = [Fault(error, failing=ALL) for error in (errno.ENOSPC, errno.EROFS)]


class Life:
    """The process of `faults.life`, observed from outside."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._stores: dict[str, Store] = {}
        self._lines: list[str] = []
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(self._process.stdout)

    def failures(self, network: str) -> list[str]:
        """The reasons of a network's failures, as sent to workers."""
        said = [line.rstrip("\n").split("\t") for line in self._lines]
        return [why for name, why in said if name == network]

    def blocks(self, network: str) -> dict[int, bytes]:
        """The hashes of all sealed blocks."""
        with self._store(network).view() as view:
            assert view.heads.latest is not None
            last, _ = view.heads.latest
            sealed = [view.sealed(number) for number in range(last + 1)]
        return {number: found[0] for number, found in enumerate(sealed) if found is not None}

    def commit(self, network: str) -> int:
        with self._store(network).view() as view:
            return view.heads.commit

    def await_commits(self, network: str, count: int = 1) -> None:
        before = self.commit(network)
        until(lambda: self.commit(network) >= before + count, f"{network} commits")

    def _store(self, network: str) -> Store:
        if network not in self._stores:
            self._stores[network] = Store(str(self._folder / network))
        return self._stores[network]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE) == 0
        self._listener.join(PATIENCE)
        for store in self._stores.values():
            store.close()


@contextmanager
def living(folder: Path, disk: Disk) -> Iterator[Life]:
    environment = package_environment() | disk.environment
    environment["PYTHONPATH"] += os.pathsep + str(TESTS)
    with canonical(folder / SOURCE) as url, (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "faults.life", str(folder), url], stdout=subprocess.PIPE,
            stderr=log, text=True, env=environment,
        )  # fmt: skip
        try:
            yield Life(process, folder)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


# A follower may have to wait for the next block of its canonical source.
@pytest.mark.parametrize(
    ("failing", "every"), sampled([(SEQUENCED, 1), (FOLLOWED, 1 if CALLS else 12)], 1)
)
def test_a_network_comes_back_from_every_fault_of_its_disk(
    failing: str, every: int, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    disk = Disk(folder / failing, tmp_path / "page")
    with living(folder, disk) as life:
        for fault in [*[*ONCE, *AGAIN, *SHORT][::every], *LASTING]:
            life.await_commits(failing)
            blocks, told = life.blocks(failing), len(life.failures(failing))
            disk.fail(fault)
            due = 1 if fault.between < 0 else 2
            until(lambda: disk.hits >= due, f"{fault} strikes")  # noqa: B023, called here
            if fault.failing == ALL:
                until(lambda: len(life.failures(failing)) > told + 1, "it fails again")  # noqa: B023
            disk.mend()
            life.await_commits(failing)
            now = life.blocks(failing)
            assert {number: now[number] for number in blocks} == blocks, fault
        assert not any("already open" in why for why in life.failures(failing))
        assert any("No space left on device" in why for why in life.failures(failing))
        assert any("Read-only file system" in why for why in life.failures(failing))
        assert any("Input/output error" in why for why in life.failures(failing))
        assert not life.failures(SOURCE), "what fails is one network"
        assert not life.failures(SEQUENCED if failing == FOLLOWED else FOLLOWED)
        life.stop()
