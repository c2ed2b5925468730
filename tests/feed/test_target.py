"""Addresses of feeds."""

import pytest

from foreblock.errors import InvalidArgument
from foreblock.feed.subscription import Subscription, parse_target
from foreblock.feed.target import begin_after, check_url
from foreblock.types import FlashblockId


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:8546/ws", "wss://mainnet.flashblocks.base.org/ws", "ws://[::1]:1/ws"]
)
def test_addresses_of_websockets_are_taken(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
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
    url = begin_after("ws://here/ws?compression=brotli", FlashblockId(7, 3))
    assert url == "ws://here/ws?compression=brotli&from=7-4"
    wanted = Subscription(brotli=True, since=FlashblockId(7, 4))
    assert parse_target(url.removeprefix("ws://here")) == wanted


def test_who_is_nowhere_asks_for_all_there_is() -> None:
    assert begin_after("ws://here/ws", None) == "ws://here/ws?from=0-0"


def test_what_the_operator_wrote_stays() -> None:
    assert begin_after("ws://here/ws?from=1-2", FlashblockId(7, 3)) == "ws://here/ws?from=1-2"
