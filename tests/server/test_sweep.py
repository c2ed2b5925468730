"""Timeouts, with a driven clock."""

import pytest

from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.sweep import LINGER_SECONDS
from foreblock.settings import ServerLimits
from support.servers.wire import Wire, answer, echo, endpoint_for, post

PORTION = THRESHOLDS.piece_bytes
LIMITS = ServerLimits(header_timeout=3, body_timeout=5, idle_timeout=20, write_timeout=7)
SLACK = 1.1  # a connection is checked once a second


def test_resting_connection_is_closed_without_an_answer() -> None:
    wire = Wire(echo, LIMITS)
    wire.advance_seconds(LIMITS.idle_timeout - 0.1)
    assert not wire.over()
    wire.advance_seconds(SLACK)
    assert wire.over()
    assert wire.out == b""


def test_each_request_gives_new_time_to_rest() -> None:
    wire = Wire(echo, LIMITS)
    for _ in range(4):  # the first on the slow path, the others on the fast path
        wire.advance_seconds(LIMITS.idle_timeout * 0.7)
        assert answer(wire.send(post())).status == 200
    wire.advance_seconds(LIMITS.idle_timeout + SLACK)
    assert wire.over()


@pytest.mark.parametrize(
    ("beginning", "seconds"),
    [(b"P", LIMITS.header_timeout), (post(b"body")[:-1], LIMITS.body_timeout)],
    ids=["slow head", "slow body"],
)
def test_request_that_does_not_arrive_is_given_up(beginning: bytes, seconds: float) -> None:
    wire = Wire(echo, LIMITS)
    assert wire.send(beginning) == b""
    wire.advance_seconds(seconds - 0.1)
    assert not wire.over()
    wire.advance_seconds(SLACK)
    assert answer(wire.out).status == 408
    assert wire.over()


def test_dripping_a_head_gains_no_time() -> None:
    wire = Wire(echo, LIMITS)
    for byte in post()[:35]:
        wire.send(bytes([byte]))
        wire.advance_seconds(0.1)
    wire.advance_seconds(SLACK)
    assert answer(wire.out).status == 408


def test_dripping_a_body_gains_no_time() -> None:
    wire = Wire(echo, LIMITS)
    wire.send(post(b"x" * 100)[:-100])
    for _ in range(55):
        wire.send(b"x")
        wire.advance_seconds(0.1)
    wire.advance_seconds(SLACK)
    assert answer(wire.out).status == 408


def test_each_request_of_a_slow_client_has_its_own_time() -> None:
    wire = Wire(echo, LIMITS)
    request = post(b"body")
    for _ in range(4):
        wire.send(request[:20])
        wire.advance_seconds(2)
        wire.send(request[20:-1])
        wire.advance_seconds(4)
        # The rest, with the beginning of the next one in the same piece.
        assert answer(wire.send(request[-1:] + request[:1])).text == "<body>"
        wire.advance_seconds(2)
        assert answer(wire.send(request[1:])).text == "<body>"


def test_client_that_never_reads_is_dropped() -> None:
    wire = Wire(lambda *_: Reply(b"x" * 100_000), LIMITS)
    wire.transport.client_reads = False
    wire.send(post())
    wire.advance_seconds(LIMITS.write_timeout - 0.1)
    assert not wire.transport.is_closing()
    wire.advance_seconds(SLACK)
    assert wire.transport.aborted


def slow_reader(size: int, *headers: bytes) -> Wire:
    """A client with a response of this many bytes, which only the test reads."""
    wire = Wire(lambda *_: Reply(b"x" * size), LIMITS)
    wire.transport.client_reads = False
    wire.send(post(b"{}", *headers))
    return wire


@pytest.mark.parametrize("headers", [(), (b"Connection: close",)])
def test_a_client_that_reads_slowly_and_steadily_is_served_to_the_end(
    headers: tuple[bytes, ...],
) -> None:
    """Even if that takes much longer than the timeout."""
    wire = slow_reader(40 * PORTION, *headers)
    for _ in range(40):
        wire.advance_seconds(LIMITS.write_timeout * 0.6)
        wire.transport.client_takes(PORTION)
    assert wire.transport.stuck < PORTION
    wire.transport.client_takes_all()
    assert not wire.transport.aborted
    assert len(answer(wire.out).body) == 40 * PORTION


@pytest.mark.parametrize("headers", [(), (b"Connection: close",)])
def test_a_client_that_takes_a_few_bytes_now_and_then_is_dropped(
    headers: tuple[bytes, ...],
) -> None:
    wire = slow_reader(40 * PORTION, *headers)
    for _ in range(round(LIMITS.write_timeout) - 1):
        wire.transport.client_takes(1)
        wire.advance_seconds(1)
    assert not wire.transport.is_closing()
    wire.advance_seconds(SLACK + 1)
    assert wire.transport.aborted


def test_closing_waits_for_the_client_a_little() -> None:
    wire = Wire(echo, LIMITS)
    wire.send(post(b"{}", b"Connection: close"))
    assert wire.transport.ended
    wire.advance_seconds(LINGER_SECONDS - 0.1)
    assert not wire.transport.is_closing()
    wire.send(b"what is still on its way")
    wire.advance_seconds(SLACK)
    assert wire.transport.is_closing()
    assert not wire.transport.aborted


def test_closing_waits_longer_while_the_client_still_reads() -> None:
    wire = Wire(lambda *_: Reply(b"x" * 100), LIMITS)
    wire.transport.client_reads = False
    wire.send(post(b"{}", b"Connection: close"))
    wire.advance_seconds(LINGER_SECONDS + SLACK)
    assert not wire.transport.is_closing()
    wire.advance_seconds(LIMITS.write_timeout)
    assert wire.transport.aborted


def test_closed_by_the_client_is_closed_at_once() -> None:
    wire = Wire(echo, LIMITS)
    wire.send(post(b"{}", b"Connection: close"))
    wire.end()
    assert wire.transport.is_closing()
    assert wire.endpoint.ticker.count == 0


def test_date_follows_the_clock() -> None:
    now = [0.0]
    wire = Wire(echo, endpoint=endpoint_for(echo, LIMITS, wall_clock=lambda: now[0]))
    assert answer(wire.send(post())).headers["date"] == "Thu, 01 Jan 1970 00:00:00 GMT"
    now[0] = 86400.0
    wire.advance_seconds(1)
    assert answer(wire.send(post())).headers["date"] == "Fri, 02 Jan 1970 00:00:00 GMT"
