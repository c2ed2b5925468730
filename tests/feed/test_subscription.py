from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.subscription import Refusal, Subscription, parse_target
from foreblock.types import FlashblockId


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
