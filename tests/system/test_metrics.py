"""Metrics of a whole service: all processes, across restarts, from any worker; slow requests."""

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from typing import Any

import pytest

from foreblock import __version__
from foreblock.metrics.catalogue import METRICS
from support.servers.dev_processes import SOLO, Dev, Network, RpcError, dev_chain, exchange
from support.servers.waiting import PATIENCE, until

SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
BALANCE = ("eth_getBalance", "0x" + 20 * "00", "latest")

Metrics = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(url: str) -> Metrics:
    """Return the contents of /metrics, by name and labels."""
    reply = exchange(url, "/metrics")
    assert reply.status == 200, reply.text
    found: Metrics = {}
    for line in reply.text.splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            labels = tuple(sorted(LABEL.findall(sample[2] or "")))
            assert (sample[1], labels) not in found, line
            found[sample[1], labels] = float(sample[3])
    return found


def value(found: Metrics, name: str, **labels: str) -> float:
    return found[f"foreblock_{name}", tuple(sorted(labels.items()))]


def requests(found: Metrics, method: str, outcome: str = "ok") -> float:
    labels = (("method", method), ("network", "main"), ("outcome", outcome))
    return found.get(("foreblock_requests_total", labels), 0.0)


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain() as running:
        yield running


def counters(found: Metrics) -> Metrics:
    ends = ("_total", "_bucket", "_sum", "_count")
    return {key: each for key, each in found.items() if key[0].endswith(ends)}


def fallen(before: Metrics, after: Metrics) -> list[object]:
    """Counters that decreased or vanished."""
    return [key for key, each in counters(before).items() if after.get(key, -1.0) < each]


def test_the_version_is_that_of_the_package(dev: Dev) -> None:
    assert value(scrape(dev.main.url), "build_info", version=__version__) == 1
    assert dev.main.ask("web3_clientVersion") == f"foreblock/v{__version__}"


def test_requests_of_both_ways_are_counted_whoever_is_asked(dev: Dev) -> None:
    before = scrape(dev.main.url)
    for _ in range(20):  # each over a separate connection, to either worker
        dev.main.batch((BALANCE[0], BALANCE[1:]), (BALANCE[0], BALANCE[1:]))
        dev.main.ask("eth_chainId")
    with pytest.raises(RpcError):
        dev.main.ask("eth_getBalance", "0x", "latest")
    for _ in range(4):
        after = scrape(dev.main.url)
        assert requests(after, "eth_getBalance") - requests(before, "eth_getBalance") == 40
        assert requests(after, "eth_chainId") - requests(before, "eth_chainId") == 20
        assert requests(after, "eth_getBalance", "error") == 1
        for method in ("eth_getBalance", "eth_chainId"):
            all_of = sum(
                requests(after, method, each) for each in ("ok", "error", "refused", "failed")
            )
            assert value(
                after, "request_duration_seconds_count", method=method, network="main"
            ) == all_of  # fmt: skip
    assert value(after, "received_bytes_total", network="main") > 0
    assert value(after, "sent_bytes_total", network="main") > 0


def test_the_fast_path_is_counted_too(dev: Dev) -> None:
    before = scrape(dev.main.url)
    connection = HTTPConnection(dev.main.url.removeprefix("http://"), timeout=PATIENCE)
    body = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x%s","latest"]}' % (
        "00" * 20
    )
    for _ in range(50):  # from the second on with a known head
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        assert b"result" in connection.getresponse().read()
    connection.close()
    after = scrape(dev.main.url)
    assert requests(after, "eth_getBalance") - requests(before, "eth_getBalance") == 50


def test_what_clients_make_up_adds_no_series(dev: Dev) -> None:
    for number in range(3):
        with pytest.raises(RpcError):
            dev.main.ask(f"made_up_{number}")
    before = set(scrape(dev.main.url))
    for number in range(3, 30):
        with pytest.raises(RpcError):
            dev.main.ask(f"made_up_{number}")
    after = scrape(dev.main.url)
    assert set(after) == before
    assert requests(after, "unknown", "error") >= 30
    assert not [key for key in after if "made_up" in str(key)]


