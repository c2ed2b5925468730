"""The command line: one module for each verb, with shared code in `verb` and `asking`.

A verb is imported when it is used, so a command that serves does not load those that measure.
"""

import click

from foreblock.cli.verb import VerbGroup

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 120,
    "show_default": True,
}


@click.group(cls=VerbGroup, context_settings=CONTEXT)
@click.version_option(package_name="foreblock", message="foreblock %(version)s")
def main() -> None:
    """Serve an Ethereum-style layer-2 chain with a real pending block.

    `foreblock dev` runs two local chains with flashblocks. `foreblock follow` follows a public
    chain without running a node. `foreblock serve` serves a chain from a store or follows a
    flashblocks feed. `foreblock VERB --help` explains a verb.
    """


main.add_section(
    "Run a network",
    {
        "dev": "dev",
        "follow": "follow",
        "serve": "serve",
        "watch": "watch",
        "status": "status",
        "config": "config",
        "log": "log",
        "cluster": "cluster",
        "chains": "chains",
        "forks": "forks",
    },
)
main.add_section(
    "Query an endpoint",
    {
        "block": "read",
        "balance": "read",
        "call": "read",
        "simulate": "simulate",
        "send": "send",
        "rpc": "read",
        "upstream": "upstream",
    },
)
main.add_section(
    "Stores and feeds",
    {
        "import": "import_",
        "store": "store",
        "record": "record",
        "replay": "record",
    },
)
main.add_section(
    "Measure and verify",
    {"bench": "bench", "conformance": "conformance", "execute": "execute"},
)
main.add_section("Set up", {"completion": "config"})
