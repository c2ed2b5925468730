"""Read the blocks and the status of a running instance, for `foreblock status` and `watch`.

Blocks come from one JSON-RPC batch, hence from one snapshot, and any node can be read. The header
Foreblock-Snapshot names the flashblock and the commit. The rest comes from the JSON of `/readyz`,
from `/metrics` and from the page's list of networks. Data that a server does not provide is None.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from foreblock.errors import ErrorAnswer, NotAnAnswer, Unreachable
from foreblock.status.network_status import NetworkStatus, decode_status
from foreblock.status.status_text import problems
from foreblock.upstream.rpc_client import Endpoint, shown_commit, shown_snapshot

READINESS: Final = ("/readyz", "application/json")  # path and media type
METRICS: Final = "/metrics"
NETWORKS: Final = "/ui/networks.json"
BLOCKS: Final = json.dumps(
    [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", False]},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_getBlockByNumber", "params": ["pending", False]},
    ]
).encode()
TIMEOUT_SECONDS: Final = 10.0
LONGEST_RESPONSE: Final = 1 << 24  # bytes

_PENDING: Final = re.compile(r"\bpending=0x[0-9a-f]+\.(\d+):")
_SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


# --- Blocks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenBlock:
    """The fields of a block that are shown."""

    number: int
    hash: str
    timestamp: int
    transactions: int
    gas_used: int
    gas_limit: int
    base_fee: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """The heads of a chain."""

    latest: SeenBlock
    pending: SeenBlock | None  # None if pending means latest
    index: int | None  # of the newest flashblock
    commit: int | None = field(compare=False)

    @property
    def pending_position(self) -> str:
        """The pending block and the index of its newest flashblock, as in 58.1."""
        if self.pending is None:
            return "= latest"
        return f"{self.pending.number}" + ("" if self.index is None else f".{self.index}")


def read_blocks(endpoint: Endpoint) -> Reading:
    """Read the heads of a chain. Raises `Unreachable`, `NotAnAnswer`."""
    return parse_blocks(endpoint.url, *endpoint.exchange_with_headers(BLOCKS))


def read_earlier(endpoint: Endpoint, latest: int, count: int) -> list[SeenBlock]:
    """Read up to `count` blocks below the latest, in order, or none if the batch is refused."""
    numbers = range(max(0, latest - count), latest)
    asked = [
        {
            "jsonrpc": "2.0",
            "id": each,
            "method": "eth_getBlockByNumber",
            "params": [hex(each), False],
        }
        for each in numbers
    ]
    try:
        replies = json.loads(endpoint.exchange(json.dumps(asked).encode())) if asked else []
        by_id = {each["id"]: each.get("result") for each in replies}
        return [_block(block) for each in numbers if (block := by_id.get(each))]
    except (NotAnAnswer, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def parse_blocks(url: str, body: bytes, headers: Mapping[str, str]) -> Reading:
    """Parse the response to `BLOCKS`. Raises `NotAnAnswer`."""
    try:
        by_id = {each["id"]: each["result"] for each in json.loads(body)}
        latest, pending = _block(by_id[1]), _block(by_id[2])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as why:
        raise NotAnAnswer(url, f"no blocks in {body[:200]!r}") from why
    snapshot = shown_snapshot(headers)
    index = _PENDING.search(snapshot)
    return Reading(
        latest=latest,
        pending=pending if pending.number > latest.number else None,
        index=int(index[1]) if index else None,
        commit=shown_commit(snapshot),
    )


def _block(block: Mapping[str, Any]) -> SeenBlock:
    base_fee = block.get("baseFeePerGas")
    return SeenBlock(
        # Some servers give a pending block no number and no hash.
        number=int(block["number"] or "0x0", 16),
        hash=block["hash"] or "",
        timestamp=int(block["timestamp"], 16),
        transactions=len(block["transactions"]),
        gas_used=int(block["gasUsed"], 16),
        gas_limit=int(block["gasLimit"], 16),
        base_fee=None if base_fee is None else int(base_fee, 16),
    )


def parse_status(text: str) -> NetworkStatus | None:
    """Parse the response to `READINESS`; None for other servers."""
    found = decode_status(text)
    return found.networks[0] if found is not None and found.networks else None


# --- Metrics -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a scrape: name, labels, value."""

    found: tuple[tuple[str, Mapping[str, str], float], ...] = ()

    def of(self, name: str, **labels: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """The samples of a metric that have these labels."""
        for found, had, value in self.found:
            if found == name and labels.items() <= had.items():
                yield had, value

    def value(self, name: str, **labels: str) -> float | None:
        """Return the sum of a metric with these labels, or None without samples."""
        values = [value for _, value in self.of(name, **labels)]
        return sum(values) if values else None


def parse_samples(text: str) -> Samples:
    """Parse Prometheus' text format; other lines are left out."""
    found = []
    for line in text.splitlines():
        sample = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if sample is None:
            continue
        try:
            value = float(sample[3])
        except ValueError:
            continue
        found.append((sample[1], dict(_LABEL.findall(sample[2] or "")), value))
    return Samples(tuple(found))


# --- The instance --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """One network of an instance."""

    name: str
    url: str
    failure: str = ""  # the reason if it does not respond
    chain_id: int | None = None
    reading: Reading | None = None
    status: NetworkStatus | None = None
    oldest_state: int | None = None
    peers: int | None = None
    syncing: bool = False

    @property
    def is_ready(self) -> bool:
        """True if it responds, is ready and does not sync."""
        ready = self.status is None or self.status.ready
        return ready and not self.syncing and not self.failure

    @property
    def pending_age(self) -> float | None:
        """Seconds since its last flashblock."""
        chain = None if self.status is None else self.status.chain
        return None if chain is None or chain.pending is None else chain.pending.age

    def problems(self) -> list[str]:
        """The conditions that need attention, the most important first."""
        if self.failure:
            return [self.failure]
        found = [] if self.status is None else problems(self.status)
        return found + (["still syncing"] if self.syncing else [])


@dataclass(frozen=True, slots=True)
class Instance:
    """A service and its networks."""

    url: str
    client: str | None
    networks: tuple[FoundNetwork, ...]
    samples: Samples
    at: float  # seconds since 1970

    @property
    def is_ready(self) -> bool:
        return all(each.is_ready for each in self.networks)

    @property
    def version(self) -> str | None:
        """The version of foreblock, whatever name the instance gives itself."""
        found = [labels.get("version") for labels, _ in self.samples.of("foreblock_build_info")]
        return found[0] if found else None

    def sample(self, network: FoundNetwork, name: str) -> int | None:
        """The value of a metric of one network."""
        value = self.samples.value(f"foreblock_{name}", network=network.name)
        return None if value is None else int(value)

    @property
    def uptime(self) -> float | None:
        """Seconds since the first of its processes was started."""
        started = [v for _, v in self.samples.of("process_start_time_seconds")]
        return max(0.0, self.at - min(started)) if started else None


def read_instance(url: str) -> Instance:
    """Read an instance and its other networks. Raises `Unreachable`, `NotAnAnswer`."""
    with Endpoint(url, TIMEOUT_SECONDS, LONGEST_RESPONSE) as endpoint:
        first = _network("", url, endpoint)
        client = _request(endpoint, "web3_clientVersion")
        status, text = _get(endpoint, METRICS)
        samples = parse_samples(text) if status == HTTPStatus.OK else Samples()
        name, ports = _siblings(endpoint)
    others = [_sibling(each, _with_port(url, ports[each])) for each in ports if each != name]
    order = list(ports)
    networks = sorted(
        [replace(first, name=name), *others],
        key=lambda each: order.index(each.name) if each.name in order else -1,
    )
    named = client if isinstance(client, str) else None
    return Instance(url, named, tuple(networks), samples, time.time())


def _sibling(name: str, url: str) -> FoundNetwork:
    try:
        with Endpoint(url, TIMEOUT_SECONDS, LONGEST_RESPONSE) as endpoint:
            return _network(name, url, endpoint)
    except (Unreachable, NotAnAnswer) as why:
        return FoundNetwork(name, url, failure=str(why))


def _network(name: str, url: str, endpoint: Endpoint) -> FoundNetwork:
    """Read one network. Raises `NotAnAnswer` for a server that is not a node."""
    try:
        reading = read_blocks(endpoint)
    except NotAnAnswer:
        reading = None
    status = parse_status(_get(endpoint, *READINESS)[1])
    if reading is None and status is None:
        raise NotAnAnswer(url, "it serves neither blocks nor /readyz")
    oldest = _member(_request(endpoint, "eth_capabilities"), "state", "oldestBlock")
    found = FoundNetwork(
        name=name,
        url=url,
        chain_id=_quantity(_request(endpoint, "eth_chainId")),
        reading=reading,
        status=status,
        oldest_state=_quantity(oldest),
    )
    if status is not None:
        return found
    peers, syncing = (_request(endpoint, each) for each in ("net_peerCount", "eth_syncing"))
    return replace(found, peers=_quantity(peers), syncing=isinstance(syncing, dict))


def _siblings(endpoint: Endpoint) -> tuple[str, dict[str, int]]:
    """The name of the network at this endpoint, and the ports of all networks."""
    status, text = _get(endpoint, NETWORKS)
    try:
        listed = json.loads(text) if status == HTTPStatus.OK else {}
        ports = {str(each["name"]): int(each["port"]) for each in listed.get("networks", ())}
        return str(listed.get("here", "")), ports
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", {}


def _with_port(url: str, port: int) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, f"{host}:{port}", "", "", ""))


def _get(endpoint: Endpoint, path: str, accept: str = "*/*") -> tuple[int, str]:
    """Status and text; a server that sends no valid response has nothing at this path."""
    try:
        return endpoint.get(path, accept)
    except (Unreachable, NotAnAnswer):
        return 0, ""


def _request(endpoint: Endpoint, method: str) -> object:
    try:
        return endpoint.request(method)
    except (ErrorAnswer, NotAnAnswer):
        return None


def _member(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _quantity(value: object) -> int | None:
    try:
        return int(value, 16) if isinstance(value, str) else None
    except ValueError:
        return None
