"""`foreblock VERB …`, in this process or in a separate one."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from unittest import mock

from click.testing import CliRunner
from structlog.testing import capture_logs

from foreblock.cli import main

Done = subprocess.CompletedProcess[str]


def run(
    *arguments: object, answer: str = "", cwd: Path | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Done:  # fmt: skip
    """Run a command in this process, which takes a tenth of the time; its logs are dropped.

    Not for a store that this process has open, which only other processes find locked, and not for
    `store check`, which forks.
    """
    words = list(map(str, arguments))
    with chdir(cwd or Path.cwd()), mock.patch("structlog.configure"), capture_logs():
        found = CliRunner().invoke(
            main, words, input=answer, env=environment, catch_exceptions=False
        )
    return subprocess.CompletedProcess(words, found.exit_code, found.stdout, found.stderr)


def run_apart(*arguments: object, cwd: Path | None = None) -> Done:
    """Run a command in a separate process."""
    words = [sys.executable, "-m", "foreblock", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
