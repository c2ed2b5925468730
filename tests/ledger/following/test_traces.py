"""Sequences of events and their commits: one test each, in terms of the visible blocks."""

import pytest

from support.chains.following import Built, Following, Truth

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [(0, 5)]]
OTHER = [[], [(2, 7)], [(1, 8), (0, 9)], [(1, 11)]]


def two_blocks(truth: Truth, end: int = -1) -> tuple[Built, Built]:
    """Two jobs, the first of them sealed at this index."""
    first = truth.job("1p", PLAN)
    truth.seal(first, end)
    return first, truth.job("2p", OTHER)


def test_seal_and_next_first_index_are_one_commit_and_all_pins_answer(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.hear(*first.messages)
    numbers = [following.partial(each) for each in first.messages]
    assert None not in numbers
    commits = following.commits
    following.hear(second.messages[0])
    assert following.commits == commits + 1
    assert (following.latest, following.pending) == (1, (2, 0))
    assert [following.partial(each) for each in first.messages] == numbers
    assert following.finds_block(first.blocks[-1].hash)


def test_folding_draws_no_number(truth: Truth, following: Following) -> None:
    first, second = two_blocks(truth)
    following.hear(*first.messages)
    following.receive(second.messages[0])
    commit = following.commit
    following.run_until_idle()
    with following.store.view() as view:
        assert view.heads.folded == 1
    assert following.commit == commit


def test_first_index_is_stacked_while_the_root_below_is_computed_and_keeps_its_number(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.receive(*first.messages, second.messages[0])
    assert (following.latest, following.pending) == (0, (2, 0))
    number = following.partial(second.messages[0])
    following.run_until_idle()
    assert (following.latest, following.pending) == (1, (2, 0))
    assert following.partial(second.messages[0]) == number
    assert following.sealed(1) == first.blocks[-1].hash


def test_pending_may_lead_by_two_until_the_canonical_block_arrives(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.receive(*first.messages, *second.messages[:2])
    assert (following.latest, following.pending) == (0, (2, 1))
    numbers = [following.partial(each) for each in second.messages[:2]]
    following.follower.canonical(first.blocks[-1])
    assert (following.latest, following.pending) == (1, (2, 1))
    assert [following.partial(each) for each in second.messages[:2]] == numbers
    assert following.counted("SealForeign") == 0, "nothing is executed twice"


class TestTailMissed:
    @pytest.fixture
    def jobs(self, truth: Truth, following: Following) -> tuple[Built, Built]:
        first, second = two_blocks(truth)
        following.hear(*first.messages[:-1])
        commits = following.commits
        following.hear(*second.messages[:2])
        assert following.commits == commits, "nothing is committed"
        assert (following.latest, following.pending) == (0, (1, 2))
        return first, second

    def test_missing_index_that_comes_late_brings_all_in_one_commit(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, second = jobs
        commits, commit = following.commits, following.commit
        following.receive(first.messages[-1], feed="b")
        assert following.commits == commits + 1
        assert (following.latest, following.pending) == (1, (2, 1))
        numbers = [following.partial(each) for each in (first.messages[-1], *second.messages[:2])]
        assert numbers == [commit + 1, commit + 2, commit + 3]

    def test_canonical_block_brings_all_and_what_it_begins_with_stays(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, second = jobs
        numbers = [following.partial(each) for each in first.messages[:-1]]
        commits = following.commits
        following.follower.canonical(first.blocks[-1])
        assert following.commits == commits + 1
        assert (following.latest, following.pending) == (1, (2, 1))
        assert following.sealed(1) == first.blocks[-1].hash
        assert [following.partial(each) for each in first.messages[:-1]] == numbers
        following.hear(*second.messages[2:])
        assert following.pending == (2, 3)

    def test_with_neither_pending_is_latest_and_the_missing_hash_is_named(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, _ = jobs
        following.expire()
        assert (following.latest, following.pending) == (0, None)
        assert following.partial(first.messages[1]) is not None, "pins resolve"
        assert following.follower.missing == first.blocks[-1].hash
        assert following.wanted == [first.blocks[-1].hash]


def test_dropped_tail_is_out_of_reach_from_the_commit_that_seals_without_it(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth, end=2)
    following.hear(*first.messages)
    (lost,) = first.messages[-1].diff.transactions
    assert following.finds(lost)
    commits = following.commits
    following.hear(second.messages[0])
    assert following.commits == commits + 1
    assert (following.latest, following.pending) == (1, (2, 0))
    assert following.sealed(1) == first.blocks[2].hash
    assert following.partial(first.messages[-1]) is None
    assert following.partial_at(1, 3) is None
    assert not following.finds(lost)
    assert following.partial_at(1, 2) is not None


def test_canonical_block_that_differs_takes_the_place_and_brings_what_stands_on_it(
    truth: Truth, following: Following
) -> None:
    ours = truth.job("1p", OTHER)
    real = truth.job("1r", PLAN)
    truth.seal(real)
    second = truth.job("2p", OTHER)
    following.hear(*ours.messages)
    following.hear(*second.messages[:2])
    commits = following.commits
    following.follower.canonical(real.blocks[-1])
    assert following.commits == commits + 1
    assert (following.latest, following.pending) == (1, (2, 1))
    assert following.partial_at(1, 1) is None
    assert [following.partial(each) for each in ours.messages[1:]] == [None, None, None]
    assert following.partial(ours.messages[0]) is not None, "both begin with the same deposit"
    assert not following.finds(ours.messages[1].diff.transactions[0])
    assert following.finds(real.messages[1].diff.transactions[0])


def test_canonical_block_that_differs_drops_what_stood_on_ours(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.receive(*first.messages, second.messages[0])
    assert (following.latest, following.pending) == (0, (2, 0))
    truth.rewind(0)
    other = truth.job("1x", OTHER, salt=b"other")
    following.follower.canonical(other.blocks[-1])
    assert (following.latest, following.pending) == (1, None)
    assert following.partial(second.messages[0]) is None
    assert following.partial_at(2, 0) is None
    assert [following.partial(each) for each in first.messages] == [None] * 4


class TestRestart:
    @pytest.fixture
    def jobs(self, truth: Truth, following: Following) -> tuple[Built, Built]:
        first, stray = truth.job("1p", PLAN), truth.job("1q", OTHER, salt=b"q")
        following.hear(*first.messages[:3], stray.messages[0])
        return first, stray

    def test_newer_job_takes_over_and_pins_on_the_older_fail(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, stray = jobs
        assert following.pending == (1, 0)
        assert following.partial_at(1, 0) == following.partial(stray.messages[0])
        assert [following.partial(each) for each in first.messages[:3]] == [None] * 3
        assert following.partial_at(1, 1) is None
        assert not following.finds(first.messages[1].diff.transactions[0])

    def test_older_job_comes_back_whole_when_the_next_block_stands_on_it(
        self, truth: Truth, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, stray = jobs
        truth.seal(first)
        second = truth.job("2p", OTHER)
        following.hear(first.messages[3])
        assert following.pending == (1, 0), "a job that lost is not served"
        commits, commit = following.commits, following.commit
        following.hear(second.messages[0])
        assert following.commits == commits + 1
        assert (following.latest, following.pending) == (1, (2, 0))
        assert following.sealed(1) == first.blocks[-1].hash
        numbers = [following.partial(each) for each in first.messages]
        assert numbers == [following.partial_at(1, index) for index in range(4)]
        assert numbers[3] == commit + 1, "only new partial blocks got a number"
        assert None not in numbers
        assert following.partial(stray.messages[0]) is None

    def test_known_job_does_not_take_over_again(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, stray = jobs
        commits = following.commits
        following.hear(first.messages[0], stray.messages[0], first.messages[0])
        assert following.commits == commits
        assert following.counted("Duplicate") == 3


class TestEquivocation:
    @pytest.fixture
    def jobs(self, truth: Truth, following: Following) -> tuple[Built, Built]:
        """Two jobs of one payload id that differ from index 2 on; both third messages were
        received.
        """
        first = truth.job("1p", PLAN)
        other = truth.job("1p", [*PLAN[:2], [(1, 77)], [(2, 78)]])
        following.hear(*first.messages[:3], other.messages[2])
        assert following.pending == (1, 2)
        return first, other

    def test_first_is_kept_while_the_next_message_fits_it(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, other = jobs
        following.hear(first.messages[3])
        assert following.pending == (1, 3)
        assert following.partial(first.messages[2]) == following.partial_at(1, 2)
        assert following.partial(other.messages[2]) is None

    def test_other_takes_its_place_in_one_commit_when_the_next_message_fits_that(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, other = jobs
        commits = following.commits
        following.hear(other.messages[3])
        assert following.commits == commits + 1
        assert following.pending == (1, 3)
        assert following.partial(other.messages[2]) == following.partial_at(1, 2)
        assert following.partial(first.messages[2]) is None
        assert not following.finds(first.messages[2].diff.transactions[0])


def test_gap_that_fills_late_is_one_commit_of_three_numbers(
    truth: Truth, following: Following
) -> None:
    job = truth.job("1p", [*PLAN, [(1, 21)], [], [(2, 23)]])
    following.hear(*job.messages[:4], *job.messages[5:])
    assert following.pending == (1, 3)
    commits, commit = following.commits, following.commit
    following.receive(job.messages[4])
    assert following.commits == commits + 1
    assert following.commit == commit + 3
    assert following.pending == (1, 6)
    assert following.partial_at(1, 4) == commit + 1


def test_of_two_feeds_the_first_arrival_counts_and_nobody_is_told_twice(
    truth: Truth, following: Following
) -> None:
    job = truth.job("1p", PLAN)
    for message in job.messages:
        following.hear(message, feed="a")
        following.hear(message, feed="b")
    assert following.published == list(job.messages)
    assert following.commits == len(job.messages)


def test_reorg_of_sealed_blocks_by_canonical_ones_is_one_commit(
    truth: Truth, following: Following
) -> None:
    jobs = []
    for number in range(1, 8):
        jobs.append(truth.job(f"{number}p", PLAN))
        truth.seal(jobs[-1])
    for job in jobs:
        following.hear(*job.messages)
    assert (following.latest, following.pending) == (6, (7, 3))
    old = [following.sealed(number) for number in (5, 6)]
    truth.rewind(4)
    new = []
    for number in range(5, 8):
        new.append(truth.job(f"{number}r", OTHER, salt=b"r"))
        truth.seal(new[-1])
    following.follower.canonical(new[1].blocks[-1])
    assert following.wanted[-1] == new[0].blocks[-1].hash, "the parent is requested"
    commits, commit = following.commits, following.commit
    following.follower.canonical(new[0].blocks[-1])
    assert following.commits == commits + 1
    assert following.commit > commit
    assert (following.latest, following.pending) == (6, None)
    assert [following.sealed(number) for number in (5, 6)] == [
        job.blocks[-1].hash for job in new[:2]
    ]
    assert not any(following.finds_block(each) for each in old if each)
    assert [following.partial(each) for job in jobs[4:] for each in job.messages] == [None] * 12
    assert not following.finds(jobs[4].messages[1].diff.transactions[0])
    following.hear(*new[2].messages)
    assert following.pending == (7, 3)


def test_writer_that_was_killed_waits_for_canonical_after_it_missed_messages(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.hear(*first.messages[:2])
    following.reopen()
    assert following.pending == (1, 1), "pre-confirmed transactions are not lost"
    following.hear(first.messages[3])
    assert following.counted("Gap") == 1
    following.hear(second.messages[0])
    assert following.counted("FirstOnUnknown") == 1
    following.canonical(first.blocks[-1])
    assert following.latest == 1


def test_writer_that_was_killed_goes_on_with_the_next_message(
    truth: Truth, following: Following
) -> None:
    first, second = two_blocks(truth)
    following.hear(*first.messages[:2])
    following.reopen()
    following.hear(*first.messages[2:], *second.messages)
    assert (following.latest, following.pending) == (1, (2, 3))
    assert following.sealed(1) == first.blocks[-1].hash
