"""`foreblock store info`: what a store holds and how large it is."""

import json
import time
from pathlib import Path
from typing import Final

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from foreblock.cli.asking import date
from foreblock.cli.verb import STORE, argument, failing_in_one_line, json_option, size, verb
from foreblock.ledger.storage.inspect_store import StoreInfo, read_store_info
from foreblock.primitives import format_data

# The content of each table.
HOLDS: Final = {
    "meta": "heads, list of tables",
    "flat": "accounts, slots, index rows",
    "deltas": "kept changes of blocks",
    "codes": "codes",
    "sealed": "sealed blocks",
    "partials": "flashblocks",
    "nodes": "trie nodes",
    "node_changes": "trie nodes by block",
    "trash": "items to clear",
    "rows": "blocks, receipts, logs",
}


@verb("info")
@argument("data", help="Store to read.", metavar="DIR", type=STORE)
@json_option("Print one JSON object.")
def info(*, data: Path, as_json: bool) -> None:
    """Show what a store holds, what it keeps, and the size of each table.

    The store may be in use; nothing of it is changed.
    """
    with failing_in_one_line():
        found = read_store_info(data)
    if as_json:
        click.echo(json.dumps(as_object(found)))
        return
    Console(highlight=False).print(Group(_facts(found), Text(), _tables(found)))


def as_object(found: StoreInfo) -> dict[str, object]:
    """All facts as JSON has them."""
    heads = found.heads
    return {
        "path": found.path,
        "format": heads.format,
        "store_id": heads.store_id.hex(),
        "chain_id": found.profile and found.profile.chain_id,
        "genesis": found.genesis and format_data(found.genesis),
        "rules": found.profile and _rules(found),
        "commit": heads.commit,
        "latest": _head(heads.latest),
        "safe": _head(heads.safe),
        "finalized": _head(heads.finalized),
        "pending": found.pending and {"block": found.pending[0], "flashblock": found.pending[1]},
        "latest_timestamp": found.latest_time,
        "kept": {
            "states_from": heads.earliest,
            "trie_nodes_from": None if heads.nodes is None else heads.nodes_earliest,
            "flashblocks_from": found.oldest_partial,
        },
        "folded": heads.folded,
        "trie_nodes": heads.nodes,
        "indexed_logs": found.indexed_logs,
        "file_bytes": found.file_bytes,
        "page_bytes": found.page_bytes,
        "pages": found.pages,
        "free_pages": found.free_pages,
        "disk_free_bytes": found.disk_free_bytes,
        "written": found.is_written,
        "tables": [
            {
                "name": each.name,
                "rows": each.rows,
                "pages": each.pages,
                "bytes": each.pages * found.page_bytes,
                "depth": each.depth,
            }
            for each in found.tables
        ],
    }


def _head(head: tuple[int, bytes] | None) -> dict[str, object] | None:
    return None if head is None else {"number": head[0], "hash": format_data(head[1])}


def _rules(found: StoreInfo) -> str:
    return "optimism" if found.profile and found.profile.optimism is not None else "ethereum"


def _facts(found: StoreInfo) -> Table:
    """Two columns: names and values."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    heads, latest = found.heads, found.heads.latest
    in_use = ", being written" if found.is_written else ""
    grid.add_row("store", f"{found.path}, format {heads.format}{in_use}")
    if found.profile is not None and found.genesis is not None:
        grid.add_row("chain", f"id {found.profile.chain_id}, rules of {_rules(found)}")
        grid.add_row("genesis", format_data(found.genesis))
    if latest is None or found.latest_time is None:
        grid.add_row("latest", "no block")
    else:
        age = max(0, int(time.time()) - found.latest_time)
        grid.add_row("latest", f"{latest[0]} {format_data(latest[1])}")
        grid.add_row("", f"{date(found.latest_time)}, {_age(age)} ago")
    for name, head in (("safe", heads.safe), ("finalized", heads.finalized)):
        if head is not None:
            grid.add_row(name, f"{head[0]} {format_data(head[1])}")
    if found.pending is not None:
        grid.add_row("pending", f"{found.pending[0]}.{found.pending[1]}")
    grid.add_row("commit", f"{heads.commit}")
    grid.add_row("kept", ", ".join(_kept(found)))
    grid.add_row("behind", ", ".join(_behind(found)) or "nothing")
    free = size(found.free_pages * found.page_bytes)
    pages = f"{found.pages} pages, {found.free_pages} of them free ({free})"
    grid.add_row("file", f"{size(found.file_bytes)}, {pages}")
    grid.add_row("disk", f"{size(found.disk_free_bytes)} free")
    return grid


def _kept(found: StoreInfo) -> list[str]:
    heads = found.heads
    kept = [f"states from block {heads.earliest}"]
    if heads.nodes is not None:
        kept.append(f"trie nodes from {heads.nodes_earliest}")
    if found.oldest_partial is not None:
        kept.append(f"flashblocks from {found.oldest_partial}")
    return kept


def _behind(found: StoreInfo) -> list[str]:
    """Work that follows behind the latest block."""
    heads = found.heads
    if heads.latest is None:
        return []
    top = heads.latest[0]
    work = {
        "to fold": top - heads.folded,
        "without trie nodes": top - (-1 if heads.nodes is None else heads.nodes),
        "not in the index of logs": top + 1 - found.indexed_logs,
    }
    return [f"{count} blocks {what}" for what, count in work.items() if count > 0]


def _tables(found: StoreInfo) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("table", no_wrap=True)
    for heading in ("rows", "pages", "size", "%"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("holds", style="dim", no_wrap=True)
    used = sum(each.pages for each in found.tables) or 1
    for each in sorted(found.tables, key=lambda each: -each.pages):
        share = f"{100 * each.pages / used:.0f}"
        length = size(each.pages * found.page_bytes)
        holds = HOLDS.get(each.name, "")
        table.add_row(each.name, f"{each.rows:,}", f"{each.pages:,}", length, share, holds)
    return table


def _age(seconds: int) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
