"""Read the state of a running instance for `foreblock status`, from its ordinary responses.

Blocks, chain id and version come from JSON-RPC, so any node is asked the same way. The rest
comes from `/readyz?verbose`, `/metrics` and the list of networks of the page; what a server does
not have is left out.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from foreblock.cli.watch.history import QUESTION, READINESS, SeenBlock, is_ready, read_answer
from foreblock.errors import ErrorAnswer, NotAnAnswer, Unreachable
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
SOURCES: Final = ("feed", "canonical", "following")  # facts about where blocks come from


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """One network of an instance."""

    name: str
    url: str
    failure: str = ""  # why it does not answer
    chain_id: int | None = None
    ready: bool | None = None  # none where the server does not say
    latest: SeenBlock | None = None
    pending: SeenBlock | None = None
    flashblock: int | None = None
    commit: int | None = None
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of /readyz?verbose
    oldest_state: int | None = None
    peers: int | None = None
    syncing: bool = False

    @property
    def source(self) -> str | None:
        """Where blocks come from: dev, feed or store; none where that is not known."""
        if "feed" in self.facts or "following" in self.facts:
            return "feed"
        if any("nothing is written" in each for each in self.facts.get("pending", ())):
            return "store"
        return "dev" if "maintenance" in self.facts else None

    def problems(self) -> list[str]:
        """The problems of the instance, the most important first."""
        if self.failure:
            return [self.failure]
        found = []
        if self.ready is False:
            pending = [each for each in self.facts.get("pending", ()) if each.startswith("none")]
            found += [f"not ready: {each}" for each in pending] or ["not ready"]
        found += [
            f"{name}: {each}"
            for name in ("store", "failed", "missing", "last error")
            for each in self.facts.get(name, ())
        ]
        found += [f"feed {each}" for each in self.facts.get("feed", ()) if "not connected" in each]
        found += [f"log: {each}" for each in self.facts.get("log", ()) if _is_stuck(each)]
        return found + (["still syncing"] if self.syncing else [])


def _is_stuck(log: str) -> bool:
    """Return True if a node reports that its log or its writer is missing."""
    return any(words in log for words in ("silent", "waits for the log", "not connected"))


@dataclass(frozen=True, slots=True)
class Status:
    """An instance."""

    url: str
    client: str | None
    networks: tuple[NetworkStatus, ...]
    samples: Samples
    at: float  # seconds since 1970

    @property
    def is_ready(self) -> bool:
        """Return True if every network responds, is ready and does not sync."""
        return all(
            each.ready is not False and not each.syncing and not each.failure
            for each in self.networks
        )

    @property
    def version(self) -> str | None:
        """The version of foreblock, whatever name the instance gives itself."""
        found = [labels.get("version") for labels, _ in self.samples.of("foreblock_build_info")]
        return found[0] if found else None

    def pending_age(self, network: NetworkStatus) -> float | None:
        """Seconds since the last flashblock of a network came."""
        return self.samples.value("foreblock_pending_age_seconds", network=network.name)

    @property
    def uptime(self) -> float | None:
        """Seconds since the first of its processes was started."""
        started = [v for _, v in self.samples.of("foreblock_process_start_time_seconds")]
        return max(0.0, self.at - min(started)) if started else None


def read_status(url: str) -> Status:
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


def _sibling(name: str, url: str) -> NetworkStatus:
    try:
        with _endpoint(url) as endpoint:
            return _network(name, url, endpoint)
    except (Unreachable, NotAnAnswer) as why:
        return NetworkStatus(name, url, failure=str(why))


def _network(name: str, url: str, endpoint: Endpoint) -> NetworkStatus:
    """Blocks are asked for first: a server that has none is no node."""
    try:
        reading = read_answer(url, *endpoint.exchange_with_headers(QUESTION))
    except NotAnAnswer:
        reading = None
    status, text = _get(endpoint, READINESS)
    ready = is_ready(status, text)
    if reading is None and ready is None:
        raise NotAnAnswer(url, "it answers neither for blocks nor for /readyz")
    oldest = _member(_ask(endpoint, "eth_capabilities"), "state", "oldestBlock")
    syncing = _ask(endpoint, "eth_syncing") if ready is None else False
    return NetworkStatus(
        name=name,
        url=url,
        chain_id=_quantity(_ask(endpoint, "eth_chainId")),
        ready=ready,
        latest=None if reading is None else reading.latest,
        pending=None if reading is None else reading.pending,
        flashblock=None if reading is None else reading.index,
        commit=None if reading is None else reading.commit,
        facts={} if ready is None else _facts(text),
        oldest_state=_quantity(oldest),
        peers=_quantity(_ask(endpoint, "net_peerCount")) if ready is None else None,
        syncing=isinstance(syncing, dict),
    )


def _facts(text: str) -> dict[str, tuple[str, ...]]:
    """The lines after the first, by what they are about."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines()[1:]:
        name, _, fact = line.partition(": ")
        found[name] = (*found.get(name, ()), fact)
    return found


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


def _get(endpoint: Endpoint, path: str) -> tuple[int, str]:
    """Status and text; a server that cannot even refuse has nothing at this path."""
    try:
        return endpoint.get(path)
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
