"""`foreblock execute`: execute blocks from their witnesses alone."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from foreblock.chains.chain_file import ChainFacts, find_chain
from foreblock.cli.progress import progress
from foreblock.cli.verb import (
    FILE,
    INTERRUPTED,
    argument,
    failing_in_one_line,
    in_section,
    json_option,
    stop,
    verb,
)
from foreblock.cli.witness_file import read_witness
from foreblock.errors import (
    ForeblockError,
    MissingCode,
    MissingHeader,
    MissingNode,
)
from foreblock.ledger.building.witness_execution import execute_witnessed
from foreblock.primitives import format_data

MEGAGAS: Final = 10**6
INCOMPLETE: Final = (MissingNode, MissingCode, MissingHeader)

source = in_section("Input")


@dataclass(frozen=True, slots=True)
class ExecutedFile:
    """The result for one file."""

    file: str
    number: int | None = None
    hash: str | None = None  # of the executed block; None if it was not executed
    expected: str | None = None
    gas_used: int | None = None
    milliseconds: float | None = None
    error: str | None = None  # None if the hash is the expected one


@verb(examples=["foreblock execute block-*.json"])
@argument(
    "files",
    help="Files with a block and its witness.",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=FILE,
)
@source("--chain", metavar="CHAIN", help="Chain of files that do not name theirs: a name that "
        "`foreblock chains` lists, or a file.")  # fmt: skip
@json_option()
def execute(*, files: Sequence[Path], chain: str | None, as_json: bool) -> None:
    """Execute blocks from their witnesses alone.

    Each FILE contains a block with the trie nodes, codes and headers that its execution needs, as
    JSON, optionally compressed by gzip. The block is executed without a store, its state root is
    computed, and its hash is printed with a verdict. The exit code is 0 if every hash is the
    expected one.
    """
    with failing_in_one_line():
        known = None if chain is None else find_chain(chain)
    results: list[ExecutedFile] = []
    try:
        with progress("execute") as report:
            for file in files:
                report(file.name, len(results), len(files))
                results.append(_execute(file, known))
                if not as_json:
                    _print(results[-1])
    except KeyboardInterrupt:
        stop(f"interrupted after {len(results)} of {len(files)} files", INTERRUPTED)
    failed = sum(result.error is not None for result in results)
    if as_json:
        blocks = [asdict(result) for result in results]
        click.echo(json.dumps({"blocks": blocks, "executed": len(results), "failed": failed}))
    elif not failed:
        noun = "block has its" if len(results) == 1 else "blocks have their"
        click.echo(f"{len(results)} {noun} expected hash")
    if failed:
        stop(f"{failed} of {len(results)} blocks do not have the expected hash", 1)


def _execute(file: Path, chain: ChainFacts | None) -> ExecutedFile:
    begun = time.monotonic()
    number = expected = None
    try:
        block = read_witness(file, chain)
        number, expected = block.number, format_data(block.expected)
        header = execute_witnessed(block)
    except INCOMPLETE as missing:
        why = f"the witness is incomplete: {missing}"
        return ExecutedFile(file.name, number, expected=expected, error=why)
    except (ForeblockError, OSError) as failure:
        return ExecutedFile(file.name, number, expected=expected, error=str(failure))
    differs = header.hash != block.expected
    return ExecutedFile(
        file.name,
        number,
        format_data(header.hash),
        expected,
        header.gas_used,
        round(1000 * (time.monotonic() - begun), 1),
        f"block {number} has the hash {format_data(header.hash)}, expected {expected}"
        if differs
        else None,
    )


def _print(result: ExecutedFile) -> None:
    if result.error is not None:
        click.echo(f"foreblock: {result.file}: {result.error}", err=True)
    if result.hash is not None and result.gas_used is not None:
        verdict = "ok" if result.error is None else "differs"
        spent = f"{result.gas_used / MEGAGAS:.1f} Mgas {result.milliseconds:.0f} ms"
        click.echo(f"{result.number} {result.hash} {verdict} {spent}")
