"""The packages of flows: folders with a lock file, installed once.

The kind of an environment follows from its files: `package-lock.json` is installed by npm,
`requirements.lock` by pip into a separate `.venv`, and `go.sum` belongs to a program that is built.
None of them is a dependency of foreblock, and none constrains another one's versions. A stamp
records the lock file that a folder was installed from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.flows import SHARED
from tools.targets import NotInstalled

HERE = Path(__file__).resolve().parent
STAMP = ".installed"
NPM = "package-lock.json"
LOCKS = (NPM, "requirements.lock", "go.sum")


def install(need: str) -> None:
    """Install the packages of a folder, unless they are installed."""
    folder = HERE / need
    found = [folder / each for each in LOCKS if (folder / each).exists()]
    state = hashlib.sha256(b"".join(each.read_bytes() for each in found)).hexdigest()
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text("ascii") == state:
        return
    if need != SHARED and folder / NPM in found:
        install(SHARED)  # it has the node that all of them run with
    for lock in found:
        for command in _commands(folder, lock.name):
            _run(command, folder)
    stamp.write_text(state, "ascii")


def _commands(folder: Path, lock: str) -> Sequence[Sequence[str]]:
    if lock == NPM:
        return [["npm", "ci", "--loglevel=error", "--no-audit", "--no-fund"]]
    if lock == "requirements.lock":
        python = str(folder / ".venv/bin/python")
        options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
        venv = [sys.executable, "-m", "venv", ".venv"]
        return [venv, [python, "-m", "pip", "install", *options, "-r", lock]]
    return [["go", "build", "-o", folder.name, "."]]


def _run(command: Sequence[str], folder: Path) -> None:
    program, *arguments = command
    told = {**os.environ, "CGO_ENABLED": "0", "PATH": path_of([SHARED])}
    found = shutil.which(program, path=told["PATH"])
    if found is None:
        raise NotInstalled(f"{program} is missing")
    done = subprocess.run(
        [found, *arguments], cwd=folder, env=told, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotInstalled(f"{program} failed in {folder.name}: {said[-1]}")


def path_of(needs: Iterable[str]) -> str:
    """A PATH with the programs of these folders before those of the machine."""
    places = []
    for need in needs:
        folder = HERE / need
        places += [folder / "node_modules/.bin", folder / ".venv/bin", folder]
    there = [str(each) for each in places if each.is_dir()]
    return os.pathsep.join([*there, os.environ["PATH"]])
