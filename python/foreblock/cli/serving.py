"""`foreblock serve`: the service on one address, until it is told to stop."""

import sys

import click

from foreblock import service
from foreblock.cli.failure import INTERRUPTED, failing_in_one_line
from foreblock.cli.settings_options import Given, loaded, settings_options


@click.command()
@settings_options
def serve(given: Given) -> None:
    """Serve a store over JSON-RPC.

    Every setting is an option; docs/settings.md explains them. Stop with Ctrl-C or SIGTERM:
    what was accepted is answered first. A second Ctrl-C does not wait.
    """
    with failing_in_one_line():
        settings = loaded(given).settings
        if not settings.data:
            raise click.UsageError("--data is needed: the folder of a store")
        cut_short = service.run(settings, _say)
    if cut_short:
        sys.exit(INTERRUPTED)


def _say(address: str, workers: int) -> None:
    noun = "worker" if workers == 1 else "workers"
    click.echo(f"listening on http://{address} with {workers} {noun}")
