"""`foreblock store dump`: the state after a block as JSON lines, for foreblock and for reth."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from foreblock.cli.progress import progress
from foreblock.cli.verb import (
    INTERRUPTED,
    OUTPUT,
    STORE,
    argument,
    failing_in_one_line,
    option,
    stop,
    verb,
)
from foreblock.errors import StoreExists
from foreblock.ledger.storage.inspect_store import Dumped, dump_store
from foreblock.primitives import format_data


@verb("dump")
@argument("data", help="Store to read.", metavar="DIR", type=STORE)
@argument(
    "file",
    help="File to write; - is standard output.",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
)
@option("--block", metavar="N", type=click.IntRange(0), help="Block to dump; default: latest.")
@option("--header", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
        section=OUTPUT, help="Also write the header of the block, in RLP.")  # fmt: skip
@option("--json", "as_json", is_flag=True, section=OUTPUT,
        help="Print the summary as one JSON object.")  # fmt: skip
def dump(*, data: Path, file: Path, block: int | None, header: Path | None, as_json: bool) -> None:
    """Write the whole state after a block as JSON lines.

    FILE must not exist; - is standard output. The first line is the root, every other line an
    account, as `foreblock import --state` and reth's `init-state` read them. The store may be in
    use: the dump is of one commit. The header is written with the stored headers before it that
    BLOCKHASH may need.
    """
    begun = time.monotonic()

    def report(share: float) -> None:
        show("percent", round(100 * share), 100)

    try:
        with failing_in_one_line(), _new(file) as out, progress("store dump") as show:
            done = dump_store(data, block, out, report, header)
    except KeyboardInterrupt:
        stop("interrupted; there is no dump", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(done, time.monotonic() - begun), err=str(file) == "-")


@contextmanager
def _new(file: Path) -> Iterator[BinaryIO]:
    """Open a file that appears when it is complete; standard output for a dash."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if file.is_symlink() or file.exists():
        raise StoreExists(str(file))
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("xb", buffering=1 << 20) as out:
            yield out
        part.rename(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _summary_text(done: Dumped, seconds: float) -> str:
    header = done.header
    return "\n".join(
        [
            f"dumped     {done.accounts} accounts, {done.slots} slots in {seconds:.2f} s",
            f"block      {header.number} {format_data(header.hash)}",
            f"root       {format_data(header.state_root)}",
        ]
    )


def _summary_json(done: Dumped, seconds: float) -> str:
    header = done.header
    return json.dumps(
        {
            "accounts": done.accounts,
            "slots": done.slots,
            "block": {"number": header.number, "hash": format_data(header.hash)},
            "root": format_data(header.state_root),
            "seconds": round(seconds, 3),
        }
    )
