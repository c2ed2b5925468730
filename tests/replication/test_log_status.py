"""What a node says of its log."""

from foreblock.log.position import HeadAnnouncement, LogPosition
from foreblock.replication.log_status import Pursuit, facts_of_writer

SECOND = 10**9
AT = LogPosition(3, b"l" * 32, 8812, 9120, b"i" * 16)


def head(sequence: int) -> HeadAnnouncement:
    return HeadAnnouncement(3, 9120, sequence, b"l" * 32, b"b" * 16, 1)


def test_a_node_is_behind_since_it_had_all_that_was_announced() -> None:
    pursuit = Pursuit(0)
    assert pursuit.facts(AT, SECOND).line() == (
        "log: epoch 3, sequence 8812, commit 9120, 1.00 s behind, writer not heard yet"
    )
    pursuit.heard(AT, head(8812), 10 * SECOND)
    assert pursuit.facts(AT, 10 * SECOND + SECOND * 18 // 100).line() == (
        "log: epoch 3, sequence 8812, commit 9120, 0.18 s behind, writer reachable"
    )
    pursuit.heard(AT, head(8813), 11 * SECOND)  # there is more
    assert pursuit.facts(AT, 12 * SECOND).behind == 2
    pursuit.heard(AT.at(8813), None, 12 * SECOND)
    assert pursuit.facts(AT.at(8813), 12 * SECOND).behind == 0


def test_silence_is_told_after_two_seconds() -> None:
    pursuit = Pursuit(0)
    pursuit.heard(AT, head(8812), 0)
    assert pursuit.facts(AT, 2 * SECOND).writer == "writer reachable"
    assert pursuit.facts(AT, 5 * SECOND).writer == "writer silent for 5.0 s"


def test_a_writer_says_that_it_is_one_and_whether_it_waits() -> None:
    assert facts_of_writer(AT, waits=False).line() == (
        "log: epoch 3, sequence 8812, commit 9120, 0.00 s behind, this node writes"
    )
    assert facts_of_writer(AT, waits=True).writer == "this node writes, and waits for the log"
    assert facts_of_writer(AT, waits=True).writes


def test_a_node_is_far_behind_by_more_than_a_few_commits() -> None:
    pursuit = Pursuit(0)
    pursuit.announced(AT.sequence + 64)
    assert not pursuit.is_far(AT)
    pursuit.heard(AT, head(AT.sequence + 65), 0)
    assert pursuit.is_far(AT)
    assert not pursuit.is_far(AT.at(AT.sequence + 1))
