"""The page for browsers: its requests, its permissions, and the unchanged responses of others."""

import pytest

from foreblock.server.answers import Document, Documents
from foreblock.server.checks import RequestRules
from foreblock.settings import Access
from support.each_case import each_case
from support.servers.websocket_wire import handshake
from support.servers.wire import ACCESS, LIMITS, Wire, answer, answers, echo, endpoint_for, raw

PAGE = Document.of("text/html; charset=utf-8", b"<!doctype html>\n<title>x</title>\n")
DOCUMENTS = Documents({b"/ui": PAGE}, page=b"/ui", siblings=frozenset({9545}))
HTML = b"Accept: text/html,application/xhtml+xml,*/*;q=0.8"
HOST = b"Host: localhost:8545"


def wire(access: Access = ACCESS) -> Wire:
    endpoint = endpoint_for(echo, LIMITS, access)
    rules: RequestRules = endpoint.rules._replace(documents=DOCUMENTS)
    endpoint.rules = rules  # type: ignore[misc]
    return Wire(echo, endpoint=endpoint)


@pytest.mark.parametrize("target", [b"/ui", b"/ui?anything", b"/"])
def test_a_browser_gets_the_page(target: bytes) -> None:
    found = answer(wire().send(raw(b"GET %b HTTP/1.1" % target, HOST, HTML)))
    assert (found.status, found.body) == (200, PAGE.text + b"\n")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["x-content-type-options"] == "nosniff"


@each_case(
    "lines",
    [
        (b"GET / HTTP/1.1", HOST),
        (b"GET / HTTP/1.1", HOST, b"Accept: */*"),
        (b"GET / HTTP/1.1", HOST, b"Accept: application/json"),
        (b"GET / HTTP/1.1", HOST, b"Accept: text/htmlx"),
        (b"GET /eth HTTP/1.1", HOST, b"Accept: application/json"),
    ],
)
def test_others_get_the_health_probe_as_before(lines: tuple[bytes, ...]) -> None:
    found = answer(wire().send(raw(*lines)))
    assert found.status in (200, 404)
    assert found.body in (b"", b"not found\n")


def test_json_rpc_is_not_affected_by_what_it_accepts() -> None:
    lines = (b"POST / HTTP/1.1", HOST, HTML, b"Content-Type: application/json")
    found = answer(wire().send(raw(*lines, b"Content-Length: 2", body=b"{}")))
    assert (found.status, found.text) == (200, "<{}>")


def test_a_known_page_is_not_sent_again() -> None:
    client = wire()
    tag = answer(client.send(raw(b"GET /ui HTTP/1.1", HOST))).headers["etag"].encode()
    for known in (tag, b'"other", W/' + tag):
        head = raw(b"GET /ui HTTP/1.1", HOST, b"If-None-Match: " + known)
        found = answer(client.send(head))
        assert (found.status, found.body) == (304, b"")
        assert found.headers["etag"].encode() == tag
    assert answer(client.send(raw(b"GET /ui HTTP/1.1", HOST, b'If-None-Match: "x"'))).status == 200


def test_several_requests_in_one_piece_are_answered_in_order() -> None:
    get, known = raw(b"GET /ui HTTP/1.1", HOST), raw(b"GET /healthz HTTP/1.1", HOST)
    found = answers(wire().send(get + known + get))
    page = PAGE.text.decode() + "\n"
    assert [each.text for each in found] == [page, "ok\n", page]


def test_head_has_no_body_and_other_methods_are_refused() -> None:
    client = wire()
    assert answer(client.send(raw(b"HEAD /ui HTTP/1.1", HOST))).body == b""
    for method in (b"POST", b"PUT", b"DELETE"):
        lines = (b"%b /ui HTTP/1.1" % method, HOST, b"Content-Length: 0")
        assert answer(client.send(raw(*lines))).status == 405


def test_a_slash_too_many_leads_to_the_page() -> None:
    found = answer(wire().send(raw(b"GET /ui/ HTTP/1.1", HOST)))
    assert (found.status, found.headers["location"]) == (308, "../ui")
    assert answer(wire().send(raw(b"GET /ui/x HTTP/1.1", HOST))).status == 404


def test_the_page_has_the_same_rules_of_hosts() -> None:
    found = answer(wire().send(raw(b"GET /ui HTTP/1.1", b"Host: evil.example", HTML)))
    assert (found.status, found.text) == (403, "invalid host specified\n")


def policy(host: bytes, access: Access = ACCESS) -> dict[str, str]:
    found = answer(wire(access).send(raw(b"GET /ui HTTP/1.1", b"Host: " + host)))
    assert found.status == 200
    parts = found.headers["content-security-policy"].split("; ")
    return {name: rest for name, _, rest in (part.partition(" ") for part in parts)}


def test_the_policy_allows_the_service_and_nothing_else() -> None:
    found = policy(b"localhost:8545")
    assert found["default-src"] == "'none'"
    assert found["script-src"] == found["style-src"] == "'self'"
    assert found["connect-src"] == (
        "'self' ws://localhost:8545 wss://localhost:8545 ws://localhost:9545 wss://localhost:9545"
    )
    assert found["frame-ancestors"] == found["base-uri"] == found["form-action"] == "'none'"


def test_a_host_cannot_write_into_the_policy() -> None:
    everyone = Access(hosts=("*",))
    assert policy(b"a b;script-src *", everyone)["connect-src"] == "'self'"
    assert policy(b"*", everyone)["connect-src"] == "'self'"
    assert policy(b"[::1]:8545")["connect-src"] == "'self' ws://*:9545"


@each_case(
    ("host", "origin", "status"),
    [
        (b"localhost:8545", b"http://localhost:8545", 404),  # no sessions here: it was allowed
        (b"localhost:8545", b"http://localhost:9545", 404),
        (b"LOCALHOST:8545", b"http://localhost:9545", 404),
        (b"127.0.0.1:8545", b"http://127.0.0.1:9545", 404),
        (b"[::1]:8545", b"http://[::1]:9545", 404),
        (b"localhost:8545", b"http://localhost:9546", 403),
        (b"localhost:8545", b"http://localhost", 403),
        (b"localhost:8545", b"http://evil.example:9545", 403),
        (b"localhost:8545", b"http://127.0.0.1:9545", 403),
        (b"localhost:8545", b"http://localhost:95450", 403),
    ],
)
def test_pages_of_the_other_networks_may_connect(host: bytes, origin: bytes, status: int) -> None:
    request = handshake(b"Host: " + host, b"Origin: " + origin, leave_out=b"Host")
    assert answer(wire().send(request)).status == status
