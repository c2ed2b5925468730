"""`foreblock chains`: the known public chains and their properties."""

import json
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from foreblock.chains.chain_file import ChainFacts, find_chain, names, preset
from foreblock.cli.asking import date
from foreblock.cli.verb import argument, failing_in_one_line, json_option, verb

_NOTHING: Final = "-"


@verb()
@argument(
    "chain", help="Name or file of one chain; all by default.", metavar="[CHAIN]", required=False
)
@json_option("Print one JSON object, or a list of them.")
def chains(*, chain: str | None, as_json: bool) -> None:
    """List the public chains that can be followed by name.

    With CHAIN, a name or a file, show its known and unknown properties. A file is checked like the
    built-in chains.
    """
    with failing_in_one_line():
        found = [preset(name) for name in names()] if chain is None else [find_chain(chain)]
    if as_json:
        objects = [msgspec.to_builtins(each) for each in found]
        click.echo(json.dumps(objects if chain is None else objects[0]))
        return
    Console(highlight=False).print(_listed(found) if chain is None else _shown(found[0]))


def _listed(found: list[ChainFacts]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("Name", "Chain", "Id", "Block", "Flashblocks", "Newest fork"):
        table.add_column(
            heading,
            justify="right" if heading in ("Id", "Block") else "left",
            no_wrap=heading == "Name",
            min_width=max(map(len, names())) if heading == "Name" else None,
        )
    for chain in found:
        fork, _ = chain.forks.begun()[-1]
        table.add_row(
            chain.name,
            chain.title,
            str(chain.chain_id),
            f"{chain.block_time:g} s",
            _flashblocks(chain),
            fork.title(),
        )
    return table


def _flashblocks(chain: ChainFacts) -> str:
    announced = chain.flashblocks
    if announced is None:
        return _NOTHING
    return f"{announced.interval_ms} ms" + (", public feed" if announced.feeds else "")


def _shown(chain: ChainFacts) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        ("chain", f"{chain.title}, id {chain.chain_id}, on L1 {chain.l1_chain_id}"),
        ("block time", f"{chain.block_time:g} s"),
        ("flashblocks", _flashblocks(chain)),
        *(("feed", each) for each in (chain.flashblocks.feeds if chain.flashblocks else ())),
        ("first block", f"{chain.genesis.number} {chain.genesis.hash}"),
        *_forks(chain),
        *((f"{fork} (not executed)", date(time)) for fork, time in chain.unsupported.items()),
        ("base fee", _fees(chain)),
        *((f"public {name}", url) for name, url in _endpoints(chain)),
        ("source", chain.source),
        *(("source", each) for each in (chain.flashblocks.sources if chain.flashblocks else ())),
        *(("not known", each) for each in chain.unknown),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _forks(chain: ChainFacts) -> list[tuple[str, str]]:
    begun = [(name, time) for name, time in chain.forks.begun() if name != "regolith"]
    return [(name, date(time) if time else "from the first block on") for name, time in begun]


def _fees(chain: ChainFacts) -> str:
    fees = chain.fees
    before = f"elasticity {fees.elasticity}, denominator {fees.denominator}"
    return f"{before}, {fees.denominator_canyon} from Canyon on"


def _endpoints(chain: ChainFacts) -> list[tuple[str, str]]:
    if chain.endpoints is None:
        return []
    both = (("rpc", chain.endpoints.rpc), ("sequencer", chain.endpoints.sequencer))
    return [(name, url) for name, url in both if url is not None]
