"""An import whose disk fails ends with one accurate line, and the next one completes."""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ChainFiles
from faults.disk import ALL, Disk, Fault
from support.chains.importing import contents, import_bytes
from support.servers.dev_processes import package_environment

TESTS = Path(__file__).resolve().parent.parent


class Importer:
    """The process of `faults.imports`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path) -> tuple[int, str]:
        """Exit code and output of an import into a folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        code, output = json.loads(self._process.stdout.readline())
        return code, output


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    folder = tmp_path / "stores"
    folder.mkdir()
    return folder


@pytest.fixture
def disk(stores: Path, tmp_path: Path) -> Disk:
    return Disk(stores, tmp_path / "page")


@pytest.fixture
def importer(disk: Disk, example: ChainFiles) -> Iterator[Importer]:
    environment = package_environment() | disk.environment
    environment["PYTHONPATH"] += os.pathsep + str(TESTS)
    command = [sys.executable, "-m", "faults.imports", str(example.genesis), str(example.chain)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Importer(process)


def test_an_import_fails_in_one_line_and_a_second_run_completes(
    importer: Importer, disk: Disk, stores: Path, tmp_path: Path, example: ChainFiles
) -> None:
    import_bytes(tmp_path / "whole", example.genesis.read_bytes(), example.chain.read_bytes())
    whole = list(contents(tmp_path / "whole"))
    disk.fail(Fault(before=10**9))
    code, output = importer.run(stores / "counted")
    assert code == 0, output
    calls = disk.calls
    assert calls > 10
    faults = [Fault(before=before) for before in range(calls)]
    faults += [Fault(0, before=before) for before in range(calls)]
    faults += [Fault(error, failing=ALL) for error in (errno.ENOSPC, errno.EROFS)]
    failed = 0
    for number, fault in enumerate(faults):
        folder = stores / str(number)
        disk.fail(fault)
        code, output = importer.run(folder)
        disk.mend()
        if code:
            failed += 1
            assert re.fullmatch(r"foreblock: .*\n", output), output
            assert any(reason in output for reason in _reasons(fault)), (fault, output)
            code, output = importer.run(folder)
        assert code == 0, (fault, output)
        assert list(contents(folder)) == whole
    assert failed > calls


def _reasons(fault: Fault) -> list[str]:
    """The system's messages; for a write that is cut short LMDB has one of two."""
    errors = [fault.error] if fault.error else [errno.EIO, errno.ENOSPC]
    return [os.strerror(error) for error in errors]
