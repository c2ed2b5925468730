"""`foreblock follow`: follow a public chain without running a node."""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import click

from foreblock.chains.chain_file import FollowedChain, followed_chain, is_file
from foreblock.cli.config import PORT_OPTION, CommandLine, at_port, loaded, settings_options
from foreblock.cli.verb import INTERRUPTED, argument, failing_in_one_line, verb
from foreblock.secret_urls import redact_urls
from foreblock.service import launch
from foreblock.service.temporary import PREFIX, temporary_folder
from foreblock.settings import FollowingSettings, FollowSettings
from foreblock.settings.networks import (
    ANCHORS,
    NO_FEED,
    ONLY,
    Network,
    check_followed,
    check_kept,
)

# Defaults that differ from those of other commands.
DEFAULTS: Final[Mapping[str, str]] = {"keep_states": "900"}
# In the short help, in this order.
EVERYDAY: Final = (
    "upstream", "feed", "trust", "anchor", "data", "port", "beyond", "send", "keep_states",
    "workers", "config_file",
)  # fmt: skip
EXAMPLES: Final = (
    "foreblock follow unichain --upstream https://RPC/KEY",
    "foreblock follow op-mainnet --upstream https://RPC/KEY --data build/op",
    "foreblock follow genesis.json --upstream http://NODE --feed ws://HOST/ws",
)


@verb(everyday=EVERYDAY, examples=EXAMPLES)
@argument(
    "name",
    help="Name in `foreblock chains`, a chain file or a genesis.",
    metavar="[CHAIN]",
    required=False,
)
@settings_options(FollowingSettings, DEFAULTS)
@PORT_OPTION
def follow(given: CommandLine, *, name: str | None, port: int | None) -> None:
    """Follow a public chain without running a node.

    CHAIN is a name that `foreblock chains` lists, or a file: a chain file or a genesis. --upstream
    is an ordinary JSON-RPC endpoint of the chain; repeat it for several, the best first.
    `foreblock upstream check URL` shows the capabilities of an endpoint.

    The follower starts at the latest block with an empty state. It fetches requested state from
    the upstream, verifies it with Merkle proofs, and keeps it up to date by executing every block.
    With --feed, a flashblocks WebSocket or poll+https://HOST for a flashblocks-aware endpoint,
    `pending` grows with each flashblock; without a feed it is `latest`.

    Without --data the fetched state is removed at the end. Stop with Ctrl-C.

    Every option is also a setting in foreblock.toml and an environment variable, as in
    FOREBLOCK_UPSTREAM; docs/follow.md says what is trusted and what it costs.
    """
    with failing_in_one_line():
        settings = at_port(loaded(given, FollowingSettings, DEFAULTS), port)
        if name is not None:
            settings = replace(settings, follow=replace(settings.follow, chain=name))
        if not settings.follow.chain:
            raise click.UsageError("name a chain: `foreblock chains` lists them")
        if not settings.follow.upstream:
            raise click.UsageError("--upstream is needed: a JSON-RPC endpoint of the chain")
        chain = followed_chain(settings.follow.chain)
        with _folder(settings.service.data) as folder:
            served = _network(settings, folder)
            _print_sources(settings, chain)  # first, since the start may wait for them
            cut_short = launch.run(settings.service, [served], _print_started)
    if cut_short:
        sys.exit(INTERRUPTED)


@contextmanager
def _folder(data: str) -> Iterator[Path]:
    if data:
        yield Path(data)
    else:
        with temporary_folder(PREFIX + "follow-") as folder:
            yield folder / ONLY


def _network(settings: FollowingSettings, folder: Path) -> launch.ServedNetwork:
    follow = FollowSettings(**asdict(settings.follow), feed=settings.feed)
    if is_file(follow.chain):
        follow = replace(follow, chain=str(Path(follow.chain).absolute()))
    check_followed(follow)
    check_kept(settings.keep)
    network = Network(
        name=ONLY,
        data=str(folder),
        source="follow",
        keep=settings.keep,
        address_index=settings.address_index,
        store=settings.service.store,
        sync=bool(settings.service.data),  # a temporary store has nothing to lose
        dialect=settings.service.dialect,
        view=settings.service.view,
        follow=follow,
    )
    return launch.ServedNetwork(network, settings.service.listen, settings.feed_listen)


def _print_sources(settings: FollowingSettings, chain: FollowedChain) -> None:
    """Print the chain, its sources and their trust level."""
    follow = settings.follow
    feeds = [each for each in settings.feed or chain.feeds if each != NO_FEED]
    anchor = f"the {follow.anchor} block" if follow.anchor in ANCHORS else f"block {follow.anchor}"
    click.echo(f"{chain.title}, chain id {chain.profile.chain_id}, from {anchor} on")
    for url in follow.upstream:
        click.echo(f"  state from   {redact_urls(url)}")
    for url in feeds:
        click.echo(f"  flashblocks  {redact_urls(url)}")
    if not feeds:
        click.echo("  flashblocks  no feed: pending is the latest block")
    meaning = {
        "proven": "proven: state is used only after a Merkle proof verifies it",
        "audited": "audited: state is used at once and proven soon after",
        "trusted": "trusted: state is used without proof",
    }
    click.echo(f"  trust        {meaning[follow.trust]}")
    where = settings.service.data or "a temporary directory, removed at the end"
    click.echo(f"  data in      {where}")


def _print_started(started: launch.StartedService) -> None:
    """Print the addresses of the service."""
    address = started.addresses[0]
    noun = "worker" if started.workers == 1 else "workers"
    urls = ", ".join(f"http://{each}" for each in address.split(", "))
    click.echo(f"listening on {urls} with {started.workers} {noun}")
    if started.feeds[0]:
        click.echo(f"flashblocks republished at ws://{started.feeds[0]}/ws")
    click.echo("WebSocket: same address. Use /eth for tools that expect a standard node")
    first = address.split(", ")[0]
    click.echo(f"status: http://{first}/readyz?verbose and `foreblock watch`")
    if started.metrics:
        click.echo(f"metrics at http://{started.metrics}/metrics")
    click.echo("Ctrl-C stops it")
