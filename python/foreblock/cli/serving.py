"""`foreblock serve`: the service on one address, until it is told to stop."""

import sys
from pathlib import Path

import click

from foreblock import service
from foreblock.cli.failure import INTERRUPTED, failing_in_one_line
from foreblock.cli.settings_options import Given, loaded, settings_options
from foreblock.client import Endpoint
from foreblock.feed.target import check_url
from foreblock.network import FeedChain, Network
from foreblock.settings import ServeSettings


@click.command()
@settings_options(ServeSettings)
def serve(given: Given) -> None:
    """Serve a chain over JSON-RPC: one that was imported, or one that a feed announces.

    With --source feed, --genesis FILE and --feed URL the chain is made from flashblocks of
    others as they come; --canonical URL is where it fetches what they do not tell. --feed may
    be repeated.

    Every setting is an option; docs/settings.md explains them. Stop with Ctrl-C or SIGTERM:
    what was accepted is answered first. A second Ctrl-C does not wait.
    """
    with failing_in_one_line():
        settings = loaded(given, ServeSettings).settings
        place = _place(settings)
        cut_short = service.run(settings.service, [place], _say)
    if cut_short:
        sys.exit(INTERRUPTED)


def _place(settings: ServeSettings) -> service.Place:
    data, chain = settings.service.data, settings.chain
    if not data:
        raise click.UsageError("--data is needed: the folder of a store")
    if chain.source == "store":
        network = Network(name="main", data=data, source="store")
        return service.Place(network, settings.service.listen)
    if not settings.genesis or not chain.feed:
        raise click.UsageError("--source feed needs --genesis FILE and --feed URL")
    for url in chain.feed:
        check_url(url)
    if chain.canonical:
        Endpoint(chain.canonical).close()  # refuses what is no URL
    feed = FeedChain(
        genesis=str(Path(settings.genesis).absolute()),
        feeds=list(chain.feed),
        canonical=chain.canonical,
    )
    network = Network(name="main", data=data, source="feed", feed=feed)
    return service.Place(network, settings.service.listen, settings.feed_listen)


def _say(started: service.Started) -> None:
    noun = "worker" if started.workers == 1 else "workers"
    (address,) = started.addresses
    click.echo(f"listening on http://{address} with {started.workers} {noun}")
    for feed in filter(None, started.feeds):
        click.echo(f"flashblocks at ws://{feed}/ws")
