"""The command line: one module per verb, and here what all verbs share.

Every failure that foreblock raises on purpose ends as one line on standard error and
exit code 1. Nothing else is caught: a traceback is a defect to be reported.
"""

import click

from foreblock.cli.benching import bench
from foreblock.cli.importing import import_


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="foreblock", message="foreblock %(version)s")
def main() -> None:
    """Serve an Ethereum-style layer-2 chain whose pending block is real.

    Today foreblock executes and verifies chains and keeps every state of them; the
    JSON-RPC service is to come.
    """


main.add_command(bench)
main.add_command(import_)
