"""`foreblock serve`: the service on one address, until it is told to stop."""

import sys

import click

from foreblock import service
from foreblock.cli.failure import INTERRUPTED, failing_in_one_line
from foreblock.cli.settings_options import Given, loaded, settings_options
from foreblock.network import Network
from foreblock.settings import Settings


@click.command()
@settings_options()
def serve(given: Given) -> None:
    """Serve a store over JSON-RPC.

    Every setting is an option; docs/settings.md explains them. Stop with Ctrl-C or SIGTERM:
    what was accepted is answered first. A second Ctrl-C does not wait.
    """
    with failing_in_one_line():
        settings = loaded(given, Settings).settings
        if not settings.data:
            raise click.UsageError("--data is needed: the folder of a store")
        network = Network(name="main", data=settings.data, source="store")
        places = [service.Place(network, settings.listen)]
        cut_short = service.run(settings, places, _say)
    if cut_short:
        sys.exit(INTERRUPTED)


def _say(started: service.Started) -> None:
    noun = "worker" if started.workers == 1 else "workers"
    (address,) = started.addresses
    click.echo(f"listening on http://{address} with {started.workers} {noun}")
