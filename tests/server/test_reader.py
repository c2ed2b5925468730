"""Segmentation and cached heads make no difference."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.server.checks import AcceptedHead, RefusedRequest, RequestRules, check
from foreblock.server.endpoint import LONGEST, MOST, HeadCache
from foreblock.server.head import RequestHead
from foreblock.settings import Access
from support.servers.wire import LIMITS, Wire, answer, answers, echo, endpoint_for, post, raw
from support.strategies.requests_strategy import conversations, cut_conversations

ACCESS = Access(cors_origins=("https://app.example",))


class Forgetful(HeadCache):
    """Caches no head."""

    def remember(self, *_: object) -> None:
        pass

    def judge(self, head: RequestHead, rules: RequestRules) -> AcceptedHead | RefusedRequest:
        return check(head, rules)


def talk(pieces: list[bytes], *, knows_heads: bool = True) -> tuple[bytes, bool]:
    endpoint = endpoint_for(echo, LIMITS, ACCESS)
    if not knows_heads:
        endpoint.heads = Forgetful()  # type: ignore[misc] # a test may
    wire = Wire(echo, endpoint=endpoint)
    return wire.send(*pieces), wire.over()


@given(cut_conversations())
def test_cuts_make_no_difference(conversation: tuple[bytes, list[bytes]]) -> None:
    whole, pieces = conversation
    expected = talk([whole])
    assert talk(pieces) == expected
    answers(expected[0])


@given(conversations)
def test_single_bytes_make_no_difference(whole: bytes) -> None:
    assert talk([bytes([each]) for each in whole]) == talk([whole])


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), cut_conversations())
def test_known_heads_make_no_difference(
    order: list[int], conversation: tuple[bytes, list[bytes]]
) -> None:
    """Requests repeat, like those of one client, whole, in pieces and mixed with others."""
    requests = [
        post(b"a"), post(b"bb", b"X: 1"), post(b"bb", b"X: 2"),
        post(b"c", b"Origin: https://app.example"),
    ]  # fmt: skip
    pieces = [requests[each] for each in order] + conversation[1]
    pieces = [each for each in pieces if each]
    assert talk(pieces) == talk(pieces, knows_heads=False)


def test_head_and_body_in_two_pieces_take_the_known_head() -> None:
    wire = Wire(echo)
    request = post(b"body")
    head = request[: -len(b"body")]
    wire.send(request)
    assert wire.send(head) == b""
    assert answer(wire.send(b"body")).text == "<body>"


def test_known_head_without_its_end_is_waited_for() -> None:
    """Its length is zero, so only the missing end shows that it is incomplete."""
    wire = Wire(echo)
    request = post(b"")
    assert answer(wire.send(request)).text == "<>"
    assert wire.send(request.removesuffix(b"\r\n\r\n")) == b""
    assert answer(wire.send(b"\r\n\r\n")).text == "<>"


def remembered(request: bytes) -> int:
    wire = Wire(echo)
    wire.send(request)
    return len(wire.endpoint.heads)


def test_only_heads_that_may_come_again_are_remembered() -> None:
    line, host, json = b"POST / HTTP/1.1", b"Host: localhost", b"Content-Type: application/json"
    length = b"Content-Length: 2"
    assert remembered(post()) == 1
    refused = [
        raw(b"POST / HTTP/1.0", host, json, b"Connection: keep-alive", length, body=b"{}"),
        raw(line, host, json, length, b"Connection: close", body=b"{}"),
        raw(line, host, json, length, b"Expect: 100-continue", body=b"{}"),
        raw(line, host, json, length, b"Upgrade: h2c", body=b"{}"),
        raw(line, host, json, b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        raw(line, host, json),
        raw(line, host, length, body=b"{}"),
        raw(line, b"Host: evil.example", json, length, body=b"{}"),
        raw(b"POST /x HTTP/1.1", host, json, length, body=b"{}"),
        raw(b"GET / HTTP/1.1", host),
    ]
    assert [remembered(each) for each in refused] == [0] * len(refused)


def test_heads_are_bounded_in_length_and_number() -> None:
    wire = Wire(echo)
    wire.send(post())
    (accepted,) = wire.endpoint.heads.values()
    heads = HeadCache()
    heads.remember(b"x" * (LONGEST + 1), accepted)
    assert not heads
    for number in range(MOST):
        heads.remember(b"%d" % number, accepted)
    assert len(heads) == MOST
    heads.remember(b"one more", accepted)
    assert list(heads) == [b"one more"]
