"""What feeds did, as metrics: counted over restarts of the network, without their URLs."""

from pathlib import Path

from foreblock.metrics.counter_file import CounterFile, CounterFileReader
from foreblock.metrics.exposition import Table
from foreblock.sources.feed_status import CanonicalState, FeedMetrics, FeedState, Following

SECOND = 10**9
FEED = FeedState("ws://key@a/ws", True, 2, 40, 1, 3, 8 * SECOND, "gone")
QUIET = FeedState("ws://key@b/ws", False, 0, 0, 0, 0, None, "")


def series(file: Path) -> dict[tuple[str, ...], float]:
    """Every series that is not zero, by its name and labels."""
    table = Table()
    for _ in table.add_rows(*CounterFileReader(file).read()):
        pass
    return {
        (name.removeprefix("foreblock_"), *labels): cells[0]
        for name, values in table.values.items()
        for labels, cells in values.items()
        if cells[0]
    }


def test_outcomes_and_feeds_are_counted_over_restarts_of_their_network(tmp_path: Path) -> None:
    counters = CounterFile(tmp_path / "writer")
    for _ in range(2):  # lives of the network
        metrics = FeedMetrics(counters, "main", 2, canonical=True)
        for applied in (1, 5):  # seconds
            outcomes = {"Applied": applied, "FirstOnSealed": 1, "Invented": 1, "Unheard": 2}
            metrics.sample(
                [FEED, QUIET],
                Following(outcomes, None, ""),
                CanonicalState("http://c", 7, 5, 1, ""),
                10 * SECOND,
                1_000 * SECOND,
            )
    assert series(tmp_path / "writer") == {
        ("feed_messages_total", "main", "applied"): 10,
        ("feed_messages_total", "main", "first_on_sealed"): 2,
        ("feed_messages_total", "main", "other"): 6,
        ("feed_received_total", "main", "0"): 80,
        ("feed_dropped_total", "main", "0"): 2,
        ("feed_connected", "main", "0"): 1,
        ("feed_connections_total", "main", "0"): 4,
        ("feed_last_message_timestamp_seconds", "main", "0"): 998,
        ("canonical_block_number", "main"): 7,
        ("canonical_blocks_total", "main"): 10,
        ("canonical_failures_total", "main"): 2,
    }
