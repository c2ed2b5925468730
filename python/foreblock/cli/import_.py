"""`foreblock import`: a chain file to a store, with a progress bar and a summary."""

import json
import time
from pathlib import Path
from typing import Final

import click

from foreblock.cli.progress import progress
from foreblock.cli.state_import import run_state_import
from foreblock.cli.verb import (
    DIRECTORY,
    FILE,
    INTERRUPTED,
    OUTPUT,
    failing_in_one_line,
    in_section,
    json_option,
    option,
    stop,
    verb,
)
from foreblock.ledger.importing.importer import Imported, Progress, import_files
from foreblock.primitives import format_data

MEGAGAS: Final = 10**6

source = in_section("Input")


@verb(
    "import",
    examples=["foreblock import --genesis genesis.json --chain chain.rlp --data build/store"],
)
@source("--genesis", type=FILE, help="Genesis in geth's JSON format; not needed to continue a "
        "store that has a chain. With --state only its configuration is used.")  # fmt: skip
@source("--chain", type=FILE, help="Blocks in RLP, concatenated.")
@source("--fork-choice", type=FILE, help="engine_forkchoiceUpdated request in JSON: the expected "
        "head, and the safe and finalized blocks.")  # fmt: skip
@source("--state", type=FILE, help="State of one block in JSON lines, as reth's init-state reads "
        "it, to begin a store with.")  # fmt: skip
@source("--header", type=FILE, help="With --state: header of that block, in JSON or RLP; before "
        "Prague also the 256 before it.")  # fmt: skip
@source("--preset", metavar="CHAIN", help="With --state: the chain, by its name in foreblock "
        "chains or its file, in place of a genesis.")  # fmt: skip
@option("--data", required=True, type=DIRECTORY, section=OUTPUT,
        help="Directory of the store, created if missing.")  # fmt: skip
@option("--address-index", is_flag=True, section=OUTPUT,
        help="Also index transactions by address.")  # fmt: skip
@json_option("Print the summary as one JSON object.")
def import_(  # noqa: PLR0913, keywords
    *,
    genesis: Path | None,
    chain: Path | None,
    data: Path,
    fork_choice: Path | None,
    state: Path | None,
    header: Path | None,
    preset: str | None,
    address_index: bool,
    as_json: bool,
) -> None:
    """Verify a chain and store it with all its states.

    Every block is executed and checked against its header (gas, receipts, logs bloom, requests,
    withdrawals, state root) and its parent. The first invalid block is named and not stored.

    Run the same command again to continue after the last stored block.

    With --state the store starts with the state after one block instead, whose root is verified;
    import the blocks after it with --chain.
    """
    if state is not None:
        _refuse_with_state(chain=chain, fork_choice=fork_choice, address_index=address_index)
        run_state_import(state, header, genesis, preset, data, as_json=as_json)
        return
    _refuse_without_state(header=header, preset=preset)
    if chain is None:
        raise click.UsageError("--chain or --state is required.")
    begun = time.monotonic()
    stored: int | None = None  # the last block that a commit has made durable
    try:
        with failing_in_one_line(), progress("import", in_bytes=True) as show:
            length = chain.stat().st_size

            def report(at: Progress) -> None:
                nonlocal stored
                stored = at.stored
                speed = _megagas_per_second(at, time.monotonic() - begun)
                show(f"block {at.number}, {speed:.0f} Mgas/s", at.position, length)

            imported = import_files(
                genesis, chain, data, fork_choice, report, address_index=address_index
            )
    except KeyboardInterrupt:
        reached = (
            "nothing was stored by this run"
            if stored is None
            else f"the store is at block {stored}"
        )
        stop(f"interrupted; {reached}; run the same command again to continue", INTERRUPTED)
    seconds = time.monotonic() - begun
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(imported, seconds))


def _refuse_with_state(**given: object) -> None:
    for name, value in given.items():
        if value:
            option_name = name.replace("_", "-")
            raise click.UsageError(f"--{option_name} and --state cannot be used together.")


def _refuse_without_state(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"--{name} is used with --state.")


def _megagas_per_second(progress: Progress, seconds: float) -> float:
    return progress.gas / MEGAGAS / seconds if seconds else 0.0


def _summary_text(imported: Imported, seconds: float) -> str:
    progress, heads = imported.progress, imported.heads
    assert heads.latest is not None
    number, block_hash = heads.latest
    megagas, speed = progress.gas / MEGAGAS, _megagas_per_second(progress, seconds)
    lines = [
        f"imported   {progress.blocks} blocks, {progress.transactions} transactions",
        f"executed   {megagas:.1f} Mgas in {seconds:.2f} s ({speed:.0f} Mgas/s)",
    ]
    if progress.skipped:
        lines.append(f"skipped    {progress.skipped} blocks that were stored already")
    lines.append(f"latest     {number} {format_data(block_hash)}")
    if heads.safe is not None:
        lines.append(f"safe       {heads.safe[0]}")
    if heads.finalized is not None:
        lines.append(f"finalized  {heads.finalized[0]}")
    return "\n".join(lines)


def _summary_json(imported: Imported, seconds: float) -> str:
    progress, heads = imported.progress, imported.heads
    return json.dumps(
        {
            "blocks": progress.blocks,
            "skipped": progress.skipped,
            "transactions": progress.transactions,
            "gas": progress.gas,
            "seconds": round(seconds, 3),
            "latest": _head(heads.latest),
            "safe": _head(heads.safe),
            "finalized": _head(heads.finalized),
        }
    )


def _head(head: tuple[int, bytes] | None) -> dict[str, int | str] | None:
    return None if head is None else {"number": head[0], "hash": format_data(head[1])}
