"""A writer killed at random moments, with readers running throughout.

Killing a process loses no data already written to the system, so this tests order and atomicity:
the commits of a reopened store, and that each is complete. Durability on disk is the responsibility
of LMDB and the disk.

An open store must never be used across a fork: every process here opens it itself.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import IO

import pytest

from crash.look import difference
from crash.plan import Model, State
from crash.writer import open_to_write
from foreblock._engine import Overlay, Store

KILLS = int(os.environ.get("FOREBLOCK_SOAK", "15"))
SEED = os.environ.get("FOREBLOCK_SEED", "a plan")
TESTS = Path(__file__).parent.parent


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
    )


class Writers:
    """Consecutive writing processes, and the output of the current one."""

    def __init__(self, path: Path) -> None:
        self.process = start("crash.writer", str(path), SEED)
        self.reports: dict[str, int] = {}

    def listen(self) -> None:
        """Wait for the next message."""
        message = os.read(fileno(self.process.stdout), 9)
        self.reports[message[:1].decode()] = int.from_bytes(message[1:], signed=True)

    def start_and_kill(self, random: Random) -> tuple[int, int]:
        """Kill it a random time after a random message; the last commits done and begun."""
        self.reports = {}
        os.write(fileno(self.process.stdin), b"+")
        while "p" not in self.reports or random.random() < 0.95:
            self.listen()
        until = time.perf_counter() + random.random() * random.choice([0.0001, 0.001, 0.01])
        while time.perf_counter() < until:
            pass
        os.kill(self.reports["p"], signal.SIGKILL)
        while "x" not in self.reports:
            self.listen()
        assert self.reports["x"] == -signal.SIGKILL, "the writer ended by itself"
        return self.reports.get("d", 0), self.reports.get("b", 0)

    def close(self) -> None:
        self.process.communicate()


def fileno(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


class Reader:
    """A reading process, and the commits it has seen."""

    def __init__(self, path: Path, views: int) -> None:
        self.process = start("crash.reader", str(path), str(views))
        self.seen = [0]

    def wait_for(self, commit: int) -> None:
        """Wait until it has seen this commit, for any time."""
        assert self.process.stdout is not None
        while self.seen[-1] < commit:
            line = self.process.stdout.readline()
            assert line, "a reader saw something wrong and said so above"
            self.seen.append(int(line))

    def stop(self) -> None:
        """End it; it must have seen no error until then."""
        said, _ = self.process.communicate(b"stop")
        assert self.process.returncode == 0, "a reader saw something wrong and said so above"
        self.seen += map(int, said.split())


@contextmanager
def readers(path: Path) -> Iterator[list[Reader]]:
    """Two reading processes, one of which reopens the store repeatedly."""
    found = [Reader(path, views) for views in (1_000_000, 20)]
    try:
        yield found
        for reader in found:
            reader.stop()
    finally:
        for reader in found:
            reader.process.kill()
            reader.process.communicate()


def root_from_scratch(path: Path, state: State) -> bytes:
    overlay = Overlay.empty()
    for address, life in state.items():
        overlay.set(
            address, balance=life.balance, nonce=life.nonce, code=life.code, state=life.slots
        )
    with Store(str(path), write=True) as store:
        batch = store.batch()
        batch.append(0, bytes(32), overlay.take(batch.draw()))
        store.commit(batch)
        return store.trie().root()


def replay(model: Model, commit: int) -> Model:
    while model.commit < commit:
        model = model.after(model.next(SEED))
    assert model.commit == commit, "the store shows a commit that is not of the plan"
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory if available: a kill has the same effects there."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a random name
    if not memory.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_killed_writer_leaves_a_prefix_with_all_that_was_reported(folder: Path) -> None:
    path, random, model = folder / "store", Random(SEED), Model()
    open_to_write(str(path)).close()
    inside = 0  # kills that hit a commit; on a busy machine they are rare
    writers = Writers(path)
    with readers(path) as reading, closing(writers):
        for kill in range(10 * KILLS):
            if kill >= KILLS and inside > KILLS / 20:
                break
            done, begun = writers.start_and_kill(random)
            inside += begun > done
            with open_to_write(str(path)) as store, store.view() as view:
                commit = view.heads.commit
                least = max(done, model.commit)
                assert least <= commit <= max(begun, least)
                model = replay(model, commit)
                if commit == 0:
                    continue
                assert difference(view, model) is None
                state = model.blocks[model.latest].state
                scratch = folder / f"scratch-{kill}"
                assert store.trie().root() == root_from_scratch(scratch, state)
            for reader in reading:
                reader.wait_for(commit)
    assert model.commit > KILLS, "the writer was killed too early to do anything"
    assert inside > KILLS / 20, "hardly any kill hit a commit"
    assert all(len(reader.seen) > KILLS / 4 for reader in reading)
