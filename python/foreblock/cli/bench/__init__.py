"""`foreblock bench`: measurements, one module for each."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def bench() -> None:
    """Measure foreblock on this machine."""


bench.add_section(
    "Commands", {"engine": "bench.engine", "preconf": "bench.preconf", "rpc": "bench.rpc"}
)
