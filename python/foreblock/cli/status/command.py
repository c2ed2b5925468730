"""`foreblock status`: what a running instance is, does and lacks."""

import json
import sys
from typing import Final

import click
from rich.console import Console

from foreblock.cli.status.reading import NetworkStatus, Status, read_status
from foreblock.cli.status.screen import screen
from foreblock.cli.verb import json_option, stop, verb
from foreblock.cli.watch.connection import SeenBlock
from foreblock.errors import ForeblockError
from foreblock.upstream.rpc_client import DEFAULT_URL

NOT_READY: Final = 1
NOT_REACHABLE: Final = 2


@verb()
@click.argument("url", metavar="[URL]", envvar="FOREBLOCK_URL", default=DEFAULT_URL)
@json_option("Print one JSON object.")
def status(*, url: str, as_json: bool) -> None:
    """Show what a running instance is, does and lacks.

    That is: version, uptime, each network with its blocks, source, store and what is kept, and
    the memory of each process. Of another server it shows what that says.

    Exit code 0: ready. 1: not ready. 2: not reachable.
    """
    try:
        found = read_status(url)
    except (ForeblockError, OSError) as failure:
        stop(str(failure), NOT_REACHABLE)
    if as_json:
        click.echo(json.dumps(as_object(found)))
    else:
        Console(highlight=False).print(screen(found))
    sys.exit(0 if found.is_ready else NOT_READY)


def as_object(found: Status) -> dict[str, object]:
    """All of it as JSON has it."""
    uptime = found.uptime
    return {
        "url": found.url,
        "client": found.client,
        "version": found.version,
        "uptime_seconds": None if uptime is None else round(uptime, 1),
        "ready": found.is_ready,
        "networks": [_network(each, found) for each in found.networks],
        "processes": [
            {
                "name": labels.get("process"),
                "resident_bytes": int(value),
                "cpu_seconds": found.samples.value("foreblock_process_cpu_seconds_total", **labels),
            }
            for labels, value in found.samples.of("foreblock_process_resident_memory_bytes")
        ],
    }


def _network(network: NetworkStatus, found: Status) -> dict[str, object]:
    def sample(name: str) -> int | None:
        value = found.samples.value(f"foreblock_{name}", network=network.name)
        return None if value is None else int(value)

    return {
        "name": network.name or None,
        "url": network.url,
        "ready": network.ready,
        "problems": network.problems(),
        "chain_id": network.chain_id,
        "source": network.source,
        "commit": network.commit,
        "latest": _block(network.latest, found.at),
        "pending": network.pending
        and {
            "number": network.pending.number,
            "hash": network.pending.hash,
            "flashblock": network.flashblock,
            "age_seconds": found.pending_age(network),
            "transactions": network.pending.transactions,
        },
        "oldest_state": network.oldest_state,
        "feeds": list(network.facts.get("feed", ())),
        "canonical": list(network.facts.get("canonical", ())),
        "pool_transactions": sample("pool_transactions"),
        "subscriptions": sample("subscriptions"),
        "store": {
            "file_bytes": sample("store_file_bytes"),
            "free_bytes": sample("store_free_bytes"),
            "disk_free_bytes": sample("disk_free_bytes"),
        },
        "peers": network.peers,
        "facts": {name: list(lines) for name, lines in network.facts.items()},
    }


def _block(block: SeenBlock | None, at: float) -> dict[str, object] | None:
    if block is None:
        return None
    return {
        "number": block.number,
        "hash": block.hash,
        "age_seconds": round(at - block.timestamp, 1),
        "transactions": block.transactions,
    }
