"""The page as a whole service gives it, without a browser."""

import json
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from support.servers.dev_processes import Network, dev_chain
from support.servers.waiting import PATIENCE


def get(network: Network, path: str, accept: str = "*/*") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(network.url.removeprefix("http://"), timeout=PATIENCE)
    connection.request("GET", path, headers={"Accept": accept})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response, text


def test_every_network_has_the_page_and_names_all() -> None:
    with dev_chain() as dev:
        assert dev.test is not None
        for network, name in ((dev.main, "main"), (dev.test, "test")):
            response, text = get(network, "/", "text/html")
            assert response.status == 200
            assert text.startswith(b"<!doctype html>")
            assert text == get(network, "/ui")[1]
            told = json.loads(get(network, "/ui/networks.json")[1])
            ports = {each["name"]: each["port"] for each in told["networks"]}
            assert told["here"] == name
            assert ports == {
                "main": urlsplit(dev.main.url).port,
                "test": urlsplit(dev.test.url).port,
            }
            policy = response.headers["Content-Security-Policy"]
            other = dev.test if network is dev.main else dev.main
            assert other.url.replace("http", "ws", 1) in policy
        response, text = get(dev.main, "/")
        assert (response.status, text) == (200, b"")


@pytest.mark.heavy
def test_it_can_be_switched_off() -> None:
    with dev_chain("--page=false", "--test-listen=") as dev:
        response, text = get(dev.main, "/", "text/html")
        assert (response.status, text) == (200, b"")
        assert get(dev.main, "/ui")[0].status == 404
        assert dev.main.ask("eth_chainId") == hex(31337)
