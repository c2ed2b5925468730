"""How a verb fails: one line, and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import click

from foreblock.errors import ForeblockError

INTERRUPTED: Final = 130  # the shell's convention: 128 plus the signal's number


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """Turn what foreblock or the system refuses into one line and exit code 1."""
    try:
        yield
    except (ForeblockError, OSError) as failure:
        stop(str(failure), 1)


def stop(message: str, code: int) -> NoReturn:
    """End the program."""
    click.echo(f"foreblock: {message}", err=True)
    sys.exit(code)
