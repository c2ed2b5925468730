"""`foreblock store check`: recompute everything in a store.

A child process does it: LMDB maps the file into memory, and the system kills a process that reads
beyond the end of a file or follows an invalid page.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final, NoReturn

import click

from foreblock.cli.progress import progress
from foreblock.cli.verb import (
    INTERRUPTED,
    STORE,
    argument,
    failing_in_one_line,
    json_option,
    stop,
    verb,
)
from foreblock.errors import StoreDamaged
from foreblock.ledger.checking.block_check import Damage, OnDamage, Report
from foreblock.ledger.checking.check_store import Checked, check_store

# Signals that kill a process that reads a damaged file as memory.
KILLED_BY_FILE: Final = (signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT)
SIGNALLED: Final = 128  # plus the number of the signal, as a shell reports it
# Names of the parts in the progress.
PARTS: Final = {
    "blocks": "blocks, receipts, senders",
    "index": "indices",
    "heads": "heads",
    "codes": "codes",
    "entries": "entries of state",
    "changes": "kept changes",
    "nodes": "trie nodes",
    "state": "state root",
    "history": "roots of kept states",
    "flashblocks": "flashblocks",
}


@verb("check", examples=["foreblock store check build/store"])
@argument("data", help="Store to check.", metavar="DIR", type=STORE)
@json_option("Print one JSON object.")
def check(*, data: Path, as_json: bool) -> None:
    """Check a store by recomputing everything in it.

    Checks hashes and links of headers, roots of transactions, receipts and states, bloom filters,
    senders, codes, trie nodes, kept changes, and indices. The store may be in use: one commit is
    checked while commits continue.

    Prints one line for each damage; the exit code is 1 if there is any.
    """
    begun = time.monotonic()
    if (child := os.fork()) != 0:
        _end_as(child, as_json=as_json, begun=begun)
    found: list[Damage] = []

    def on_damage(damage: Damage) -> None:
        found.append(damage)
        if not as_json:
            click.echo(line(damage))

    def report(part: str, done: int, total: int) -> None:
        # The number of some things is an estimate.
        show(PARTS.get(part, part), min(done, total), total)

    try:
        with failing_in_one_line(), progress("store check") as show:
            checked = _checked(str(data), on_damage, report)
    except KeyboardInterrupt:
        stop("interrupted", INTERRUPTED)
    _finish(checked, found, time.monotonic() - begun, as_json=as_json)


def _end_as(child: int, *, as_json: bool, begun: float) -> NoReturn:
    """Wait for the child and exit as it does; report why if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child handles it
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -code not in KILLED_BY_FILE:
        sys.exit(code if code >= 0 else SIGNALLED - code)
    why = f"reading ended with {signal.Signals(-code).name}: the file is cut short or unreadable"
    damage = Damage("store", b"", why)
    if not as_json:
        click.echo(line(damage))
    _finish(None, [damage], time.monotonic() - begun, as_json=as_json)


def _finish(
    checked: Checked | None, found: list[Damage], seconds: float, *, as_json: bool
) -> NoReturn:
    if as_json:
        click.echo(json.dumps(_json(checked, found, seconds)))
    else:
        click.echo(_summary(checked, found, seconds))
    sys.exit(1 if found else 0)


def line(damage: Damage) -> str:
    """A damage as one line: table, key and reason."""
    key = f" 0x{damage.key.hex()}" if damage.key else ""
    return f"{damage.table}{key}: {damage.why}"


def _checked(path: str, on_damage: OnDamage, report: Report) -> Checked | None:
    try:
        return check_store(path, on_damage, report)
    except StoreDamaged as why:
        on_damage(Damage("store", b"", str(why)))
        return None


def _summary(checked: Checked | None, found: list[Damage], seconds: float) -> str:
    damages = {0: "no damage", 1: "1 damage"}.get(len(found), f"{len(found)} damages")
    if checked is None:
        return f"{damages}; the store cannot be read"
    latest = checked.heads.latest
    place = "no block" if latest is None else f"latest {latest[0]}"
    return (
        f"{damages} in {checked.blocks} blocks and {checked.transactions} transactions,"
        f" commit {checked.heads.commit}, {place}, {seconds:.2f} s"
    )


def _json(checked: Checked | None, found: list[Damage], seconds: float) -> dict[str, object]:
    latest = None if checked is None else checked.heads.latest
    return {
        "damages": [
            {"table": each.table, "key": f"0x{each.key.hex()}", "why": each.why} for each in found
        ],
        "blocks": checked and checked.blocks,
        "transactions": checked and checked.transactions,
        "commit": checked and checked.heads.commit,
        "latest": latest and {"number": latest[0], "hash": f"0x{latest[1].hex()}"},
        "seconds": round(seconds, 3),
    }
