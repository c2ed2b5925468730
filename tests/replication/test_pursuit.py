"""The distance of a node to the end of its log."""

from foreblock.log.position import HeadAnnouncement, LogPosition
from foreblock.replication.following import CatchUp

SECOND = 10**9
AT = LogPosition(3, b"l" * 32, 8812, 9120, b"i" * 16)


def head(sequence: int) -> HeadAnnouncement:
    return HeadAnnouncement(3, 9120, sequence, b"l" * 32, b"b" * 16, 1)


def test_a_node_is_behind_since_it_had_all_that_was_announced() -> None:
    pursuit = CatchUp(0)
    assert (pursuit.behind(SECOND), pursuit.silence(SECOND)) == (1.0, None)
    pursuit.on_message(AT, head(8812), 10 * SECOND)
    now = 10 * SECOND + SECOND * 18 // 100
    assert (pursuit.behind(now), pursuit.silence(now)) == (0.18, 0.18)
    pursuit.on_message(AT, head(8813), 11 * SECOND)  # there is more
    assert (pursuit.behind(12 * SECOND), pursuit.silence(12 * SECOND)) == (2.0, 1.0)
    pursuit.on_message(AT.at(8813), None, 12 * SECOND)
    assert pursuit.behind(12 * SECOND) == 0


def test_a_node_is_far_behind_by_more_than_a_few_commits() -> None:
    pursuit = CatchUp(0)
    pursuit.announced(AT.sequence + 64)
    assert not pursuit.is_far(AT)
    pursuit.on_message(AT, head(AT.sequence + 65), 0)
    assert pursuit.is_far(AT)
    assert not pursuit.is_far(AT.at(AT.sequence + 1))
