"""The libraries that `make clients` installs into tests/clients, and programs that use them.

titanoboa and ape, which the packages of integrations/ extend, are those of `make tools`.

They are not dependencies of foreblock or of its other tests: some need Node or Go, web3.py brings
two dozen packages, and none may constrain the versions of this project's own tools. If a library is
not installed, its tests are skipped with a message; under `make clients` that is a failure, except
for Foundry's tools, which are installed on one platform only.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

import foreblock
from support.servers.waiting import PATIENCE

REQUIRED = os.environ.get("FOREBLOCK_CLIENTS") == "required"  # set by `make clients`
HERE = Path(__file__).resolve().parents[2] / "clients"
TOOLS = HERE.parent / "tools"
MODULES = HERE / "node_modules"
PYTHON = HERE / ".venv" / "bin" / "python"
FOUNDRY = {
    tool: MODULES / "@foundry-rs" / f"{tool}-linux-amd64" / "bin" / tool
    for tool in ("cast", "forge")
}
ETHCLIENT = HERE / "ethclient" / "ethclient"
# A file that exists if the library is installed, and the program that runs it.
LIBRARIES = {
    "viem": (MODULES / "viem", "node"),
    "ethers": (MODULES / "ethers", "node"),
    "web3.js": (MODULES / "web3", "node"),
    "ponder": (MODULES / "ponder", str(MODULES / ".bin" / "ponder")),
    "axe-core": (MODULES / "axe-core", "node"),
    "web3.py": (HERE / ".venv", str(PYTHON)),
    "eth-tester": (HERE / ".venv", str(PYTHON)),
    "ethclient": (ETHCLIENT, str(ETHCLIENT)),
    **{
        tool: (TOOLS / tool / ".installed", str(TOOLS / tool / ".venv" / "bin" / "python"))
        for tool in ("titanoboa", "ape")
    },
    **{tool: (path, str(path)) for tool, path in FOUNDRY.items()},
}


# For programs that import foreblock: it and what it needs are those of this environment.
IN_PROCESS = {
    "PYTHONPATH": os.pathsep.join(
        str(Path(each.__file__ or "").parents[1]) for each in (foreblock, msgspec)
    )
}


def program_of(library: str) -> str:
    """Return the command of a library; if it is not installed, the test is skipped or fails."""
    installed, program = LIBRARIES[library]
    if not installed.exists():
        missing = f"{library} is not installed; `make clients` installs it and runs this"
        if REQUIRED and library not in FOUNDRY:
            pytest.fail(missing)
        pytest.skip(missing)
    return program


def environment(url: str = "", **more: str) -> dict[str, str]:
    """The environment of a program; Foundry's tools take the endpoint from a variable."""
    return {**os.environ, "ETH_RPC_URL": url, **more}


def run(
    library: str,
    *arguments: str,
    program: str | None = None,
    url: str = "",
    cwd: Path = HERE,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return the output of a program that uses a library: a file, or a source text."""
    done = subprocess.run(
        [program_of(library), *arguments], input=program, capture_output=True, text=True,
        check=False, cwd=cwd, env=environment(url, **(variables or {})), timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout
