"""Addresses, and sockets that share one."""

import socket
import time

import pytest

from foreblock.errors import AddressInUse, AddressUnusable
from foreblock.server.sockets import (
    is_loopback,
    is_loopback_host,
    listen,
    name,
    parse_address,
    refuse_new,
)
from support.each_case import each_case
from support.servers.waiting import PATIENCE


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8545", "127.0.0.1", 8545), ("localhost:0", "localhost", 0),
        ("[::1]:8545", "::1", 8545), ("node.example:65535", "node.example", 65535),
    ],
)  # fmt: skip
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@each_case("text", ["", "8545", ":8545", "host", "host:", "host:-1", "host:65536", "::1:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AddressUnusable):
        parse_address(text)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [("127.0.0.1:0", True), ("127.9.9.9:0", True), ("0.0.0.0:0", False), ("localhost:0", True)],
)
def test_addresses_that_other_machines_reach(address: str, loopback: bool) -> None:
    opened = listen(address, 1)
    assert is_loopback(opened[0]) == loopback
    close(opened)


@each_case(
    ("host", "loopback"),
    [
        ("::1", True), ("::ffff:127.0.0.1", True), ("::", False), ("fe80::1%eth0", False),
        ("10.0.0.1", False), ("node.example", False), ("localhost", True),
    ],
)  # fmt: skip
def test_hosts_that_other_machines_reach(host: str, loopback: bool) -> None:
    assert is_loopback_host(host) == loopback


def close(opened: list[socket.socket]) -> None:
    for sock in opened:
        sock.close()


def test_sockets_of_one_address_share_its_port_with_nobody_else() -> None:
    opened = listen("127.0.0.1:0", 3)
    address = name(opened[0])
    assert [name(sock) for sock in opened] == [address] * 3
    with pytest.raises(AddressInUse, match="already in use"):
        listen(address, 1, patience=0)
    close(opened)
    close(listen(address, 1, patience=0))


def test_an_address_that_becomes_free_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = listen("127.0.0.1:0", 2)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            close(opened)

    monkeypatch.setattr(time, "sleep", sleep)
    close(listen(name(opened[0]), 1, patience=PATIENCE))
    assert len(slept) == 3


def test_turning_away_keeps_the_queue_and_lets_nobody_in() -> None:
    (listening,) = listen("127.0.0.1:0", 1)
    where = listening.getsockname()
    with listening, socket.create_connection(where, 5) as early:
        early.sendall(b"before")
        refuse_new(listening)
        with pytest.raises(TimeoutError):
            socket.create_connection(where, 0.05)
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(16) == b"before"
        with pytest.raises(BlockingIOError):
            listening.accept()
