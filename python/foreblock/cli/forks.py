"""`foreblock forks`: the fetched state of forks on disk. Also the fork of `foreblock dev`."""

import json
from pathlib import Path
from typing import Final

import click

from foreblock.cli.asking import date
from foreblock.cli.verb import argument, failing_in_one_line, json_option, option, size, verb
from foreblock.errors import BadSetting
from foreblock.fork.cache import CachedFork, cached_forks, folder_of
from foreblock.secret_urls import redact_urls
from foreblock.settings import ChainSettings, DevSettings, ForkPoint
from foreblock.types import decode_header

DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)


@verb()
@argument("chain", help="Chain id; all by default.", metavar="[CHAIN]", required=False, type=int)
@option("--remove", is_flag=True, help="Remove them.")
@option("--block", metavar="N", type=int, help="Only forks of the block with this number.")
@option(
    "--cache-path",
    metavar="DIRECTORY",
    type=DIRECTORY,
    help="Directory of the files, as fork_cache_path.  [default: ~/.cache/foreblock/forks]",
)
@json_option("Print a list of JSON objects.")
def forks(
    *, chain: int | None, remove: bool, block: int | None, cache_path: Path | None, as_json: bool
) -> None:
    """List or remove the state that forks have fetched.

    Each block that was forked has a file, which the next fork of it reads. A file may be removed
    while forks use it: they have read it already.
    """
    folder = folder_of("" if cache_path is None else str(cache_path))
    found = [
        each
        for each in cached_forks(folder)
        if chain in (None, each.chain_id) and block in (None, each.number)
    ]
    if remove:
        with failing_in_one_line():
            for each in found:
                each.path.unlink(missing_ok=True)
    if as_json:
        click.echo(json.dumps([_object(each) for each in found]))
        return
    for each in found:
        trust = "proven" if each.proven else "trusted"
        click.echo(
            f"chain {each.chain_id}, block {each.number} (0x{each.hash}…), {trust}:"
            f" {size(each.bytes)}, last used {date(int(each.used))}"
        )
    total = size(sum(each.bytes for each in found))
    done = "removed" if remove else "in"
    click.echo(f"{len(found)} files, {total}, {done} {folder}")


def _object(each: CachedFork) -> dict[str, object]:
    return {
        "chainId": each.chain_id,
        "block": each.number,
        "hash": f"0x{each.hash}",
        "proven": each.proven,
        "bytes": each.bytes,
        "used": int(each.used),
        "file": str(each.path),
    }


def chosen_fork(settings: DevSettings, folder: Path, *, keeps_id: bool) -> ForkPoint | None:
    """Return the block at which the main network forks another chain. Raises `ForeblockError`."""
    for name in ("genesis", "alloc"):
        if getattr(settings.chain, name):
            raise BadSetting(
                name, "not possible with a fork, which begins with the state of another chain"
            )
    if settings.replication.log:
        raise BadSetting("log", "not possible with a fork, whose state is not in a log")
    from foreblock.fork.forked_chain import fork_of  # noqa: PLC0415, it loads much

    return fork_of(settings.chain, folder, keeps_id=keeps_id)


def fork_line(chain: ChainSettings, fork: ForkPoint) -> str:
    """The line of output about a fork: its block, its source and its trust."""
    urls = chain.forking.state or ", ".join(map(redact_urls, chain.forking.url))
    trust = "proven" if fork.proven else "trusted: no proofs"
    number = decode_header(fork.header).number
    return f"  on block {number} of chain {fork.chain_id} from {urls}; its state is {trust}"
