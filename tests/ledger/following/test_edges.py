"""Wrong or late messages of a feed, one test each, and the blocks served meanwhile."""

from dataclasses import replace

import pytest

from foreblock._engine import Block, State, deposit_transaction, keccak256
from foreblock.ledger.following.classification import DEFAULT_DEPTH
from foreblock.ledger.rules.l1 import ATTRIBUTES_DEPOSITOR, L1_BLOCK
from foreblock.types import ClaimedReceipt, Claims, Flashblock, FlashblockId
from support.chains.following import Built, Following, Truth
from support.chains.writing import NOBODY

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [(0, 5)]]
OTHER = [[], [(2, 7)], [(1, 8), (0, 9)], [(1, 11)]]


def sealed_jobs(truth: Truth, count: int) -> list[Built]:
    jobs = []
    for number in range(1, count + 1):
        jobs.append(truth.job(f"{number}p", PLAN))
        truth.seal(jobs[-1])
    return jobs


def unchanged(following: Following, *messages: Flashblock) -> bool:
    """Return whether these messages leave everything visible to readers unchanged."""
    before = (following.commit, following.pending, len(following.published))
    following.hear(*messages)
    return before == (following.commit, following.pending, len(following.published))


def test_exact_duplicate_is_ignored(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages)
    assert unchanged(following, *job.messages)


def test_other_content_for_a_known_place_changes_nothing_yet(
    truth: Truth, following: Following
) -> None:
    first = truth.job("1p", PLAN)
    other = truth.job("1p", [*PLAN[:2], [(1, 99)]])
    following.hear(*first.messages[:3])
    assert unchanged(following, other.messages[2])
    assert following.counted("Equivocation") == 1


def test_older_index_of_the_same_job_is_ignored(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages)
    assert unchanged(following, job.messages[1])


def test_gap_keeps_the_last_good_prefix_and_makes_nothing_fresher(
    truth: Truth, following: Following
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages[:2])
    following.clock.advance(3_900_000_000)
    following.hear(job.messages[3])
    assert following.pending == (1, 1)
    following.clock.advance(100_000_000)
    assert following.pending is None


def test_message_that_waited_is_as_old_as_its_arrival(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages[:2], job.messages[3])
    following.clock.advance(3_000_000_000)
    following.hear(job.messages[2])
    assert following.pending == (1, 3)
    following.clock.advance(3_900_000_000)
    assert following.pending == (1, 3), "the message that filled the gap counts"
    following.clock.advance(100_000_000)
    assert following.pending is None


def test_late_message_of_a_sealed_block_is_ignored(truth: Truth, following: Following) -> None:
    first, second, third = sealed_jobs(truth, 3)
    following.hear(*first.messages, *second.messages, third.messages[0])
    stray = replace(first.messages[3], payload_id=b"stray...")
    assert unchanged(following, first.messages[1], stray)
    assert following.counted("Old") == 1


def test_job_on_another_parent_than_ours_waits_until_that_is_canonical(
    truth: Truth, following: Following
) -> None:
    (ours,) = sealed_jobs(truth, 1)
    second = truth.job("2p", PLAN)
    following.hear(*ours.messages, second.messages[0])
    truth.rewind(0)
    other = truth.job("1r", OTHER, salt=b"r")
    truth.seal(other)
    elsewhere = truth.job("2r", OTHER)
    assert unchanged(following, elsewhere.messages[0])
    assert following.wanted[-1] == other.blocks[-1].hash
    following.canonical(other.blocks[-1])
    assert (following.latest, following.pending) == (1, (2, 0))
    assert following.partial(elsewhere.messages[0]) is not None
    assert following.partial(second.messages[0]) is None


def test_canonical_block_equal_to_ours_is_sealed_without_execution(
    truth: Truth, following: Following
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages)
    following.canonical(job.blocks[-1])
    assert following.latest == 1
    assert following.counted("SealedByCanonical") == 1
    assert following.counted("SealForeign") == 0


def test_canonical_block_may_be_a_shorter_prefix_of_ours(
    truth: Truth, following: Following
) -> None:
    job = truth.job("1p", PLAN)
    following.hear(*job.messages)
    following.canonical(job.blocks[1])
    assert following.sealed(1) == job.blocks[1].hash
    assert following.partial(job.messages[2]) is None
    assert following.counted("SealForeign") == 0


class TestDivergence:
    """A consistent message whose claims differ from the local execution."""

    @pytest.fixture
    def job(self, truth: Truth, following: Following) -> Built:
        (job,) = sealed_jobs(truth, 1)
        following.hear(*job.messages[:2])
        return job

    @pytest.mark.parametrize(
        "field", ["receipts_root", "withdrawals_root", "state_root", "logs_bloom"]
    )
    def test_other_roots_freeze_the_job_at_its_last_good_index(
        self, following: Following, job: Built, field: str
    ) -> None:
        wrong = _claiming(job, 2, **{field: b"\xff" * len(getattr(job.messages[2].diff, field))})
        assert unchanged(following, wrong)
        assert following.counted("Diverged") == 1
        assert field in (following.follower.last_error or "")
        following.expire()
        assert following.pending is None

    @pytest.mark.parametrize("field", ["gas_used", "blob_gas_used"])
    def test_other_amounts_freeze_it_too(
        self, following: Following, job: Built, field: str
    ) -> None:
        wrong = _claiming(job, 2, **{field: getattr(job.messages[2].diff, field) + 1})
        assert unchanged(following, wrong)
        assert field in (following.follower.last_error or "")

    def test_true_message_for_the_place_thaws_it(self, following: Following, job: Built) -> None:
        following.hear(_claiming(job, 2, gas_used=29_000_000), feed="b")
        following.hear(*job.messages[2:])
        assert following.pending == (1, 3)

    def test_next_block_is_followed_again_after_the_canonical_one(
        self, truth: Truth, following: Following, job: Built
    ) -> None:
        second = truth.job("2p", OTHER)
        following.hear(_claiming(job, 2, gas_used=29_000_000), second.messages[0])
        following.canonical(job.blocks[-1])
        assert (following.latest, following.pending) == (1, (2, 0))

    def test_what_was_served_is_dropped_when_a_whole_canonical_block_runs_otherwise(
        self, following: Following, job: Built
    ) -> None:
        real = job.blocks[-1]
        header = real.header.replace(receipts_root=b"\xee" * 32)
        following.canonical(Block(header, real.transactions, (), ()))
        assert (following.latest, following.pending) == (0, None)
        assert following.partial(job.messages[0]) is None
        assert following.counted("CanonicalDiverged") == 1
        assert "receipts root" in (following.follower.last_error or "")

    def test_canonical_block_that_is_not_whole_changes_nothing(
        self, following: Following, job: Built
    ) -> None:
        real = job.blocks[-1]
        following.canonical(Block(real.header, real.transactions[:-1], (), ()))
        assert following.pending == (1, 1)
        assert following.counted("BadCanonical") == 1


def _claiming(job: Built, index: int, **fields: object) -> Flashblock:
    """A message of a job with other values and the matching hash."""
    message = job.messages[index]
    diff = replace(message.diff, **fields)  # type: ignore[arg-type]
    header = job.blocks[index].header.replace(
        state_root=diff.state_root,
        receipts_root=diff.receipts_root,
        logs_bloom=diff.logs_bloom,
        gas_used=diff.gas_used,
        withdrawals_root=diff.withdrawals_root,
        blob_gas_used=diff.blob_gas_used,
    )
    return replace(message, diff=replace(diff, block_hash=header.hash))


def test_real_state_roots_are_verified_and_the_last_hash_is_the_sealed_one(
    truth: Truth, following: Following
) -> None:
    jobs = sealed_jobs(truth, 2)
    for job in jobs:
        for index, block in enumerate(job.blocks):
            following.hear(_claiming(job, index, state_root=block.header.state_root))
    assert (following.latest, following.pending) == (1, (2, 3))
    assert following.sealed(1) == jobs[0].blocks[-1].hash


def test_canonical_may_jump_several_blocks(truth: Truth, following: Following) -> None:
    jobs = sealed_jobs(truth, 4)
    following.hear(*jobs[0].messages[:2])
    for job in reversed(jobs[1:]):
        following.canonical(job.blocks[-1])
        assert following.latest == 0
    following.canonical(jobs[0].blocks[-1])
    assert (following.latest, following.pending) == (4, None)
    for job in jobs:
        assert following.sealed(job.number) == job.blocks[-1].hash


def test_canonical_block_proves_its_parent(truth: Truth, following: Following) -> None:
    first, second = sealed_jobs(truth, 2)
    following.hear(*first.messages)
    following.canonical(second.blocks[-1])
    assert following.latest == 2
    assert following.counted("SealForeign") == 1, "only the second was executed again"


def test_chain_is_caught_up_with_from_genesis(truth: Truth, following: Following) -> None:
    jobs = sealed_jobs(truth, 6)
    following.hear(jobs[5].messages[0])
    assert following.counted("TooFar") == 1
    blocks = {job.blocks[-1].hash: job.blocks[-1] for job in jobs}
    while following.wanted:
        following.follower.canonical(blocks[following.wanted.pop()])
    assert following.latest == 5
    following.hear(*jobs[5].messages)
    assert following.pending == (6, 3)


