"""Addresses of feeds."""

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import InvalidArgument
from foreblock.feed.wire import Refusal, Subscription, check_url, parse_target, resume_after
from foreblock.types import FlashblockId
from support.each_case import each_case


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:8546/ws", "wss://mainnet.flashblocks.base.org/ws", "ws://[::1]:1/ws"]
)
def test_addresses_of_websockets_are_taken(url: str) -> None:
    check_url(url)


@each_case(
    "url",
    [
        "", "http://here/ws", "ws://", "ws:///ws", "here:8546", "ws://here:0/ws",
        "ws://here:99999/ws", "ws://[::1/ws", "ws://here/ws#part", "ws://" + "a" * 64 + ".org/ws",
    ],
)  # fmt: skip
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a URL"):
        check_url(url)


def test_a_feed_is_asked_for_what_follows_a_place() -> None:
    url = resume_after("ws://here/ws?compression=brotli", FlashblockId(7, 3))
    assert url == "ws://here/ws?compression=brotli&from=7-4"
    wanted = Subscription(brotli=True, since=FlashblockId(7, 4))
    assert parse_target(url.removeprefix("ws://here")) == wanted


def test_who_is_nowhere_asks_for_all_there_is() -> None:
    assert resume_after("ws://here/ws", None) == "ws://here/ws?from=0-0"


def test_what_the_operator_wrote_stays() -> None:
    assert resume_after("ws://here/ws?from=1-2", FlashblockId(7, 3)) == "ws://here/ws?from=1-2"


@each_case(
    ("target", "subscription"),
    [
        ("/ws", Subscription(brotli=False, since=None)),
        ("/ws?", Subscription(brotli=False, since=None)),
        ("/ws?compression=none", Subscription(brotli=False, since=None)),
        ("/ws?compression=brotli", Subscription(brotli=True, since=None)),
        ("/ws?from=7-3", Subscription(brotli=False, since=FlashblockId(7, 3))),
        ("/ws?from=0-0", Subscription(brotli=False, since=FlashblockId(0, 0))),
        ("/ws?compression=brotli&from=7-3&other=1", Subscription(True, FlashblockId(7, 3))),
    ],
)
def test_what_can_be_asked_for(target: str, subscription: Subscription) -> None:
    assert parse_target(target) == subscription


@each_case(
    ("target", "status"),
    [
        ("/", HTTPStatus.NOT_FOUND),
        ("/ws/", HTTPStatus.NOT_FOUND),
        ("/ws/key", HTTPStatus.NOT_FOUND),
        ("", HTTPStatus.NOT_FOUND),
        ("/WS", HTTPStatus.NOT_FOUND),
        ("/ws?compression=gzip", HTTPStatus.BAD_REQUEST),
        ("/ws?from=", HTTPStatus.BAD_REQUEST),
        ("/ws?from=7", HTTPStatus.BAD_REQUEST),
        ("/ws?from=7-03", HTTPStatus.BAD_REQUEST),
        (f"/ws?from={2**64}-0", HTTPStatus.BAD_REQUEST),
        ("/ws?" + 17 * "a=1&", HTTPStatus.BAD_REQUEST),
        ("http://[/ws", HTTPStatus.BAD_REQUEST),
    ],
)
def test_what_is_refused(target: str, status: HTTPStatus) -> None:
    refusal = parse_target(target)
    assert isinstance(refusal, Refusal)
    assert refusal.status == status
    assert refusal.text


@given(st.text(max_size=50) | st.text(max_size=50).map("/ws?".__add__))
def test_any_target_is_answered(target: str) -> None:
    assert isinstance(parse_target(target), Subscription | Refusal)
