"""Several handlers at one address, one for each path."""

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Handler, Readiness, Reply, Served
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.sweep import Ticker
from foreblock.settings import Access
from support.each_case import each_case
from support.servers.wire import ACCESS, LIMITS, Wire, answer, post


def named(name: bytes) -> Handler:
    def handle(body: bytes, _client: Client) -> Reply:
        return Reply(name + b":" + body)

    return handle


def wire(access: Access = ACCESS) -> Wire:
    served = Served(named(b"root"), lambda: Readiness(True, ()), at_paths={b"/eth": named(b"node")})
    rules = RequestRules.of(LIMITS, access)
    endpoint = HttpEndpoint(served, rules, Ticker(LIMITS, lambda: 0.0), 4, WorkerBudget())
    return Wire(named(b"unused"), endpoint=endpoint)


def at(path: bytes, body: bytes = b"x") -> bytes:
    return post(body).replace(b"POST / ", b"POST %b " % path, 1)


def test_each_path_has_its_handler() -> None:
    client = wire()
    for _ in range(2):  # the second time with known heads
        assert answer(client.send(at(b"/"))).text == "root:x"
        assert answer(client.send(at(b"/eth"))).text == "node:x"
        assert answer(client.send(at(b"/eth?a=b"))).text == "node:x"
        assert answer(client.send(at(b"http://localhost/eth"))).text == "node:x"


def test_paths_do_not_depend_on_how_bytes_are_cut() -> None:
    data = at(b"/eth", b"abc") + at(b"/", b"def") + at(b"/eth", b"ghi")
    whole = wire().send(data)
    assert whole.count(b"node:") == 2
    assert wire().send(*(bytes([each]) for each in data)) == whole


@each_case("path", [b"/eth/", b"/ETH", b"/et", b"/ethx", b"/eth/x", b"//eth", b"/e%74h"])
def test_other_paths_are_not_found(path: bytes) -> None:
    assert answer(wire().send(at(path))).status == 404


def test_other_methods_are_answered_alike_at_all_paths() -> None:
    client = wire(Access(cors_origins=("http://page.example",)))
    for path in (b"/", b"/eth"):
        head = b"%b " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert answer(client.send(head % b"GET")).status == 200
        assert answer(client.send(head % b"DELETE")).status == 405
        preflight = head.replace(
            b"\r\n\r\n",
            b"\r\nOrigin: http://page.example\r\nAccess-Control-Request-Method: POST\r\n\r\n",
        )
        found = answer(client.send(preflight % b"OPTIONS"))
        assert found.status == 204
        assert found.headers["access-control-allow-origin"] == "http://page.example"