def test_silent_feed_expires(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages)
    following.expire()
    assert following.pending is None
    assert following.partial(job.messages[-1]) is not None, "pins are not affected"


def test_reconnect_in_mid_block_waits_for_what_was_missed(
    truth: Truth, following: Following
) -> None:
    first, second = sealed_jobs(truth, 2)
    following.hear(first.messages[0], first.messages[3], second.messages[0])
    assert (following.latest, following.pending) == (0, (1, 0))
    following.hear(first.messages[1], first.messages[2])
    assert (following.latest, following.pending) == (1, (2, 0))


@pytest.mark.parametrize(
    ("raw", "verdict"),
    [(b"", "Undecodable"), (b"\x02\xff", "Undecodable"), (b"\x03" + bytes(90), "Undecodable")],
)
def test_transaction_that_is_none_freezes_the_job(
    truth: Truth, following: Following, raw: bytes, verdict: str
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages[:2])
    message = job.messages[2]
    broken = replace(message, diff=replace(message.diff, transactions=(raw,)))
    assert unchanged(following, broken)
    assert following.counted(verdict) == 1


def test_transaction_that_cannot_run_freezes_the_job(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages[:2])
    message = job.messages[2]
    again = replace(
        message, diff=replace(message.diff, transactions=job.messages[1].diff.transactions)
    )
    assert unchanged(following, again)
    assert "nonce" in (following.follower.last_error or "")


