"""`foreblock import --state`: a state dump and the headers of its block to a store."""

import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from foreblock.chains.chain_file import config_of, find_chain
from foreblock.cli.progress import progress
from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, stop
from foreblock.errors import BadState, Undecodable
from foreblock.ledger.importing.chain_files import read_items
from foreblock.ledger.importing.state_import import (
    ImportedState,
    ImportStart,
    config_of_genesis,
    import_state,
)
from foreblock.primitives import format_data, parse_hash, parse_quantity
from foreblock.types import Header, decode_block, decode_header
from foreblock.upstream.block_json import rebuild_header

# --- Headers -------------------------------------------------------------------------------

LONGEST: Final = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class GivenHeaders:
    """Headers of consecutive blocks, and the total difficulty of the last if it is stated."""

    headers: Sequence[Header]
    total_difficulty: int | None = None


def read_header_file(path: Path) -> GivenHeaders:
    """The headers in a file. Raises `BadState`, `OSError`."""
    with path.open("rb") as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise BadState(0, f"{path} is longer than {LONGEST} bytes")
    text = content.strip()
    try:
        if text.startswith((b"{", b"[")):
            found = _of_json(json.loads(text))
        else:
            found = _of_rlp(_bytes(content, text))
    except (ValueError, Undecodable) as why:
        raise BadState(0, f"{path}: {why}") from why
    if not found.headers:
        raise BadState(0, f"{path} has no header")
    return found


def _of_json(value: object) -> GivenHeaders:
    blocks = [_result(each) for each in (value if isinstance(value, list) else [value])]
    headers = [_header(each) for each in blocks]
    stated = blocks[-1].get("totalDifficulty") if blocks else None
    return GivenHeaders(headers, None if stated is None else parse_quantity(stated))


def _result(value: object) -> dict[str, object]:
    """The block, without the response around it."""
    if isinstance(value, dict) and "result" in value and "number" not in value:
        value = value["result"]
    if not isinstance(value, dict):
        raise ValueError("expected a block or a header as an object")  # noqa: TRY004, as below
    return value


def _header(block: dict[str, object]) -> Header:
    header = rebuild_header(block)
    stated = block.get("hash")
    if stated is not None and parse_hash(stated) != header.hash:
        found = format_data(header.hash)
        raise ValueError(f"block {header.number} has the hash {found}, the file says {stated}")
    return header


def _bytes(content: bytes, text: bytes) -> bytes:
    return bytes.fromhex(text[2:].decode("ascii")) if text.startswith(b"0x") else content


def _of_rlp(data: bytes) -> GivenHeaders:
    return GivenHeaders([_decoded(item.data) for item in read_items(io.BytesIO(data))])


def _decoded(item: bytes) -> Header:
    """A header; a block is a list whose first item is a list, and has one in it."""
    try:
        return decode_header(item)
    except Undecodable as why:
        try:
            return decode_block(item, 0)[0].header
        except Undecodable:
            raise why from None


# --- The import ----------------------------------------------------------------------------

STAGES: Final = {
    "read": "reading the dump",
    "root": "computing the root",
    "state": "storing the state",
    "nodes": "storing trie nodes",
}


def run_state_import(
    dump: Path,
    header: Path | None,
    genesis: Path | None,
    preset: str | None,
    data: Path,
    *,
    as_json: bool,
) -> None:
    """Import a dump and print the summary; failures end the program in one line."""
    if header is None:
        raise click.UsageError("--state requires --header, the header of its block.")
    if (genesis is None) == (preset is None):
        raise click.UsageError("--state requires the rules of its chain: --preset or --genesis.")
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress("import") as report:
            given = read_header_file(header)
            config = _config(genesis, preset)
            beginning = ImportStart(given.headers, given.total_difficulty, config)
            done = import_state(
                dump, beginning, data, lambda stage, *count: report(STAGES[stage], *count)
            )
    except KeyboardInterrupt:
        stop(f"interrupted; there is no store at {data}", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(done, time.monotonic() - begun))


def _config(genesis: Path | None, preset: str | None) -> bytes:
    if preset is not None:
        return config_of(find_chain(preset))
    assert genesis is not None, "one of both is given"
    return config_of_genesis(genesis.read_bytes())


def _summary_text(done: ImportedState, seconds: float) -> str:
    assert done.heads.latest is not None
    number, block_hash = done.heads.latest
    return "\n".join(
        [
            f"imported   {done.accounts} accounts, {done.slots} slots in {seconds:.2f} s",
            f"latest     {number} {format_data(block_hash)}",
        ]
    )


def _summary_json(done: ImportedState, seconds: float) -> str:
    assert done.heads.latest is not None
    number, block_hash = done.heads.latest
    return json.dumps(
        {
            "accounts": done.accounts,
            "slots": done.slots,
            "seconds": round(seconds, 3),
            "latest": {"number": number, "hash": format_data(block_hash)},
        }
    )
