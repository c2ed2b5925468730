"""The messages that a feed with faults sends instead of its flashblocks."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest

from foreblock.errors import MalformedFlashblock
from foreblock.feed.messages import EndMarker, decode
from foreblock.sequencer.faults.feed import FeedFaults, Sending
from foreblock.sequencer.faults.plan import Faults
from foreblock.types import Flashblock
from support.payloads.flashblocks import first, hash_of, later, with_transactions

MS = 10**6
JOB = [
    first(7, "job", hash_of("six"), hash_of("7.0")),
    *(
        with_transactions(later(7, "job", at, hash_of(f"7.{at}")), b"a", b"b")
        for at in range(1, 300)
    ),
]


def sent(*words: str) -> list[list[Sending]]:
    feed = FeedFaults(Faults.parse(words))
    return [feed.send(each, at * 200 * MS) for at, each in enumerate(JOB)]


def contents(sendings: list[list[Sending]]) -> list[Flashblock | bytes]:
    return [each.content for sending in sendings for each in sending]


def test_fair_weather_changes_nothing() -> None:
    assert sent() == [[Sending(at * 200 * MS, each)] for at, each in enumerate(JOB)]


def test_dropped_messages_are_not_sent() -> None:
    found = contents(sent("drop=0.3"))
    assert 0 < len(JOB) - len(found) < len(JOB)
    assert [each for each in JOB if each in found] == found


def test_duplicates_are_sent_twice() -> None:
    assert contents(sent("duplicate=1")) == [each for each in JOB for _ in range(2)]


def test_delayed_messages_come_later_within_the_bound() -> None:
    delays = [
        sending.at_ns - at * 200 * MS
        for at, sendings in enumerate(sent("delay=0.5"))
        for sending in sendings
    ]
    assert len(delays) == len(JOB)
    assert 0.3 < sum(delay > 0 for delay in delays) / len(JOB) < 0.7
    assert max(delays) < 1_500 * MS


def test_reordered_messages_come_after_the_next_and_none_is_lost_but_the_last() -> None:
    found = contents(sent("reorder=0.3"))
    assert found != JOB[: len(found)]
    assert sorted(_index(each) for each in found) == [*range(len(found))]
    for at, each in enumerate(found):
        assert abs(_index(each) - at) <= 1


def _index(content: Flashblock | bytes) -> int:
    assert isinstance(content, Flashblock)
    return content.index


def test_another_message_for_a_place_goes_before_or_after_the_first() -> None:
    feed, firsts = FeedFaults(Faults.parse(["equivocate=1"])), set()
    for at, original in enumerate(JOB):
        other = replace(original, diff=replace(original.diff, block_hash=hash_of("other")))
        sendings = feed.send(original, at * 200 * MS, other)
        pair = [each.content for each in sendings]
        assert {each.at_ns for each in sendings} == {at * 200 * MS}
        assert pair in ([original, other], [other, original])
        firsts.add(pair.index(other))
    assert firsts == {0, 1}


def test_another_message_is_lost_with_the_first() -> None:
    assert FeedFaults(Faults.parse(["drop=1"])).send(JOB[1], 0, JOB[2]) == []


def test_a_stall_holds_everything_back_in_order() -> None:
    found = [sending for sendings in sent("stall=0.02") for sending in sendings]
    assert [each.content for each in found] == JOB
    times = [each.at_ns for each in found]
    assert times == sorted(times)
    held = [time - at * 200 * MS for at, time in enumerate(times)]
    assert min(held) == 0
    assert 1_000 * MS < max(held) < 5_000 * MS


def test_garbage_is_no_flashblock_and_comes_before_a_good_message() -> None:
    noises = set()
    for original, (noise, message) in zip(JOB, sent("garbage=1"), strict=True):
        assert message.content == original
        assert isinstance(noise.content, bytes)
        noises.add(noise.content)
        with suppress(MalformedFlashblock):
            assert isinstance(decode(noise.content), EndMarker)
    assert len(noises) > 100


@pytest.mark.parametrize(
    "words", [["drop=0.1", "delay=0.2", "garbage=0.2"], ["reorder=0.5", "duplicate=0.2"]]
)
def test_equal_seeds_give_equal_weather(words: list[str]) -> None:
    assert sent(*words) == sent(*words)


def test_a_switched_form_lasts_until_the_next_switch() -> None:
    found = contents(sent("switch_form=0.1"))
    forms = [each == plain.as_subblock() for each, plain in zip(found, JOB, strict=True)]
    assert found == [
        plain.as_subblock() if form else plain for plain, form in zip(JOB, forms, strict=True)
    ]
    switches = sum(before != after for before, after in pairwise([False, *forms]))
    assert 0 < switches < len(JOB) / 5


def test_subblocks_are_switched_to_flashblocks() -> None:
    feed = FeedFaults(Faults.parse(["switch_form=1"]), subblocks=True)
    found = contents([feed.send(each, 0, each) for each in JOB[:3]])
    assert found == [JOB[0], JOB[0], JOB[1].as_subblock(), JOB[1].as_subblock(), JOB[2], JOB[2]]
