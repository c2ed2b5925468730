"""The index of log filters: the same result as matching every filter, and complete removal."""

import random
from collections.abc import Iterator

import pytest

from foreblock.ledger.reading.logs import LogFilter
from foreblock.methods.events import log_index
from foreblock.methods.events.log_index import FEW, LogIndex, LogsWanted, keys_of
from support.servers.long_work import thresholds

ADDRESSES = [bytes([number]) * 20 for number in range(6)]
TOPICS = [bytes([number]) * 32 for number in range(6)]


def update_all(index: LogIndex) -> None:
    done = False
    while not done:
        steps = index.update()
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                done = ended.value
                break


def make(addresses: list[bytes], topics: list[list[bytes]], name: object = "") -> LogsWanted:
    text = repr((addresses, topics, name)).encode()
    return LogsWanted(LogFilter(addresses, topics), text, [addresses, *topics])


def candidates(index: LogIndex, address: bytes, topics: tuple[bytes, ...]) -> list[LogsWanted]:
    listed = [index.known[each] for key in keys_of(address, topics) for each in index.find(key)]
    return [*listed, *index.unlisted]


def size(index: LogIndex) -> int:
    return len(index.known) + sum(map(len, index.shards))


@pytest.fixture
def small_steps() -> Iterator[None]:
    with thresholds(listed_values=2, listed_filters=3):
        yield


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.usefixtures("small_steps")
def test_it_finds_each_filter_that_matches_once_while_filters_come_and_go(seed: int) -> None:
    chance, index = random.Random(seed), LogIndex()
    held: list[LogsWanted] = []
    for turn in range(400):
        if chance.random() < (0.65 if turn < 250 else 0.3):
            topics = [
                chance.sample(TOPICS, chance.randrange(4)) for _ in range(chance.randrange(4))
            ]
            held.append(index.add(make(chance.sample(ADDRESSES, chance.randrange(4)), topics)))
        elif held:
            index.remove(held.pop(chance.randrange(len(held))))
        if chance.random() < 0.5:
            steps = index.update()
            for _ in zip(range(chance.randrange(9)), steps, strict=False):
                pass  # and the rest is not done
        elif chance.random() < 0.3:
            update_all(index)
            log = chance.choice(ADDRESSES), tuple(chance.choices(TOPICS, k=chance.randrange(5)))
            found = [each for each in candidates(index, *log) if each.filter.matches(*log)]
            assert len(found) == len(set(found))
            assert set(found) == {each for each in held if each.filter.matches(*log)}
    for each in held:
        index.remove(each)
    update_all(index)
    assert size(index) == 0


@pytest.mark.parametrize("shared", ["address", "topic"])
def test_a_value_that_all_filters_share_does_not_find_all_of_them(shared: str) -> None:
    index = LogIndex()
    for number in range(100):
        own = number.to_bytes(32)
        if shared == "address":
            index.add(make([ADDRESSES[1]], [[], [own]]))
        else:
            index.add(make([own[12:]], [[TOPICS[1]]]))
    update_all(index)
    assert len(candidates(index, ADDRESSES[1], (TOPICS[1], TOPICS[2]))) <= 2


def test_many_filters_with_the_same_value_only_are_found_by_it() -> None:
    index = LogIndex()
    held = [index.add(make([ADDRESSES[1]], [], number)) for number in range(2 * FEW)]
    update_all(index)
    while held:
        assert set(candidates(index, ADDRESSES[1], ())) == set(held)
        index.remove(held.pop())
        update_all(index)
    assert size(index) == 0


def test_equal_filters_are_kept_once_and_until_the_last_holder_leaves() -> None:
    index = LogIndex()
    first, second = (index.add(make([ADDRESSES[1]], [])) for _ in range(2))
    assert first is second
    update_all(index)
    index.remove(first)
    update_all(index)
    assert candidates(index, ADDRESSES[1], ()) == [second]
    index.remove(second)
    assert index.add(make([ADDRESSES[1]], [])) is second  # before it is removed
    update_all(index)
    assert candidates(index, ADDRESSES[1], ()) == [second]
    index.remove(second)
    update_all(index)
    assert size(index) == 0


def test_a_filter_that_leaves_before_it_is_listed_takes_no_memory() -> None:
    index = LogIndex()
    for number in range(10):
        index.remove(index.add(make([ADDRESSES[1]], [], number)))
    assert size(index) == 0


def test_the_size_of_a_filter_counts_its_values() -> None:
    found = make(ADDRESSES, [TOPICS, TOPICS[:2]])
    assert found.size == log_index.FILTER_BYTES + 14 * log_index.VALUE_BYTES
