"""`foreblock upstream check`: the capabilities of an endpoint for a follower of its chain."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Final

import click
from msgspec import Raw
from rich.console import Console
from rich.table import Table

from foreblock.chains.chain_file import ChainFacts, find_chain, names, preset
from foreblock.cli.verb import (
    VerbGroup,
    argument,
    failing_in_one_line,
    json_option,
    option,
    stop,
    verb,
)
from foreblock.clock import SystemClock
from foreblock.errors import RefusedAnswer
from foreblock.follow.capabilities import PROOF_DEPTHS, Capabilities
from foreblock.follow.requests import BlockForm
from foreblock.follow.responses import read_header
from foreblock.follow.state_upstream import StateUpstream
from foreblock.primitives import format_data, format_quantity
from foreblock.secret_urls import redact_urls
from foreblock.service.log_output import configure
from foreblock.upstream.budget import Purpose, UnitBudget, Urgency, default_units, split_units
from foreblock.upstream.endpoint import PROBE_SECONDS

NOT_PROVEN: Final = 1
NOT_REACHABLE: Final = 2


@click.group(cls=VerbGroup)
def upstream() -> None:
    """Check endpoints that a followed chain can be read from."""


upstream.add_section("Commands", {"check": "upstream"})


@dataclass(frozen=True, slots=True)
class CheckedEndpoint:
    """An endpoint and its capabilities."""

    url: str  # without its secrets
    can: Capabilities
    latency: float  # seconds, the median
    requests: int
    problems: tuple[str, ...]

    @property
    def trust(self) -> str | None:
        """The level of trust at which it can be used; None if it cannot."""
        if not self.can.can_serve:
            return None
        return "proven" if self.can.can_prove else "trusted"

    @property
    def code(self) -> int:
        return 0 if self.trust == "proven" and not self.problems else NOT_PROVEN


@verb("check", examples=["foreblock upstream check https://RPC/KEY --chain base"])
@argument(
    "url", help="JSON-RPC endpoint; ?units=500 sets the units to spend per second.", metavar="URL"
)
@option("--chain", metavar="CHAIN", help="Name or file of the chain that the endpoint must serve.")
@json_option("Print one JSON object.")
def check(*, url: str, chain: str | None, as_json: bool) -> None:
    """Check the capabilities of an endpoint with about thirty requests.

    Shows how the endpoint names blocks, how far back it proves state, whether calls may override
    code, and the size of batches. `?units=500` at the end of the URL sets how many units are
    spent per second; a request costs about 20.

    Exit code 0: state can be proven. 1: it cannot, or the chain differs. 2: not reachable.
    """
    configure("warning")
    with failing_in_one_line():
        expected = None if chain is None else find_chain(chain)
        address, units = split_units(url)
        try:
            found = asyncio.run(_check(address, units or default_units(address), expected))
        except RefusedAnswer as refused:
            stop(f"{redact_urls(address)}: {refused}", NOT_REACHABLE)
    if as_json:
        click.echo(json.dumps(as_object(found)))
    else:
        Console(highlight=False).print(_table(found))
    sys.exit(found.code)


async def _check(url: str, units: float, chain: ChainFacts | None) -> CheckedEndpoint:
    endpoint = StateUpstream(url, SystemClock(), UnitBudget(units, reserve=0.0))
    try:
        can = await endpoint.probe(whole=True)
        problems = [] if chain is None else await _problems(endpoint, can, chain)
        latency = endpoint.durations.quantile(0.5) or 0.0
        return CheckedEndpoint(endpoint.shown, can, latency, endpoint.requests, tuple(problems))
    finally:
        endpoint.close()


async def _problems(endpoint: StateUpstream, can: Capabilities, chain: ChainFacts) -> list[str]:
    """Differences from the chain: its id, its first block."""
    if can.chain_id != chain.chain_id:
        return [f"its chain id is {can.chain_id}; {chain.name} has {chain.chain_id}"]
    number = chain.genesis.number
    call = ("eth_getBlockByNumber", [format_quantity(number), False])
    until = endpoint.now + PROBE_SECONDS
    said = (await endpoint.ask([call], Urgency(Purpose.CLIENT), until))[1]
    try:
        if not isinstance(said, Raw):
            raise said
        found = read_header(number, said).hash
    except RefusedAnswer as refused:
        return [f"its first block is not available: {refused}"]
    if found != chain.genesis_hash:
        return [f"its block {number} is {format_data(found)}, not {chain.genesis.hash}"]
    return []


def as_object(found: CheckedEndpoint) -> dict[str, object]:
    can = found.can
    return {
        "url": found.url,
        "client": can.client,
        "chain_id": can.chain_id,
        "chain": _name(can.chain_id),
        "latest": {"number": can.latest.number, "hash": format_data(can.latest.hash)},
        "latency_seconds": round(found.latency, 4),
        "requests": found.requests,
        "block_forms": [form.value for form in can.forms],
        "proof_depth": can.proof_depth,
        "overrides": can.overrides,
        "storage_values": can.storage_values,
        "batch": can.batch,
        "execution_witness": can.witness,
        "trust": found.trust,
        "problems": list(found.problems),
        "reasons": can.reasons,
    }


def _name(chain_id: int) -> str | None:
    return next((name for name in names() if preset(name).chain_id == chain_id), None)


def _table(found: CheckedEndpoint) -> Table:
    can, reasons = found.can, found.can.reasons
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    hashes = [form for form in can.forms if form is not BlockForm.NUMBER]
    rows = [
        ("endpoint", found.url),
        ("client", can.client or "unknown"),
        ("chain", f"{can.chain_id} ({_name(can.chain_id) or 'no preset'})"),
        ("latest block", f"{can.latest.number} {format_data(can.latest.hash)}"),
        ("latency", f"{1000 * found.latency:.1f} ms, median of {found.requests} requests"),
        ("blocks by hash", ", ".join(hashes) or _no(reasons.get(BlockForm.HASH.value, ""))),
        ("blocks by number", _yes(BlockForm.NUMBER in can.forms, reasons, BlockForm.NUMBER.value)),
        ("proofs", _proofs(can)),
        ("code overrides", _yes(can.overrides, reasons, "overrides")),
        ("eth_getStorageValues", _yes(can.storage_values, reasons, "eth_getStorageValues")),
        ("batches", f"up to {can.batch}" if can.batch > 1 else _no(reasons.get("batch of 2", ""))),
        ("debug_executionWitness", _yes(can.witness, reasons, "debug_executionWitness")),
        ("trust", found.trust or "none: it does not accept any known block parameter"),
        *(("problem", each) for each in found.problems),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _yes(can: bool, reasons: dict[str, str], name: str) -> str:  # noqa: FBT001
    return "yes" if can else _no(reasons.get(name, ""))


def _no(why: str) -> str:
    return f"no ({why})" if why else "no"


def _proofs(can: Capabilities) -> str:
    if can.proof_depth is None:
        return _no(can.reasons.get("eth_getProof", ""))
    if can.proof_depth == 0:
        return "of the latest block only"
    tried = max(PROOF_DEPTHS)
    more = ", the furthest tried" if can.proof_depth == tried else " at least"
    return f"{can.proof_depth} blocks back{more}"
