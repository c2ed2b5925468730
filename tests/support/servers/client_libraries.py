"""The libraries that `make clients` installs into tests/clients, and programs that use them.

They are no dependencies of foreblock or of its other tests: some need node, web3.py brings
two dozen packages, and none may decide which versions our own tools have. Where they are not
installed their tests are skipped, and say so; under `make clients` that is a failure, but for
cast, which is installed on one platform only.
"""

import os
import subprocess
from pathlib import Path

import pytest

REQUIRED = os.environ.get("FOREBLOCK_CLIENTS") == "required"  # as `make clients` says
HERE = Path(__file__).resolve().parents[2] / "clients"
PYTHON = HERE / ".venv" / "bin" / "python"
CAST = HERE / "node_modules" / "@foundry-rs" / "cast-linux-amd64"
LIBRARIES = {
    "viem": (HERE / "node_modules" / "viem", "node"),
    "ethers": (HERE / "node_modules" / "ethers", "node"),
    "web3.py": (HERE / ".venv", str(PYTHON)),
    "cast": (CAST, str(CAST / "bin" / "cast")),
}


def run(library: str, *arguments: str, program: str | None = None, url: str = "") -> str:
    """What a program prints that uses a library: a file, or a text given to it.

    cast is told by a variable where to ask.
    """
    folder, interpreter = LIBRARIES[library]
    if not folder.is_dir():
        missing = f"{library} is not installed; `make clients` installs it and runs this"
        if REQUIRED and library != "cast":
            pytest.fail(missing)
        pytest.skip(missing)
    done = subprocess.run(
        [interpreter, *arguments], input=program, capture_output=True, text=True, check=False,
        cwd=HERE, env={**os.environ, "ETH_RPC_URL": url},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