def test_first_message_with_an_index_above_zero_waits(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    assert unchanged(following, *job.messages[1:])
    assert following.counted("Orphan") == 3
    following.hear(job.messages[0])
    assert following.pending == (1, 3)


def test_message_far_ahead_is_not_kept_and_its_parent_is_named(
    truth: Truth, following: Following
) -> None:
    *jobs, below, far = sealed_jobs(truth, DEFAULT_DEPTH + 2)
    assert unchanged(following, far.messages[0])
    assert following.counted("TooFar") == 1
    assert following.follower.missing == below.blocks[-1].hash
    following.hear(jobs[0].messages[0])
    assert following.follower.missing is None, "it continues"


def test_what_is_missed_far_ahead_is_not_named_once_canonical_brings_blocks(
    truth: Truth, following: Following
) -> None:
    *_, far = sealed_jobs(truth, DEFAULT_DEPTH + 2)
    following.hear(far.messages[0])
    following.canonical(truth.blocks[1])
    assert following.follower.missing is None


def test_base_that_cannot_follow_its_parent_is_refused(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    first = job.messages[0]
    assert first.base is not None
    for wrong in (
        replace(first.base, base_fee_per_gas=first.base.base_fee_per_gas + 1),
        replace(first.base, timestamp=0),
        replace(first.base, extra_data=b"?"),
    ):
        assert unchanged(following, replace(first, base=wrong))
    assert following.counted("Diverged") == 3
    following.hear(first)
    assert following.pending == (1, 0)


def test_predecessor_that_contradicts_the_prefix_is_a_gap(
    truth: Truth, following: Following
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*job.messages[:2])
    assert unchanged(following, replace(job.messages[2], previous=FlashblockId(1, 0)))
    assert following.counted("BrokenLink") == 1


def test_block_of_one_flashblock_is_sealed_like_any_other(
    truth: Truth, following: Following
) -> None:
    first = truth.job("1p", [[]])
    truth.seal(first)
    second = truth.job("2p", PLAN)
    following.hear(*first.messages, *second.messages)
    assert (following.latest, following.pending) == (1, (2, 3))


class TestCompeting:
    """A job for a height that is already sealed."""

    @pytest.fixture
    def jobs(self, truth: Truth, following: Following) -> tuple[Built, Built, Built]:
        """The first block is sealed as p; q competes, and r builds on q."""
        ours = truth.job("1p", PLAN)
        truth.seal(ours)
        following.hear(*ours.messages, *truth.job("2p", PLAN).messages)
        assert following.latest == 1
        truth.rewind(0)
        other = truth.job("1q", OTHER, salt=b"q")
        truth.seal(other)
        return ours, other, truth.job("2q", PLAN)

    def test_sealed_block_is_not_changed_by_a_job_alone(
        self, following: Following, jobs: tuple[Built, Built, Built]
    ) -> None:
        ours, other, _ = jobs
        assert unchanged(following, *other.messages)
        assert following.counted("Competing") == 1
        assert following.sealed(1) == ours.blocks[-1].hash
        assert following.partial(other.messages[2]) is None

    def test_sealed_block_is_changed_by_a_proven_successor_in_one_commit(
        self, following: Following, jobs: tuple[Built, Built, Built]
    ) -> None:
        ours, other, second = jobs
        following.hear(*other.messages)
        commits = following.commits
        following.hear(second.messages[0])
        assert following.commits == commits + 1
        assert (following.latest, following.pending) == (1, (2, 0))
        assert following.sealed(1) == other.blocks[-1].hash
        assert not following.finds_block(ours.blocks[-1].hash)
        assert [following.partial(each) for each in ours.messages[1:]] == [None] * 3
        assert None not in [following.partial(each) for each in other.messages]

    def test_what_canonical_has_confirmed_is_not_changed_by_a_feed(
        self, following: Following, jobs: tuple[Built, Built, Built]
    ) -> None:
        ours, other, second = jobs
        following.canonical(ours.blocks[-1])
        assert unchanged(following, *other.messages, *second.messages)
        assert following.sealed(1) == ours.blocks[-1].hash


def test_heads_are_those_that_canonical_names(truth: Truth, following: Following) -> None:
    jobs = sealed_jobs(truth, 3)
    for job in jobs:
        following.hear(*job.messages)
    with following.store.view() as view:
        assert (view.heads.safe, view.heads.finalized) == (None, None)
    following.follower.heads(jobs[1].blocks[-1].hash, jobs[0].blocks[-1].hash)
    following.follower.heads(b"?" * 32, None)
    with following.store.view() as view:
        assert view.heads.safe == (2, jobs[1].blocks[-1].hash)
        assert view.heads.finalized == (1, jobs[0].blocks[-1].hash)


def without_attributes(message: Flashblock) -> list[Flashblock]:
    """A first message that does not begin like an OP block, in several variants."""
    (attributes,) = message.diff.transactions
    stranger = deposit_transaction(
        source_hash=bytes(32), sender=NOBODY, to=L1_BLOCK, mint=0, value=0, gas_limit=100_000,
        input=b"",
    )  # fmt: skip
    elsewhere = deposit_transaction(
        source_hash=bytes(32), sender=ATTRIBUTES_DEPOSITOR, to=NOBODY, mint=0, value=0,
        gas_limit=100_000, input=b"",
    )  # fmt: skip
    others = [(), (stranger.raw, attributes), (elsewhere.raw,), (attributes[:-1],), (b"\x02",)]
    return [replace(message, diff=replace(message.diff, transactions=raws)) for raws in others]


def test_a_block_that_does_not_begin_with_what_it_is_told_of_l1_is_none(
    truth: Truth, following: Following
) -> None:
    (job,) = sealed_jobs(truth, 1)
    bad = without_attributes(job.messages[0])
    for message in bad:
        assert unchanged(following, message)
        assert following.follower.last_error == "a: malformed diff.transactions[0]"
    assert following.counted("Malformed") == len(bad)
    following.hear(*job.messages)
    assert following.pending == (1, 3)


def claims_of(message: Flashblock, block: Block, state: State) -> Claims:
    """The metadata of a message after the last transaction in this state."""
    count = len(message.diff.transactions)
    execution = [keccak256(raw) for raw in block.transactions[-count:]]
    receipts = {
        name: ClaimedReceipt(
            success=True, cumulative_gas_used=message.diff.gas_used, logs=(), deposit_nonce=None
        )
        for name in execution
    }
    return Claims(receipts, {NOBODY: state.balance(NOBODY)})


def test_metadata_is_held_against_execution_and_refuses_nothing(
    truth: Truth, following: Following
) -> None:
    job = truth.job("1p", [[], [(0, 2)], [(1, 4)], [(2, 6)]])
    block = truth.seal(job)
    first, second, third, last = job.messages
    with truth.store.view() as view:
        true = claims_of(last, block, view.state(1))
    (name,) = true.receipts
    wrong_gas = replace(true.receipts[name], cumulative_gas_used=1)
    following.hear(first, replace(second, claims=Claims({}, {NOBODY: 2})))
    assert following.counted("MetadataAgrees") == 1
    following.hear(replace(third, claims=Claims({}, {NOBODY: 7})))
    assert following.counted("MetadataDiffers") == 1
    following.hear(replace(last, claims=Claims({name: wrong_gas}, {})))
    assert following.counted("MetadataDiffers") == 2
    assert following.pending == (1, 3), "a flashblock is true or not by its hash"
    again = Following(following.folder.with_name("again"))
    again.hear(first, second, third, replace(last, claims=true))
    assert (again.counted("MetadataAgrees"), again.counted("MetadataDiffers")) == (1, 0)
    again.close()
