"""The counted size of a waiting message is at least its real size, for any content."""

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given

from foreblock.ledger.following.buffer import Buffered, Received, memory_of
from foreblock.types import ClaimedReceipt, Claims, Flashblock
from support.each_case import each_case
from support.payloads.flashblocks import first, flashblocks, hash_of, later, with_transactions

PLAIN = later(7, "p", 1, hash_of("h"))
BEGINS = first(7, "p", hash_of("g"), hash_of("h"))
WIDEST = 2**256 - 1


def claiming(*receipts: ClaimedReceipt, balances: int = 0) -> Flashblock:
    """A message with receipts and balances in its metadata."""
    by_hash = {number.to_bytes(32): each for number, each in enumerate(receipts)}
    held = {number.to_bytes(20): WIDEST - number for number in range(balances)}
    return replace(PLAIN, claims=Claims(by_hash, held))


def receipt(*logs: tuple[bytes, tuple[bytes, ...], bytes]) -> ClaimedReceipt:
    return ClaimedReceipt(True, 2**64 - 1, logs, 2**64 - 1)


def log(topics: int, data: int) -> tuple[bytes, tuple[bytes, ...], bytes]:
    return bytes(range(20)), tuple(number.to_bytes(32) for number in range(topics)), b"\1" * data


def taken(value: object) -> int:
    """The memory of a value with everything it refers to."""
    parts: list[object] = []
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, each.name) for each in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, tuple):
        parts = list(value)
    own = -sys.getsizeof(value) // 16 * -16  # as allocated
    return own + sum(map(taken, parts))


MESSAGES = {
    "nothing": PLAIN,
    "a base": BEGINS,
    "long extra data": replace(
        BEGINS, base=replace(BEGINS.base, extra_data=b"\1" * 1_000_000) if BEGINS.base else None
    ),
    "tiny transactions": with_transactions(PLAIN, *(bytes([1, n % 256]) for n in range(20_000))),
    "one large transaction": with_transactions(PLAIN, b"\1" * 1_000_000),
    "receipts": claiming(*(receipt() for _ in range(3_000))),
    "a log in each receipt": claiming(*(receipt(log(4, 32)) for _ in range(1_000))),
    "empty logs": claiming(receipt(*(log(0, 0) for _ in range(5_000)))),
    "topics": claiming(receipt(log(20_000, 0))),
    "data": claiming(receipt(log(0, 1_000_000))),
    "balances": claiming(balances=5_000),
}


@each_case("kind", MESSAGES)
def test_a_message_is_counted_as_what_it_takes_at_most(kind: str) -> None:
    received = Received("feed", memory_of(MESSAGES[kind]), MESSAGES[kind], 10**15)
    assert taken(received) <= received.size <= 4 * taken(received)


@given(flashblocks())
def test_any_message_is(message: Flashblock) -> None:
    assert taken(Received("feed", 10**6, message, 10**15)) <= memory_of(message)


def test_the_bounds_hold_for_what_a_feed_really_makes_us_keep() -> None:
    """Topics and extra data: their length was once not counted."""
    buffered = Buffered()
    logs = receipt(log(5_000, 0))
    for index in range(64):
        each = replace(claiming(logs), index=index + 1)
        buffered.keep(Received("feed", memory_of(each), each))
    assert sum(map(taken, buffered)) <= 16 * 1024 * 1024
    assert buffered.evicted
