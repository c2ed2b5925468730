"""`foreblock forks`: the fetched state of forks on disk.

Also the fork or the mirror of `foreblock dev`.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from foreblock.chains.chain_file import FollowedChain, find_chain, followed_chain, is_file
from foreblock.cli.asking import date
from foreblock.cli.verb import argument, failing_in_one_line, json_option, option, size, verb
from foreblock.errors import BadSetting
from foreblock.fork.cache import CachedFork, cached_forks, folder_of
from foreblock.secret_urls import redact_urls
from foreblock.settings import ChainSettings, DevSettings, FollowSettings, ForkPoint, ForkSettings
from foreblock.settings.networks import check_followed
from foreblock.types import decode_header

UNLIMITED: Final = 1e9
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


def chosen_mirror(settings: DevSettings) -> tuple[FollowSettings, FollowedChain]:
    """The chain that the main network mirrors, and how it is followed.

    Raises `ForeblockError`.
    """
    _check_mirror(settings)
    chain, forking = settings.chain, settings.chain.forking
    name, upstream = chain.mirror, forking.url
    if name.startswith(("http://", "https://")):
        upstream = (name, *upstream)
        name = _known_name(replace(forking, url=upstream))
    elif is_file(name):
        name = str(Path(name).absolute())
    elif not upstream:
        endpoints = find_chain(name).endpoints
        upstream = () if endpoints is None else (endpoints.rpc,)
    if not upstream:
        raise BadSetting("fork_url", f"an endpoint of {chain.mirror} is needed")
    follow = FollowSettings(
        chain=name,
        upstream=upstream,
        feed=chain.mirror_feed,
        trust="trusted" if forking.proofs == "off" else "proven",
        trust_fallback=forking.proofs == "auto",
        upstream_units=forking.units if forking.rate_limit else UNLIMITED,
        beyond="pass",
    )
    check_followed(follow)
    found = followed_chain(name)
    if found.profile.optimism is None:
        raise BadSetting("mirror", f"{found.title} is not an OP chain")
    return follow, found


def _check_mirror(settings: DevSettings) -> None:
    """Refuse settings that contradict a mirror. Raises `BadSetting`."""
    chain, forking = settings.chain, settings.chain.forking
    for name in ("genesis", "alloc", "faults", "base_time", "one_process"):
        if getattr(chain, name):
            raise BadSetting(name, "a mirror has the blocks of another chain: mirror is set")
    for name in ("header", "record", "state", "transaction_hash"):
        if getattr(forking, name):
            raise BadSetting(f"fork_{name}", "it is for a fork of one block: mirror is set")
    if forking.block_number != ForkSettings().block_number:
        raise BadSetting("fork_block_number", "a mirror begins at the latest block: mirror is set")
    if settings.replication.log or settings.service.view == "sealed":
        name = "log" if settings.replication.log else "view"
        raise BadSetting(name, "a mirror has no log, and shows pending blocks: mirror is set")


def _known_name(forking: ForkSettings) -> str:
    """The name of the chain of an endpoint. Raises `ForeblockError`."""
    from foreblock.fork.chain_rules import known_chain  # noqa: PLC0415, it loads much
    from foreblock.fork.choosing import chain_id_of  # noqa: PLC0415

    chain_id = chain_id_of(forking)
    facts = known_chain(chain_id)
    if facts is None:
        why = f"chain {chain_id} is not in `foreblock chains`: name a chain file, and fork_url"
        raise BadSetting("mirror", why)
    return facts.name


def mirror_line(follow: FollowSettings) -> str:
    """The chain that is mirrored, and from where."""
    return f"  mirrors {follow.chain} from {', '.join(map(redact_urls, follow.upstream))}"


def fork_line(chain: ChainSettings, fork: ForkPoint) -> str:
    """The line of output about a fork: its block, its source and its trust."""
    urls = chain.forking.state or ", ".join(map(redact_urls, chain.forking.url))
    trust = "proven" if fork.proven else "trusted: no proofs"
    number = decode_header(fork.header).number
    return f"  on block {number} of chain {fork.chain_id} from {urls}; its state is {trust}"
