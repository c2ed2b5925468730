"""Values derived from readings: growth, rates, alerts."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.cli.instance import Reading, SeenBlock
from foreblock.cli.watch.history import MOST_BLOCKS, MOST_GROWTHS, History
from foreblock.status.network_status import MessageStatus, NetworkStatus, SourceStatus


def block(number: int, transactions: int = 0, hash_: str = "0x") -> SeenBlock:
    return SeenBlock(number, hash_, 0, transactions, transactions * 21_000, 30_000_000, 7)


def reading(
    latest: SeenBlock, pending: SeenBlock | None = None, index: int | None = None
) -> Reading:
    return Reading(latest, pending, index, None)


def test_a_block_that_grows_and_is_sealed() -> None:
    history = History()
    assert history.add(reading(block(6), block(7, 1), 0), 0.0) == []
    (grown,) = history.add(reading(block(6), block(7, 4), 2), 0.4)
    assert (grown.block, grown.index, grown.transactions, grown.gas) == (7, 2, 3, 63_000)
    sealed, begun = history.add(reading(block(7, 6), block(8, 1), 0), 1.0)
    assert (sealed.block, sealed.sealed, sealed.transactions) == (7, True, 2)
    assert (begun.block, begun.sealed, begun.index, begun.transactions) == (8, False, 0, 1)
    assert [each.number for each in history.blocks] == [6, 7]


def test_rates_are_of_the_last_seconds() -> None:
    history = History()
    history.add(reading(block(0), block(1, 0), 0), 0.0)
    history.add(reading(block(0), block(1, 30), 1), 5.0)
    assert history.rates(5.0) == (6.0, 6.0 * 21_000)
    assert history.rates(14.0) == (3.0, 3.0 * 21_000)
    assert history.rates(16.0) == (0.0, 0.0)


def test_the_same_reading_is_no_growth_and_makes_it_old() -> None:
    history = History()
    same = reading(block(1), block(2, 3), 1)
    history.add(same, 0.0)
    assert history.add(same, 4.0) == []
    assert history.alerts(4.0) == []
    assert history.alerts(6.0) == ["nothing has changed for 6 s"]


def test_alerts_say_what_needs_attention() -> None:
    history = History()
    history.add(reading(block(1), block(9), 0), 0.0)
    source = SourceStatus(messages=MessageStatus({}, missing="0x01"))
    history.status = NetworkStatus("main", "feed", ready=False, source=source)
    missing = "missing: block 0x01; no canonical source is set, so it cannot be fetched"
    assert history.alerts(0.0) == ["not ready", missing, "pending is 8 blocks above latest"]
    assert history.source_lines()[1:] == [missing]
    history.failure = "no response from http://x: refused"
    assert history.alerts(0.0) == ["no response from http://x: refused"]


def test_a_reorganisation_replaces_blocks() -> None:
    history = History()
    for number in (5, 6, 7):
        history.add(reading(block(number, 1, "0xa")), float(number))
    history.add(reading(block(6, 1, "0xb")), 8.0)
    assert [(each.number, each.hash) for each in history.blocks] == [(5, "0xa"), (6, "0xb")]


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=60))
def test_every_transaction_is_counted_once(blocks: list[list[int]]) -> None:
    """Blocks that grow step by step, and are sealed unchanged: the total growth equals
    their size.
    """
    history = History()
    history.add(reading(block(0)), 0.0)
    latest, total, grown = block(0), 0, 0
    for number, steps in enumerate(blocks, start=1):
        count = 0
        for index, gained in enumerate(steps):
            count += gained
            now = reading(latest, block(number, count), index)
            grown += sum(each.transactions for each in history.add(now, float(number)))
        latest = block(number, count)
        total += count
    grown += sum(each.transactions for each in history.add(reading(latest), 1e6))
    assert grown == total


def test_nothing_grows_without_bound() -> None:
    history = History()
    for number in range(3 * MOST_GROWTHS):
        history.add(reading(block(number), block(number + 1, number), 0), float(number))
    assert (len(history.growths), len(history.blocks)) == (MOST_GROWTHS, MOST_BLOCKS)
