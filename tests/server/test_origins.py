"""Allowed origins: by text, at any port, or all."""

from foreblock.server.head import LOOPBACK, origin_allowed
from foreblock.settings import Access
from support.each_case import each_case
from support.servers.wire import Wire, answer, echo, post


def allowed(origin: str, *origins: str) -> bool:
    return origin_allowed(origin.encode(), frozenset(each.encode() for each in origins))


@each_case(
    "origin",
    [
        "http://localhost", "http://localhost:5173", "https://localhost:3000",
        "HTTP://LOCALHOST:80", "http://127.0.0.1:8080", "http://[::1]", "http://[::1]:3000",
    ],
)  # fmt: skip
def test_pages_of_this_machine_are_loopback_origins(origin: str) -> None:
    assert allowed(origin, *LOOPBACK)


@each_case(
    "origin",
    [
        "null", "", "http://localhost.evil.example", "http://localhost:80.evil.example",
        "http://evil.example:3000", "http://localhost:", "http://localhost:5173:1",
        "ftp://localhost:1", "http://127.0.0.1.evil.example:80",
        "localhost:3000", "http://128.0.0.1",
    ],
)  # fmt: skip
def test_others_are_not(origin: str) -> None:
    assert not allowed(origin, *LOOPBACK)


def test_an_origin_without_ports_is_that_one() -> None:
    assert allowed("https://app.example", "https://app.example")
    assert not allowed("https://app.example:444", "https://app.example")
    assert allowed("https://app.example:444", "https://app.example:*")
    assert allowed("anything", "*")


def test_a_page_at_any_port_reads_the_answer() -> None:
    wire = Wire(echo, access=Access(cors_origins=LOOPBACK))
    for port in (b"3000", b"5173"):
        found = answer(wire.send(post(b"{}", b"Origin: http://localhost:" + port)))
        wanted = f"http://localhost:{port.decode()}"
        assert found.headers["access-control-allow-origin"] == wanted