def test_chains_processes_and_stores_are_there(dev: Dev) -> None:
    until(lambda: dev.main.latest() > 0, "a sealed block")
    found = scrape(dev.main.url)
    for network in ("main", "test"):
        assert value(found, "ready", network=network) == 1
        assert value(found, "store_available", network=network) == 1
        assert value(found, "pending_age_seconds", network=network) < PATIENCE
        assert value(found, "pending_distance_blocks", network=network) == 1
        assert value(found, "pending_block_number", network=network) == 1 + value(
            found, "latest_block_number", network=network
        )
        assert value(found, "commit_duration_seconds_count", network=network) > 0
        assert value(found, "flashblock_readable_seconds_count", network=network) > 0
        free = value(found, "store_free_bytes", network=network)
        assert 0 <= free < value(found, "store_file_bytes", network=network)
        assert value(found, "disk_free_bytes", network=network) > 0
    for process in ("supervisor", "writer", "worker-0", "worker-1"):
        for name, least in (("resident_memory_bytes", 1e6), ("cpu_seconds_total", 0)):
            assert found[f"process_{name}", (("process", process),)] > least
    named = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in found}
    assert named <= {metric.name for metric in METRICS}


def test_counters_only_rise_over_restarts(dev: Dev) -> None:
    seen = [scrape(dev.main.url)]
    for kind in ("worker", "worker", "writer"):
        dev.main.ask(*BALANCE)
        until(lambda: len(dev.pids("worker")) == 2, "both workers")
        dev.kill(kind)
        restarted(dev.main, kind, value(seen[-1], "process_restarts_total", role=kind) + 1)
        for _ in range(4):
            seen.append(_patiently(dev.main))
            assert fallen(seen[-2], seen[-1]) == []
    until(lambda: value(_patiently(dev.main), "ready", network="main") == 1, "it continues")
    assert fallen(seen[-1], scrape(dev.main.url)) == []


def restarted(network: Network, role: str, times: float) -> None:
    """Wait until restarts are counted."""
    count = partial(value, name="process_restarts_total", role=role)
    until(lambda: count(_patiently(network)) >= times, "the restart is counted")


def _patiently(network: Network) -> Metrics:
    """A scrape while a worker may be dead: its connections are cut."""

    def once() -> Metrics | None:
        try:
            return scrape(network.url)
        except (ConnectionError, OSError):
            return None

    return until(once, "a response")


def slow_request(dev: Dev, request_id: str) -> dict[str, Any]:
    """The next log event about this request."""
    assert dev.process.stdout is not None
    for line in dev.process.stdout:
        if line.startswith("{") and (found := json.loads(line)).get("request_id") == request_id:
            return dict(found)
    raise AssertionError("it is not logged")


def test_metrics_have_an_address_of_their_own_and_slow_requests_are_logged() -> None:
    options = ("--metrics-listen=127.0.0.1:0", "--slow-request=0.000000001", "--log-format=json")
    with dev_chain(*options, *SOLO) as dev:
        said = "".join(dev.output)
        (address,) = re.findall(r"metrics at (http://\S+)/metrics", said)
        assert value(scrape(address), "ready", network="main") == 1
        assert dev.main.probe("/metrics")[0] == 404
        assert Network(address, "").probe("/readyz")[0] == 200
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
        reply = exchange(dev.main.url, "/", body, {"X-Request-Id": "mine"})
        assert reply.headers["X-Request-Id"] == "mine"
        assert json.loads(reply.body)["result"] == "0x7a69"
        found = slow_request(dev, "mine")
        assert (found["method"], found["network"], found["code"]) == ("eth_chainId", "main", None)
        assert (found["event"], found["level"]) == ("slow_request", "warning")
        assert 0 < found["seconds"] < PATIENCE


@pytest.mark.heavy
def test_metrics_can_be_switched_off() -> None:
    with dev_chain("--metrics=false", *SOLO) as dev:
        assert dev.main.probe("/metrics")[0] == 404


@pytest.mark.heavy
def test_they_are_at_addresses_that_other_machines_reach() -> None:
    """On public addresses only the methods of development chains are hidden."""
    with dev_chain("--listen=0.0.0.0:0", "--test-listen=") as dev:
        assert value(scrape(dev.main.url), "ready", network="main") == 1
    with dev_chain("--metrics-listen=0.0.0.0:0", "--test-listen=") as dev:
        (address,) = re.findall(r"metrics at (http://\S+)/metrics", "".join(dev.output))
        assert value(scrape(address), "ready", network="main") == 1
        assert exchange(address, "/", "{}").status == 404


def test_many_scrapes_at_once_are_answered(dev: Dev) -> None:
    found: list[Metrics] = []
    threads = [
        threading.Thread(target=lambda: found.append(scrape(dev.main.url))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
