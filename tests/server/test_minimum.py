"""Minimum commits in requests: in headers and in the query of a handshake."""

import re

from hypothesis import given
from hypothesis import strategies as st

from foreblock.scheduling.reply import Minimum, Missing
from foreblock.server.answers import Answer
from foreblock.server.checks import MIN_COMMIT, MIN_PLACE, read_minimum
from foreblock.server.head import RequestHead
from foreblock.settings import Access
from support.each_case import each_case
from support.servers.wire import Wire, answer, echo, endpoint_for, post, raw

COMMIT, PLACE = b"Foreblock-Min-Commit: ", b"Foreblock-Min-Place: "
LARGEST = 2**64 - 1

numbers = st.integers(0, LARGEST)
waits = st.none() | st.integers(0, 10**9 - 1)
spaces = st.sampled_from(["", " ", "\t", "  "])


def head(*headers: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"POST", b"/", "1.1", True, headers)


def with_wait(text: str, wait: int | None, space: str) -> bytes:
    return (text if wait is None else f"{text}{space};{space}wait={wait}").encode()


@given(numbers, st.booleans(), waits, spaces)
def test_commits(number: int, in_hex: bool, wait: int | None, space: str) -> None:
    value = with_wait(hex(number) if in_hex else str(number), wait, space)
    assert read_minimum(head((MIN_COMMIT, value))) == Minimum(number, None, wait)
    query = b"a=b&min_commit=" + value.replace(b" ", b"%20").replace(b"\t", b"%09")
    assert read_minimum(head(), query.replace(b";", b"%3B")) == Minimum(number, None, wait)


@given(numbers, numbers, waits, spaces)
def test_places(number: int, index: int, wait: int | None, space: str) -> None:
    value = with_wait(f"{number:#x}.{index}", wait, space)
    assert read_minimum(head((MIN_PLACE, value))) == Minimum(0, (number, index), wait)


@given(numbers, waits, numbers, numbers, waits)
def test_both_are_demanded_and_the_shorter_wait_counts(
    commit: int, wait: int | None, number: int, index: int, other_wait: int | None
) -> None:
    values = with_wait(str(commit), wait, ""), with_wait(f"{number:#x}.{index}", other_wait, "")
    found = read_minimum(head((MIN_PLACE, values[1]), (MIN_COMMIT, values[0])))
    given_waits = [each for each in (wait, other_wait) if each is not None]
    assert found == Minimum(commit, (number, index), min(given_waits, default=None))


@given(st.binary(max_size=40), st.sampled_from([MIN_COMMIT, MIN_PLACE]))
def test_other_values_are_refused(value: bytes, name: bytes) -> None:
    form = rb"(0x[0-9a-fA-F]+|[0-9]+)" if name == MIN_COMMIT else rb"0x[0-9a-fA-F]+\.[0-9]+"
    found = read_minimum(head((name, value)))
    if re.fullmatch(form + rb"([ \t]*;[ \t]*wait=[0-9]+)?", value) is None:
        assert isinstance(found, Answer)


@each_case(
    "lines",
    [
        (COMMIT,), (COMMIT + b"x",), (COMMIT + b"-1",), (COMMIT + b"1.5",), (COMMIT + b"1e3",),
        (COMMIT + b"%d" % 2**64,), (COMMIT + b"0x1" + b"0" * 16,), (COMMIT + b"5, 6",),
        (COMMIT + b"5; wait=",), (COMMIT + b"5; wait=-1",), (COMMIT + b"5; wait=1s",),
        (COMMIT + b"5; wait=1; wait=2",), (COMMIT + b"5;",), (COMMIT + b"5; patience=1",),
        (COMMIT + b"5", COMMIT + b"5"), (COMMIT + "\u0665".encode(),), (COMMIT + b"1_0",),
    ],
)  # fmt: skip
def test_a_commit_that_cannot_be_read_is_refused_and_the_connection_goes_on(
    lines: tuple[bytes, ...],
) -> None:
    wire = Wire(echo)
    found = answer(wire.send(post(b"a", *lines)))
    assert found.status == 400
    assert found.text.startswith("bad request: ")
    assert "Foreblock-Min-Commit is not the number" in found.text or "more than one" in found.text
    assert answer(wire.send(post(b"b"))).text == "<b>"


@each_case("value", [b"", b"0x37", b"55.4", b"0x37.", b"0x37.0x4", b"0x.4", b"0x37.4.1", b"0x37:4"])
def test_a_place_that_cannot_be_read_is_refused(value: bytes) -> None:
    found = answer(Wire(echo).send(post(b"a", PLACE + value)))
    assert found.status == 400
    assert "Foreblock-Min-Place is not the place of a flashblock, as in 0x37.4" in found.text


def test_requests_that_read_no_state_are_not_affected() -> None:
    wire = Wire(echo)
    for target, status in ((b"/healthz", 200), (b"/readyz", 503), (b"/", 200), (b"/no", 404)):
        for value in (b"99999", b"x"):
            lines = b"GET %b HTTP/1.1\r\nHost: localhost\r\n" % target
            found = answer(wire.send(lines + COMMIT + value + b"\r\n\r\n"))
            assert found.status == status


def test_a_query_of_a_post_is_ignored() -> None:
    request = post(b"a").replace(b"POST / ", b"POST /?min_commit=x ")
    assert answer(Wire(echo).send(request)).text == "<a>"


def test_heads_with_minimums_are_not_remembered_and_others_are() -> None:
    wire = Wire(echo)
    for number in range(3):
        wire.send(post(b"1", COMMIT + b"%d" % number))
        wire.send(post(b"1", PLACE + b"0x1.%d" % number))
    assert len(wire.endpoint.heads) == 0
    wire.send(post(b"1"))
    assert len(wire.endpoint.heads) == 1


def test_pages_may_send_minimums_and_read_the_refusal() -> None:
    access = Access(hosts=("localhost",), cors_origins=("https://page.example",))
    missing = Missing("commit 57 is not here yet, this instance is at 56")
    endpoint = endpoint_for(echo, access=access, check_minimum=lambda _: missing)
    origin = b"Origin: https://page.example"
    preflight = raw(
        b"OPTIONS / HTTP/1.1",
        b"Host: localhost",
        origin,
        b"Access-Control-Request-Method: POST",
        b"Access-Control-Request-Headers: content-type,foreblock-min-commit",
    )
    allowed = answer(Wire(echo, endpoint=endpoint).send(preflight))
    assert "foreblock-min-commit" in allowed.headers["access-control-allow-headers"]
    refused = answer(Wire(echo, endpoint=endpoint).send(post(b"a", origin, COMMIT + b"57")))
    assert (refused.status, refused.text) == (503, f"{missing.text}\n")
    assert refused.headers["access-control-allow-origin"] == "https://page.example"
