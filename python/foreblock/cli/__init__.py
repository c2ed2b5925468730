"""The command line: one module per verb, and here what all verbs share.

Every failure that foreblock raises on purpose ends as one line on standard error and
exit code 1. Nothing else is caught: a traceback is a defect to be reported.
"""

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
from foreblock.cli.watch import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="foreblock", message="foreblock %(version)s")
def main() -> None:
    """Serve an Ethereum-style layer-2 chain whose pending block is real.

    `foreblock dev` runs two local chains with flashblocks; `foreblock serve` serves a chain
    that was imported.
    """


bench.add_command(bench_rpc)
bench.add_command(preconf)
main.add_command(bench)
VERBS = (
    balance, block, call, config, conformance, copy, dev, import_, record, replay, rpc, send, serve,
    simulate, watch,
)  # fmt: skip
for verb in VERBS:
    main.add_command(verb)
