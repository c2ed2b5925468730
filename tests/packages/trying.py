"""A wheel as installed by a user, by pip into an empty environment and by uvx, runs dev chains."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.servers.dev_processes import Dev, Network, exchange
from support.servers.waiting import PATIENCE

UV_LOCK = Path(__file__).with_name("requirements-uv.lock")
FREE_PORTS = ("--listen=127.0.0.1:0", "--test-listen=127.0.0.1:0", "--feed-listen=127.0.0.1:0",
              "--test-feed-listen=127.0.0.1:0")  # fmt: skip
OF_A_CHECKOUT = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")


class Times(NamedTuple):
    """The waiting times of a user, in seconds."""

    install: float  # with all dependencies
    first_answer: float  # of `foreblock dev`, from its start
    by_uvx: float  # the same of `uvx --from PACKAGE foreblock dev`, which installs first


def try_package(package: Path, version: str) -> Times:
    """Install a package and run dev chains from it; asserts that they respond and end in order."""
    environment = {name: each for name, each in os.environ.items() if name not in OF_A_CHECKOUT}
    with tempfile.TemporaryDirectory(prefix="foreblock-package-") as name:
        folder = Path(name)
        python = _empty_environment(folder / "venv")
        begun = time.monotonic()
        _install(python, environment, str(package.resolve()))
        installed = time.monotonic()
        command = [str(python.with_name("foreblock"))]
        printed = subprocess.run(
            [*command, "--version"],
            cwd=folder, env=environment, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert printed == f"foreblock {version}\n", printed
        subprocess.run(
            [str(python), str(Path(__file__).with_name("in_process.py"))],
            cwd=folder, env=environment, check=True,
        )  # fmt: skip
        first_answer = _run_dev(command, folder, environment, version)
        return Times(installed - begun, first_answer, try_by_uvx(package, version, folder))


def try_by_uvx(package: Path, version: str, folder: Path) -> float:
    """Run `uvx --from PACKAGE foreblock dev` with an empty cache; return the time to a response."""
    environment = {name: each for name, each in os.environ.items() if name not in OF_A_CHECKOUT}
    python = _empty_environment(folder / "uv")
    _install(python, environment, "--require-hashes", "--requirement", str(UV_LOCK))
    environment |= {
        "UV_CACHE_DIR": str(folder / "cache"), "UV_NO_CONFIG": "1", "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }  # fmt: skip
    command = [str(python.with_name("uvx")), "--from", str(package.resolve()), "foreblock"]
    return _run_dev(command, folder, environment, version)


def _empty_environment(folder: Path) -> Path:
    """The interpreter of a new environment."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin" / "python"


def _install(python: Path, environment: dict[str, str], *what: str) -> None:
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what],
        env=environment, check=True,
    )  # fmt: skip


def _run_dev(
    command: Sequence[str], folder: Path, environment: dict[str, str], version: str
) -> float:
    """Run dev chains, read from them and end them; return the time to the first response."""
    started = time.monotonic()
    process = subprocess.Popen(
        [*command, "dev", *FREE_PORTS], cwd=folder, stdout=subprocess.PIPE, text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        dev = Dev(process)
        first = _ask(dev.main)
        check_page(dev.main, version)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
    assert code == 0, f"foreblock dev ended with {code}"
    return first - started


def _ask(network: Network) -> float:
    """Request the block in progress; return the time of the response."""
    pending = network.pending()
    answered = time.monotonic()
    latest, version = network.batch(("eth_blockNumber", ()), ("web3_clientVersion", ()))
    assert int(pending["number"], 16) >= 1
    assert int(latest, 16) >= int(pending["number"], 16) - 1
    assert version.startswith("foreblock/v")
    return answered


def check_page(network: Network, version: str) -> None:
    """Check the page and its assets, which are files of the package, and the version in metrics."""
    for path, text in (
        ("/ui", "<html"),
        ("/ui/app.js", "import"),
        ("/metrics", f'version="{version}"'),
    ):
        reply = exchange(network.url, path)
        assert reply.status == 200, path
        assert text in reply.text, path
