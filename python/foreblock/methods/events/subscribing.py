"""eth_subscribe, eth_unsubscribe: read the kind, its options and the cursor to resume from.

The first argument names the kind; the others are its own, as in geth and on public nodes. A
last argument `{"cursor": …}` resumes: the cursor comes with every notification. Without one a
subscription begins with the state that its own request sees.
"""

from collections.abc import Callable, Hashable
from typing import Annotated, Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Raw, Struct

from foreblock.errors import (
    CursorTooOld,
    InvalidParams,
    NotificationsUnsupported,
    UnknownSubscription,
)
from foreblock.ledger.reading.events import Cursor, read_cursor
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.events.delivery import Delivery, Subscriber
from foreblock.methods.events.flashblock_kinds import (
    FlashblockTransactions,
    NewestWanted,
    NewFlashblocks,
    TransactionsWanted,
)
from foreblock.methods.events.kinds import FLASHBLOCKS, NEW_HEADS, SEALED, Kind, Wanted
from foreblock.methods.events.log_index import LogsWanted
from foreblock.methods.events.log_kinds import LogKind, read_wanted
from foreblock.methods.params import DECODING, Params, reader, refuse
from foreblock.scheduling.thresholds import THRESHOLDS

NOTIFICATION: Final = b"eth_subscription"
NOT_SYNCING: Final = b"false}}"  # the rest of the one notification of `syncing`


class Subscribed(Subscriber, Protocol):
    """A subscription that a client has been given."""

    @property
    def id(self) -> str: ...

    def when_replied(self, start: Callable[[], None]) -> None:
        """Call this once the client knows the id."""


class Subscribers(Protocol):
    """The connections that can have subscriptions."""

    def check_supported(self, client: Hashable | None) -> None:
        """Raises `NotificationsUnsupported`."""

    def subscribe(
        self,
        client: Hashable | None,
        notification: bytes,
        on_end: Callable[[Any], None],
        size: int = 0,
    ) -> Subscribed:
        """Raises `NotificationsUnsupported`, `TooManySubscriptions`, `SubscriptionsTooLarge`."""

    def unsubscribe(self, client: Hashable | None, id: str) -> None:
        """Raises `SubscriptionNotFound`."""


class NoSubscribers:
    """The subscribers of a service without connections that can be notified."""

    def check_supported(self, client: Hashable | None) -> None:  # noqa: ARG002, as in the protocol
        raise NotificationsUnsupported

    def subscribe(
        self,
        client: Hashable | None,  # noqa: ARG002, as in the protocol
        notification: bytes,  # noqa: ARG002, as in the protocol
        on_end: Callable[[Any], None],  # noqa: ARG002, as in the protocol
        size: int = 0,  # noqa: ARG002, as in the protocol
    ) -> Subscribed:
        raise NotificationsUnsupported

    def unsubscribe(self, client: Hashable | None, id: str) -> None:  # noqa: ARG002, as in the protocol
        raise NotificationsUnsupported


class _Resume(Struct, forbid_unknown_fields=True):
    cursor: str


class _Newest(Struct, forbid_unknown_fields=True):
    newest: Annotated[int, Meta(ge=0)]


class _Full(Struct, rename="camel", forbid_unknown_fields=True):
    include_transactions: bool = False


class UnsubscribeParams(Params):
    """The arguments of eth_unsubscribe."""

    id: str


_read_unsubscribe = reader(UnsubscribeParams)
_decode_arguments = msgspec.json.Decoder(list[Raw]).decode
_decode_name = msgspec.json.Decoder(str).decode
_decode_resume = msgspec.json.Decoder(_Resume).decode
_decode_newest = msgspec.json.Decoder(_Newest).decode
_decode_choice = msgspec.json.Decoder(bool | _Full | None).decode


class SubscriptionRequest(NamedTuple):
    """A requested subscription."""

    kind: Kind
    wanted: Wanted


