"""The command line: one module for each verb. What verbs share is in `verb` and `asking`."""

import click

from foreblock.cli.bench import bench
from foreblock.cli.bench_preconf import preconf
from foreblock.cli.bench_rpc import rpc as bench_rpc
from foreblock.cli.config import config
from foreblock.cli.conformance import conformance
from foreblock.cli.copy import copy
from foreblock.cli.dev import dev
from foreblock.cli.import_ import import_
from foreblock.cli.read import balance, block, call, rpc
from foreblock.cli.record import record, replay
from foreblock.cli.send import send
from foreblock.cli.serve import serve
from foreblock.cli.simulate import simulate
from foreblock.cli.verb import VerbGroup
from foreblock.cli.watch import watch

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 120,
    "show_default": True,
}


@click.group(cls=VerbGroup, context_settings=CONTEXT)
@click.version_option(package_name="foreblock", message="foreblock %(version)s")
def main() -> None:
    """Serve an Ethereum-style layer-2 chain whose pending block is real.

    `foreblock dev` runs two local chains with flashblocks. `foreblock serve` serves a chain from
    a store or follows a flashblocks feed. `foreblock VERB --help` explains a verb.
    """


bench.add_command(bench_rpc)
bench.add_command(preconf)
main.add_section("Run a network", dev, serve, watch, config)
main.add_section("Ask an endpoint", block, balance, call, simulate, send, rpc)
main.add_section("Stores and feeds", import_, copy, record, replay)
main.add_section("Measure and verify", bench, conformance)
