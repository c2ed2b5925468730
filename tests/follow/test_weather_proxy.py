"""The proxy changes nothing without faults, and with one exactly as documented."""

import gzip
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from follow.fault_kinds import KINDS, LIES, STORMS, parse, words
from follow.http_messages import HttpMessage, Splitter
from follow.proxied import Proxy, weather_proxy
from support.servers.dev_processes import Dev, exchange
from support.servers.waiting import PATIENCE, until

Answer = Callable[[HttpMessage], bytes]


class Canned:
    """An upstream with fixed responses, and its received requests."""

    def __init__(self, url: str, answer: Answer) -> None:
        self.url = url
        self.answer = answer
        self.heard: list[bytes] = []


@contextmanager
def canned(answer: Answer) -> Iterator[Canned]:
    """This upstream on a free port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            splitter = Splitter()
            while data := self.request.recv(65536):
                for message in splitter.feed(data):
                    found.heard.append(message.raw)
                    self.request.sendall(found.answer(message))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Canned(f"http://127.0.0.1:{server.server_address[1]}", answer)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Odd:  yes \r\n"
ADDRESS = "0x" + "11" * 20
NODES = ["0x" + byte * 40 for byte in ("f8", "a1", "b2")]
PROOF = {
    "address": ADDRESS, "balance": "0xde0b6b3a7640000", "nonce": "0x1",
    "codeHash": "0x" + "c5" * 32,
    "storageHash": "0x" + "56" * 32, "accountProof": NODES,
    "storageProof": [{"key": "0x0", "value": "0x2a", "proof": NODES[:2]}],
}  # fmt: skip
HASH = "0x" + "ab" * 32
RESULTS: dict[str, Any] = {
    "eth_getProof": PROOF,
    "eth_getCode": "0x6001600201",
    "eth_getStorageAt": "0x" + "00" * 31 + "2a",
    "eth_getBalance": "0x10",
    "eth_blockNumber": "0x64",
    "eth_getBlockByNumber": {"number": "0x64", "hash": HASH, "stateRoot": "0x" + "77" * 32},
    "eth_call": "0x" + "00" * 32,
}


def answer(message: HttpMessage) -> bytes:
    """A plausible response, and for a storage slot the slot itself."""
    asked = json.loads(message.body)
    found = [
        {"jsonrpc": "2.0", "id": each["id"], "result": result_of(each)}
        for each in (asked if isinstance(asked, list) else [asked])
    ]
    body = json.dumps(found if isinstance(asked, list) else found[0]).encode()
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def result_of(request: dict[str, Any]) -> object:
    if request["method"] == "eth_getStorageAt":
        return "0x" + request["params"][1][2:].rjust(64, "0")
    return RESULTS[request["method"]]


@pytest.fixture(scope="module")
def behind() -> Iterator[Canned]:
    with canned(answer) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(behind: Canned) -> Iterator[Proxy]:
    with weather_proxy(behind.url) as found:
        yield found


def raw_answers(url: str, requests: list[bytes], count: int) -> list[bytes]:
    """The bytes of responses to pipelined requests."""
    host, _, port = url.removeprefix("http://").partition(":")
    splitter, found = Splitter(answers=True), list[bytes]()
    with socket.create_connection((host, int(port)), PATIENCE) as sock:
        sock.sendall(b"".join(requests))
        while len(found) < count and (data := sock.recv(65536)):
            found += [each.raw for each in splitter.feed(data)]
    return found


def ask(proxy: Proxy, body: Any) -> tuple[int, dict[str, str], bytes]:  # noqa: ANN401, JSON
    reply = exchange(proxy.url, "/", json.dumps(body))
    return reply.status, dict(reply.headers), reply.body


def question(method: str, *params: object, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def asked_with(proxy: Proxy, faults: str, body: Any) -> Any:  # noqa: ANN401, JSON both
    """The response with these faults, which end afterwards."""
    proxy.faults(faults)
    try:
        return json.loads(ask(proxy, body)[2])
    finally:
        proxy.faults("")


HEADERS = st.lists(st.sampled_from(["X-Ethereum: 1", "accept: */*", "Accept-Encoding: gzip"]))


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300), HEADERS, st.booleans()),
                min_size=1, max_size=4))  # fmt: skip
def test_without_faults_no_byte_is_changed(
    behind: Canned, proxy: Proxy, exchanges: list[tuple[bytes, bytes, list[str], bool]]
) -> None:
    requests, answers = [], []
    for asked, said, headers, chunked in exchanges:
        lines = "".join(each + "\r\n" for each in headers).encode()
        requests.append(
            b"POST /x?y HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (lines, len(asked), asked)
        )
        framed = (
            b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(said), said)
            if chunked and said
            else b"Content-Length: %d\r\n\r\n%s" % (len(said), said)
        )
        answers.append(b"HTTP/1.1 418 Odd\r\nDate: now\r\n" + framed)
    behind.heard.clear()
    left = list(answers)
    behind.answer = lambda _: left.pop(0)
    try:
        assert raw_answers(proxy.url, requests, len(answers)) == answers
        assert behind.heard == requests
    finally:
        behind.answer = answer


@pytest.mark.heavy
def test_a_real_chain_is_shown_as_it_is(upstream: Dev) -> None:
    body = json.dumps([question("eth_getBlockByNumber", "0x0", True), question("eth_chainId")])
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body)
    with weather_proxy(upstream.main.url) as proxy:
        (direct,) = raw_answers(upstream.main.url, [request + body.encode()], 1)
        (through,) = raw_answers(proxy.url, [request + body.encode()], 1)
    assert through.partition(b"\r\n\r\n")[2] == direct.partition(b"\r\n\r\n")[2]
    assert b"Foreblock-Snapshot" in through


def test_requests_are_counted_by_method_and_unit(behind: Canned) -> None:
    with weather_proxy(behind.url) as proxy:
        ask(proxy, question("eth_call", {}, "latest"))
        ask(proxy, [question("eth_getProof", ADDRESS, [], "latest"), question("eth_blockNumber")])
        found = proxy.tell(exchanges=0)
    assert (found["requests"], found["items"], found["units"]) == (2, 3, 26 + 20 + 10)
    assert found["methods"] == {"eth_call": 1, "eth_getProof": 1, "eth_blockNumber": 1}
    assert sum(each[0] for each in found["seconds"]) == 2
    assert [each[2] for each in found["exchanges"]] == [
        ["eth_call"], ["eth_getProof", "eth_blockNumber"],
    ]  # fmt: skip


def test_every_kind_can_be_written_and_read() -> None:
    rates = parse(",".join(f"{name}=0.5:3" for name in KINDS))
    assert parse(words(rates)) == rates
    assert len(KINDS) >= 30
    assert set(LIES).isdisjoint({"delay", "429", "hang"})
    assert {"delay", "reset", "drip"} <= set(STORMS)
    with pytest.raises(ValueError, match="no fault is called"):
        parse("thunder=1")


@pytest.mark.parametrize(
    ("faults", "status", "header"),
    [
        ("429=1", 429, None),
        ("429-after=1:7", 429, "7"),
        ("5xx=1", None, None),
        ("html=1", 200, None),
    ],
)
def test_it_answers_instead(
    proxy: Proxy, faults: str, status: int | None, header: str | None
) -> None:
    proxy.faults(faults)
    found, headers, body = ask(proxy, question("eth_blockNumber"))
    proxy.faults("")
    assert found == status or (status is None and found in {502, 503, 504})
    assert headers.get("Retry-After") == header
    assert (b"<html>" in body) == (faults == "html=1")


@pytest.mark.parametrize("kind", ["reset", "cut"])
def test_it_breaks_the_connection(proxy: Proxy, kind: str) -> None:
    proxy.faults(f"{kind}=1")
    with pytest.raises((HTTPException, OSError)):
        ask(proxy, question("eth_getProof", ADDRESS, [], "latest"))
    proxy.faults("")


def test_gzip_ends_in_the_middle(proxy: Proxy) -> None:
    proxy.faults("truncated-gzip=1")
    _, headers, body = ask(proxy, question("eth_getProof", ADDRESS, [], "latest"))
    proxy.faults("")
    assert headers["Content-Encoding"] == "gzip"
    with pytest.raises(EOFError):
        gzip.decompress(body)


@pytest.mark.parametrize("faults", ["delay=1:0.02", "jitter=1:0.02", "drip=1:0.001"])
def test_late_is_not_wrong(proxy: Proxy, faults: str) -> None:
    proof = question("eth_getProof", ADDRESS, ["0x0"], "latest")
    assert asked_with(proxy, faults, proof)["result"] == PROOF
    assert proxy.tell()["struck"][faults.partition("=")[0]] >= 1


@pytest.mark.parametrize("way", ["hang=1", "silent"])
def test_there_is_no_answer_until_it_ends(proxy: Proxy, way: str) -> None:
    before = proxy.tell()
    answered: list[int] = []

    def wait() -> None:
        try:
            answered.append(ask(proxy, question("eth_blockNumber"))[0])
        except (HTTPException, OSError):
            answered.append(0)

    if way == "silent":
        proxy.silent(PATIENCE)
    else:
        proxy.faults(way)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    until(lambda: proxy.tell()["requests"] > before["requests"], "the request has come")
    assert not answered
    assert proxy.tell()["answered"] == before["answered"]
    proxy.faults("")
    if way == "silent":
        proxy.silent(0)
        thread.join(PATIENCE)
        assert answered == [200]


PROOF_AT = {"number": "0x60", "hash": HASH, "object": {"blockHash": HASH}, "tag": "latest"}


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("header-not-found", {"number", "hash", "object"}),
        ("no-proofs", {"number", "hash", "object", "tag"}),
        ("number-only", {"hash", "object"}),
        ("hash-objects", {"hash"}),
    ],
)
def test_some_endpoints_refuse_some_blocks(proxy: Proxy, kind: str, refused: set[str]) -> None:
    batch = [question("eth_getProof", ADDRESS, [], block) for block in PROOF_AT.values()]
    found = asked_with(proxy, f"{kind}=1", batch)
    errors = {name for name, each in zip(PROOF_AT, found, strict=True) if "error" in each}
    assert errors == refused


def test_proofs_are_at_the_tip_only(proxy: Proxy) -> None:
    proxy.faults("tip-only-proofs=1")

    def answered(block: Any) -> bool:  # noqa: ANN401, a block parameter
        return "result" in json.loads(ask(proxy, question("eth_getProof", ADDRESS, [], block))[2])

    until(lambda: answered("0x64"), "it knows the tip")
    assert [answered(each) for each in ("0x63", HASH, {"blockHash": HASH}, "latest")] == [
        False, True, True, True,
    ]  # fmt: skip
    proxy.faults("")


def test_calls_have_no_overrides(proxy: Proxy) -> None:
    plain, over = question("eth_call", {}, "latest"), question("eth_call", {}, "latest", {"a": {}})
    assert "result" in asked_with(proxy, "no-overrides=1", plain)
    assert asked_with(proxy, "no-overrides=1", over)["error"]["code"] == -32602


def test_heights_go_back_and_forth(proxy: Proxy) -> None:
    proxy.faults("heights=1")
    until(lambda: proxy.tell(journal=True) and _height(proxy) != 100, "it is another height")
    seen = [_height(proxy) for _ in range(6)]
    proxy.faults("")
    assert sorted(set(seen)) == [98, 99, 100]
    assert any(later < before for before, later in pairwise(seen))


def _height(proxy: Proxy) -> int:
    return int(json.loads(ask(proxy, question("eth_blockNumber"))[2])["result"], 16)


def test_a_batch_loses_its_order_or_an_item(proxy: Proxy) -> None:
    batch = [question("eth_getStorageAt", ADDRESS, hex(at), "latest", number=at) for at in range(9)]
    mixed = asked_with(proxy, "reordered=1", batch)
    assert [each["id"] for each in mixed] != list(range(9))
    assert sorted(each["id"] for each in mixed) == list(range(9))
    assert all(int(each["result"], 16) == each["id"] for each in mixed)
    assert len(asked_with(proxy, "missing-item=1", batch)) == 8
    assert all("error" in each for each in asked_with(proxy, "no-batches=1", batch))


def test_an_id_is_anothers(proxy: Proxy) -> None:
    assert asked_with(proxy, "wrong-id=1", question("eth_blockNumber"))["id"] == 2


def test_another_keys_answer_is_given(proxy: Proxy) -> None:
    for slot in ("0x1", "0x2"):
        asked_with(proxy, "null=0.0001", question("eth_getStorageAt", ADDRESS, slot, "latest"))
    found = asked_with(
        proxy, "another-key=1", question("eth_getStorageAt", ADDRESS, "0x9", "latest")
    )
    assert int(found["result"], 16) != 9
    assert proxy.journal()[-1]["how"].startswith("that of")


def bits(one: str, other: str) -> int:
    return (int(one, 16) ^ int(other, 16)).bit_count()


@pytest.mark.parametrize(
    ("kind", "method", "params"),
    [
        ("flip-value", "eth_getStorageAt", (ADDRESS, "0x2a", "latest")),
        ("flip-value", "eth_getBalance", (ADDRESS, "latest")),
        ("flip-value", "eth_call", ({}, "latest")),
        ("flip-code", "eth_getCode", (ADDRESS, "latest")),
    ],
)
def test_one_bit_is_flipped(proxy: Proxy, kind: str, method: str, params: tuple[Any, ...]) -> None:
    asked = question(method, *params)
    found = asked_with(proxy, f"{kind}=1", asked)["result"]
    assert bits(found, str(result_of(asked))) == 1
    assert len(found) == len(str(result_of(asked)))


def changed(one: Any, other: Any) -> list[tuple[str, str]]:  # noqa: ANN401, JSON
    """The texts that differ."""
    if isinstance(one, dict):
        return [each for key in one for each in changed(one[key], other[key])]
    if isinstance(one, list):
        return [each for pair in zip(one, other, strict=True) for each in changed(*pair)]
    return [] if one == other else [(one, other)]


@pytest.mark.parametrize("kind", ["flip-value", "flip-node"])
def test_one_bit_of_a_proof_is_flipped(proxy: Proxy, kind: str) -> None:
    for _ in range(10):
        found = asked_with(proxy, f"{kind}=1", question("eth_getProof", ADDRESS, ["0x0"], "latest"))
        ((before, after),) = changed(PROOF, found["result"])
        assert bits(before, after) == 1
        assert (before in NODES) == (kind == "flip-node")


def test_one_bit_of_a_header_is_flipped(proxy: Proxy) -> None:
    asked = question("eth_getBlockByNumber", "0x64", False)
    ((before, after),) = changed(
        result_of(asked), asked_with(proxy, "flip-header=1", asked)["result"]
    )
    assert bits(before, after) == 1


@pytest.mark.parametrize(("kind", "nodes"), [("empty-proof", -1), ("extra-nodes", 1),
                                              ("long-proof=1:500", 400)])  # fmt: skip
def test_a_proof_has_another_length(proxy: Proxy, kind: str, nodes: int) -> None:
    word = kind if "=" in kind else f"{kind}=1"
    found = asked_with(proxy, word, question("eth_getProof", ADDRESS, ["0x0"], "latest"))["result"]
    lengths = [len(found["accountProof"]), len(found["storageProof"][0]["proof"])]
    grown = sum(lengths) - 5
    assert grown == 1 if nodes == 1 else (grown < 0 if nodes < 0 else grown >= nodes)


@pytest.mark.heavy
def test_equal_seeds_damage_the_same_answers(behind: Canned) -> None:
    told = []
    for seed in (1, 1, 2):
        with weather_proxy(behind.url, "flip-value=0.3,null=0.1,429=0.1", seed=seed) as proxy:
            for at in range(60):
                ask(proxy, question("eth_getStorageAt", ADDRESS, hex(at), "latest"))
            told.append([(each["kind"], each["how"]) for each in proxy.journal()])
    assert told[0] == told[1] != told[2]
    assert 10 < len(told[0]) < 50


def test_a_slot_is_lied_about(proxy: Proxy) -> None:
    slot = question("eth_getStorageAt", ADDRESS, "0x5", "latest")
    proof = question("eth_getProof", ADDRESS, ["0x0"], "latest", number=2)
    proxy.lie((ADDRESS.upper().replace("X", "x"), "0x05", "0x63"), (ADDRESS, "0x0", "0x64"))
    read, proven = json.loads(ask(proxy, [slot, proof])[2])
    proxy.lie()
    assert int(read["result"], 16) == 0x63
    assert proven["result"]["storageProof"][0]["value"] == "0x64"
    assert proven["result"]["storageProof"][0]["proof"] == NODES[:2]
    assert int(json.loads(ask(proxy, slot)[2])["result"], 16) == 5
