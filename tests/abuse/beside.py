"""Clients in a separate process, so that they do not delay the measuring one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A module that runs from its output `ready` until its standard input ends.

    Call `communicate` for its last output; otherwise it ends with the block.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    folder = Path(__file__).resolve().parent.parent
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            if process.poll() is None:
                process.communicate()