class SubscriptionMethods:
    """The methods of subscriptions."""

    def __init__(
        self, delivery: Delivery, subscribers: Subscribers, blocks: NewFlashblocks
    ) -> None:
        self._delivery: Final = delivery
        self._subscribers: Final = subscribers
        transactions = FlashblockTransactions()
        logs, pending_logs = LogKind("l", SEALED), LogKind("p", FLASHBLOCKS)
        # From the arguments after the name to the subscribed events.
        self._kinds: Final[dict[str, Callable[[list[Raw]], SubscriptionRequest]]] = {
            "newHeads": lambda given: SubscriptionRequest(NEW_HEADS, _no_options(given)),
            "logs": lambda given: SubscriptionRequest(logs, _logs(given)),
            "pendingLogs": lambda given: SubscriptionRequest(pending_logs, _logs(given)),
            "newFlashblocks": lambda given: SubscriptionRequest(blocks, _newest(given)),
            "newFlashblockTransactions": lambda given: SubscriptionRequest(
                transactions, TransactionsWanted(full=_choice(given))
            ),
            "newPendingTransactions": lambda given: SubscriptionRequest(
                transactions, TransactionsWanted(full=_choice(given), of_pool=True)
            ),
        }

    def subscribe(self, view: LedgerView, raw: Raw) -> bytes:
        """The id of a new subscription, whose notifications follow on the same connection."""
        self._subscribers.check_supported(view.client)
        name, given = _read_arguments(raw)
        if name == "syncing":
            _no_options(given)
            return self._subscribe_syncing(view)
        read = self._kinds.get(name)
        if read is None:
            raise UnknownSubscription(name)
        given, cursor = _take_cursor(given)
        request = read(given)
        position = _position(view, request.kind, cursor, len(given) + 1)
        size = request.wanted.size if isinstance(request.wanted, LogsWanted) else 0
        subscription = self._subscribers.subscribe(
            view.client, NOTIFICATION, self._delivery.remove, size
        )
        subscription.when_replied(lambda: self._delivery.add(subscription, *request, position))
        return b'"%b"' % subscription.id.encode()

    def unsubscribe(self, view: LedgerView, raw: Raw) -> bytes:
        """True once the subscription has ended."""
        self._subscribers.unsubscribe(view.client, _read_unsubscribe(raw).id)
        return b"true"

    def _subscribe_syncing(self, view: LedgerView) -> bytes:
        """The chain is never syncing, so one notification is sent."""
        subscription = self._subscribers.subscribe(view.client, NOTIFICATION, self._delivery.remove)

        def say() -> None:
            subscription.notify(NOT_SYNCING)

        subscription.when_replied(say)
        return b'"%b"' % subscription.id.encode()


def _read_arguments(raw: Raw) -> tuple[str, list[Raw]]:
    """The name of the kind, and the other arguments; nulls at the end do not count."""
    try:
        name, *given = _decode_arguments(raw)
        found = _decode_name(name)
    except (*DECODING, ValueError):
        raise InvalidParams("expected subscription name as first argument") from None
    while given and bytes(given[-1]) == b"null":
        given.pop()
    return found, given


def _take_cursor(given: list[Raw]) -> tuple[list[Raw], str | None]:
    """The arguments without the last one if that is a cursor."""
    if given:
        try:
            return given[:-1], _decode_resume(given[-1]).cursor
        except DECODING:
            pass
    return given, None


def _position(view: LedgerView, kind: Kind, cursor: str | None, argument: int) -> Cursor:
    """Return the position at which a subscription starts; raises `CursorTooOld`."""
    if cursor is None:
        return kind.track.end(view)
    position = read_cursor(cursor[1:])
    if position is None:
        refuse(argument, "$.cursor", "not a cursor of this service")
    if cursor[0] != kind.code:
        refuse(argument, "$.cursor", "the cursor is of another kind of subscription")
    if position.number < view.latest.number - THRESHOLDS.resumed_blocks:
        raise CursorTooOld
    kind.track.next(view, position)  # raises if the store does not have the events after it
    return position


def _no_options(given: list[Raw]) -> Wanted:
    if given:
        raise InvalidParams("too many arguments, want at most 1")
    return None


def _logs(given: list[Raw]) -> LogsWanted:
    if len(given) > 1:
        raise InvalidParams("too many arguments, want at most 2")
    return read_wanted(given[0] if given else Raw(b"null"), 1)


def _newest(given: list[Raw]) -> Wanted:
    if len(given) > 1:
        raise InvalidParams("too many arguments, want at most 2")
    if not given:
        return None
    try:
        return NewestWanted(_decode_newest(given[0]).newest)
    except DECODING:
        refuse(1, "", 'expected {"newest": NUMBER}')


def _choice(given: list[Raw]) -> bool:
    if len(given) > 1:
        raise InvalidParams("too many arguments, want at most 2")
    if not given:
        return False
    try:
        chosen = _decode_choice(given[0])
    except DECODING:
        refuse(1, "", "expected true or false")
    return chosen.include_transactions if isinstance(chosen, _Full) else bool(chosen)
