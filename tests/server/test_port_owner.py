"""The process that listens at an address."""

import os
import socket
import subprocess
import sys

import pytest

from foreblock.errors import AddressInUse
from foreblock.server import port_owner
from foreblock.server.port_owner import owner_of
from foreblock.server.sockets import listen, name
from support.each_case import each_case


@each_case("host", ["127.0.0.1", "0.0.0.0", "[::1]"])  # noqa: S104, on a port of its own
def test_this_process_is_found_at_its_address(host: str) -> None:
    (opened,) = listen(f"{host}:0", 1)
    port = opened.getsockname()[1]
    found = owner_of(host.strip("[]"), port)
    opened.close()
    assert found.endswith(f" (pid {os.getpid()})")
    assert owner_of(host.strip("[]"), port) == ""


def test_a_wildcard_occupies_each_address_and_an_address_only_itself() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104, on a port of its own
        assert owner_of("127.0.0.2", everywhere.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as here:
        port = here.getsockname()[1]
        assert owner_of("0.0.0.0", port)  # noqa: S104
        assert not owner_of("127.0.0.2", port)


def test_a_child_that_has_the_socket_is_not_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[sock.fileno()]
        )
        assert f"(pid {os.getpid()})" in owner_of("127.0.0.1", sock.getsockname()[1])
        child.communicate(b"\n")


def test_the_error_names_it() -> None:
    (opened,) = listen("127.0.0.1:0", 1)
    with pytest.raises(AddressInUse) as refused:
        listen(name(opened), 1, patience=0)
    assert str(refused.value).endswith(f"(pid {os.getpid()})")
    opened.close()


@each_case(
    ("words", "named"),
    [
        (["/usr/bin/python3", "-m", "foreblock", "dev", "--log", "SECRET"], "foreblock dev"),
        (["/x/.venv/bin/python3.11", "/x/.venv/bin/foreblock", "serve"], "foreblock serve"),
        (["python", "-m", "http.server", "8545"], "http.server"),
        (["/usr/bin/python3", "-c", "import x"], "python3"),
        (["/usr/local/bin/anvil", "--mnemonic", "SECRET"], "anvil"),
        (["nginx: master process"], "nginx: master process"),
    ],
)
def test_programs_are_named_without_their_arguments(words: list[str], named: str) -> None:
    assert port_owner.program(words) == named
