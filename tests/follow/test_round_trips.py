"""Round trips are counted as waves, on synthetic times and on anvil's fork of a dev chain."""

from collections.abc import Iterator

import pytest

from follow.busy_load import BusyLoad, senders
from follow.busy_world import CLONES, PROXY, balances, number
from follow.proxied import Proxy, Trips, trips_of, waves, weather_proxy
from follow.upstreams import anvil_upstream, ask
from foreblock.sequencer.predeploys import MULTICALL
from support.payloads.solidity import call_data
from support.servers.dev_processes import dev_chain

OWNER = senders(1)[0].address


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (0, 1), (0.5, 1.5)], 1),  # concurrent
        ([(0, 1), (1.1, 2), (2.1, 3)], 3),  # sequential
        ([(0, 1), (0.9, 2), (2.1, 3), (2.1, 4)], 2),
        ([(0, 10), (1, 2), (3, 4)], 2),  # beside a long one
    ],
)
def test_requests_at_once_are_one_wave(intervals: list[tuple[float, float]], expected: int) -> None:
    assert waves(intervals) == expected
    assert waves(intervals[::-1]) == expected


@pytest.fixture(scope="module")
def forked() -> Iterator[tuple[Proxy, str]]:
    """anvil's fork of a chain with the contracts, through a proxy with a delay of 10 ms."""
    options = ("--test-listen=", "--workers=1", "--accounts=40", "--mining=manual")
    with dev_chain(*options) as dev:
        load = BusyLoad(senders(1), 0)
        load.send(dev.main.url, list(load.setup()))
        for _ in range(3):
            dev.main.ask("evm_mine")
        with (
            weather_proxy(dev.main.url, "delay=1:0.01") as proxy,
            anvil_upstream("--fork-url", proxy.url, "--no-storage-caching") as url,
        ):
            yield proxy, url


def cold(forked: tuple[Proxy, str], to: bytes, data: bytes) -> Trips:
    proxy, url = forked
    call = {"to": "0x" + to.hex(), "data": "0x" + data.hex()}
    return trips_of(proxy, lambda: ask(url, "eth_call", call, "latest"))


@pytest.mark.heavy
def test_anvil_asks_for_one_thing_after_the_other(forked: tuple[Proxy, str]) -> None:
    """Account and code, implementation slot, implementation, balance: one after another."""
    asked = call_data("balanceOf(address)", number(OWNER))
    first = cold(forked, PROXY, asked)
    assert 3 <= first.waves <= first.requests
    assert cold(forked, PROXY, asked).waves == 0  # everything is known now
    nine = cold(forked, MULTICALL, balances(OWNER, CLONES[:9]))
    assert nine.waves >= 9
    assert nine.items >= nine.requests >= nine.waves


@pytest.mark.heavy
def test_a_question_that_needs_nothing_has_no_trip(forked: tuple[Proxy, str]) -> None:
    proxy, url = forked
    assert trips_of(proxy, lambda: ask(url, "eth_chainId")) == Trips(0, 0, 0)
