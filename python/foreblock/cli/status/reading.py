"""Read the state of a running instance for `foreblock status`, from its ordinary responses.

Blocks, chain id and version come from JSON-RPC, so any node is asked the same way. The rest
comes from the JSON of `/readyz`, from `/metrics` and from the page's list of networks. What a
server does not have is left out.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from foreblock.cli.watch.history import QUESTION, READINESS, Reading, read_answer, read_status
from foreblock.errors import ErrorAnswer, NotAnAnswer, Unreachable
from foreblock.status.network_status import NetworkStatus
from foreblock.status.status_text import problems
from foreblock.upstream.rpc_client import Endpoint

_SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


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
    """The samples of a text in Prometheus' format; lines that are none are left out."""
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


METRICS: Final = "/metrics"
NETWORKS: Final = "/ui/networks.json"
TIMEOUT_SECONDS: Final = 10.0
LONGEST_ANSWER: Final = 1 << 24  # bytes


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """One network of an instance; what its server does not have is None."""

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
class Status:
    """An instance."""

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

    @property
    def uptime(self) -> float | None:
        """Seconds since the first of its processes was started."""
        started = [v for _, v in self.samples.of("foreblock_process_start_time_seconds")]
        return max(0.0, self.at - min(started)) if started else None


def read_instance(url: str) -> Status:
    """Ask an instance, and its other networks. Raises `Unreachable`, `NotAnAnswer`."""
    with _endpoint(url) as endpoint:
        first = _network("", url, endpoint)
        client = _text(_ask(endpoint, "web3_clientVersion"))
        samples = _samples(endpoint)
        here, siblings = _siblings(endpoint)
    named = replace(first, name=here)
    others = [
        _sibling(name, _with_port(url, port)) for name, port in siblings.items() if name != here
    ]
    order = list(siblings)
    networks = sorted(
        [named, *others], key=lambda each: order.index(each.name) if each.name in order else -1
    )
    return Status(url, client, tuple(networks), samples, time.time())


@contextmanager
def _endpoint(url: str) -> Iterator[Endpoint]:
    with Endpoint(url, TIMEOUT_SECONDS, LONGEST_ANSWER) as endpoint:
        yield endpoint


def _sibling(name: str, url: str) -> FoundNetwork:
    try:
        with _endpoint(url) as endpoint:
            return _network(name, url, endpoint)
    except (Unreachable, NotAnAnswer) as why:
        return FoundNetwork(name, url, failure=str(why))


def _network(name: str, url: str, endpoint: Endpoint) -> FoundNetwork:
    """Read one network. Raises `NotAnAnswer` for a server that is not a node."""
    try:
        reading = read_answer(url, *endpoint.exchange_with_headers(QUESTION))
    except NotAnAnswer:
        reading = None
    status = read_status(_get(endpoint, *READINESS)[1])
    if reading is None and status is None:
        raise NotAnAnswer(url, "it answers neither for blocks nor for /readyz")
    oldest = _member(_ask(endpoint, "eth_capabilities"), "state", "oldestBlock")
    syncing = _ask(endpoint, "eth_syncing") if status is None else False
    return FoundNetwork(
        name=name,
        url=url,
        chain_id=_quantity(_ask(endpoint, "eth_chainId")),
        reading=reading,
        status=status,
        oldest_state=_quantity(oldest),
        peers=_quantity(_ask(endpoint, "net_peerCount")) if status is None else None,
        syncing=isinstance(syncing, dict),
    )


def _samples(endpoint: Endpoint) -> Samples:
    status, text = _get(endpoint, METRICS)
    return parse_samples(text) if status == HTTPStatus.OK else Samples()


def _siblings(endpoint: Endpoint) -> tuple[str, dict[str, int]]:
    """The name of the network that was asked, and all networks with their ports."""
    status, text = _get(endpoint, NETWORKS)
    try:
        told = json.loads(text) if status == HTTPStatus.OK else {}
        named = {str(each["name"]): int(each["port"]) for each in told.get("networks", ())}
        return str(told.get("here", "")), named
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", {}


def _with_port(url: str, port: int) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, f"{host}:{port}", "", "", ""))


def _get(endpoint: Endpoint, path: str, accept: str = "*/*") -> tuple[int, str]:
    """Status and text; a server that cannot even refuse has nothing at this path."""
    try:
        return endpoint.get(path, accept)
    except (Unreachable, NotAnAnswer):
        return 0, ""


def _ask(endpoint: Endpoint, method: str) -> Any:  # noqa: ANN401, a result in JSON
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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
