"""Messages without hashes and roots: their identity, and the detection of false ones."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import Raw

from foreblock._engine import Block, deposit_transaction, keccak256
from foreblock.feed.polled import PolledPending
from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.types import Flashblock
from foreblock.upstream.polled_feed import read_pending
from support.chains.following import Built, Following, Truth, flat
from support.chains.partial_following import PartialFollowing
from support.chains.writing import PASSER, SENDERS
from support.servers.asking import asker

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [(0, 5)]]
ZERO = bytes(32)
OTHER_HASH = b"\xff" * 32
subblock = Flashblock.as_subblock

Change = Callable[[Flashblock], Flashblock]


def claiming(**fields: object) -> Change:
    """A change that makes a message claim other values."""
    return lambda message: replace(message, diff=replace(message.diff, **fields))  # type: ignore[arg-type]


def sealed_jobs(truth: Truth, count: int) -> list[Built]:
    jobs = []
    for number in range(1, count + 1):
        jobs.append(truth.job(f"{number}p", PLAN))
        truth.seal(jobs[-1])
    return jobs


def test_a_chain_of_subblocks_has_the_hashes_that_it_has_as_flashblocks(
    truth: Truth, following: Following
) -> None:
    jobs = sealed_jobs(truth, 3)
    following.hear(*map(subblock, flat(jobs)))
    assert following.counted("Applied") == len(flat(jobs))
    assert (following.latest, following.pending) == (2, (3, 3))
    for message in jobs[2].messages:
        assert following.partial(message) == following.partial_at(3, message.index)
    assert following.sealed(2) == jobs[1].blocks[-1].hash
    assert following.published == flat(jobs), "this feed provides the computed values"


@pytest.mark.parametrize("every", [1, 3, 20])
def test_the_form_may_change_at_any_message(truth: Truth, following: Following, every: int) -> None:
    messages = flat(sealed_jobs(truth, 4))
    forms = [at // every % 2 for at in range(len(messages))]
    following.hear(
        *(each.as_subblock() if form else each for each, form in zip(messages, forms, strict=True))
    )
    assert following.counted("Applied") == len(messages)
    assert following.published == messages


@pytest.mark.parametrize("forms", [(subblock, None), (None, subblock)])
def test_copies_from_feeds_of_different_forms_are_one_message(
    truth: Truth, following: Following, forms: tuple[Change | None, Change | None]
) -> None:
    messages = flat(sealed_jobs(truth, 2))
    for message in messages:
        for feed, form in zip("ab", forms, strict=True):
            following.hear(form(message) if form else message, feed=feed)
    assert following.counted("Applied") == following.counted("Duplicate") == len(messages)
    assert following.counted("Equivocation") == 0
    assert following.published == messages


def test_copies_that_waited_are_executed_once(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    for message in job.messages[1:]:
        following.hear(message, feed="a")
        following.hear(message.as_subblock(), feed="b")
    following.hear(job.messages[0])
    assert following.pending == (1, 3)
    assert following.counted("Applied") == len(job.messages)
    assert following.published == list(job.messages)
    assert len(following.follower.buffered) == 0


@pytest.mark.parametrize("first", [None, subblock])
def test_a_copy_with_another_hash_is_a_conflict(
    truth: Truth, following: Following, first: Change | None
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*(first(each) if first else each for each in job.messages[:3]))
    for changed in (
        claiming(block_hash=OTHER_HASH),
        claiming(state_root=OTHER_HASH),
        claiming(withdrawals_root=OTHER_HASH),
    ):
        following.hear(changed(job.messages[2]), feed="b")
    assert following.counted("Equivocation") == 3
    following.hear(job.messages[3])
    assert following.pending == (1, 3), "and changes nothing"
    assert following.counted("Replaced") == 0


def test_a_false_copy_that_came_first_does_not_stand_in_the_way(
    truth: Truth, following: Following
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*map(subblock, job.messages[:2]))
    following.hear(claiming(block_hash=OTHER_HASH)(job.messages[2]), feed="b")
    assert following.counted("Diverged") == 1
    following.hear(*map(subblock, job.messages[2:]))
    assert following.pending == (1, 3)


def test_a_feed_that_contradicts_itself_hides_no_alternate_of_another(
    truth: Truth, following: Following
) -> None:
    """Eight contents for each of seven indices make two million paths, too many to try."""
    wrong = truth.job("1p", [[], [(0, 1)], *[[]] * 8])
    right = truth.job("1p", [[], *([(1, 70 + index)] for index in range(10))])
    following.hear(*map(subblock, wrong.messages), feed="b")
    for index in range(1, 8):
        for other in range(8):
            change = claiming(transactions=(), receipts_root=bytes([other] * 32))
            following.hear(change(wrong.messages[index]).as_subblock(), feed="b")
    following.hear(*map(subblock, right.messages), feed="a")
    assert following.pending == (1, 10)
    assert following.partial(right.messages[-1]) == following.partial_at(1, 10)


class TestConflict:
    """Two contents for one index, without hashes: later messages decide."""

    @pytest.fixture
    def jobs(self, truth: Truth, following: Following) -> tuple[Built, Built]:
        first = truth.job("1p", PLAN)
        other = truth.job("1p", [*PLAN[:2], [(1, 77)], [(2, 78)]])
        following.hear(*map(subblock, first.messages[:3]))
        following.hear(other.messages[2].as_subblock(), feed="b")
        assert following.counted("Equivocation") == 1
        assert following.partial(first.messages[2]) == following.partial_at(1, 2)
        return first, other

    def test_the_first_stays_if_the_next_message_follows_it(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, _ = jobs
        following.hear(first.messages[3].as_subblock())
        assert following.partial(first.messages[3]) == following.partial_at(1, 3)

    def test_the_other_replaces_it_if_the_next_message_follows_that(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, other = jobs
        following.hear(other.messages[3].as_subblock(), feed="b")
        assert following.pending == (1, 3)
        assert following.partial(other.messages[3]) == following.partial_at(1, 3)
        assert following.partial(first.messages[2]) is None
        assert following.counted("Replaced") == 1

    def test_false_messages_are_tried_once_and_do_not_hide_the_right_one(
        self, truth: Truth, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        _, other = jobs
        for salt in range(3):
            false = truth.job("1p", [*PLAN[:2], [(2, 100 + salt)], [(2, 78)]])
            lying = claiming(receipts_root=keccak256(bytes([salt])))
            following.hear(subblock(lying(false.messages[2])), feed="c")
            following.hear(subblock(lying(false.messages[3])), feed="c")
        following.hear(other.messages[3].as_subblock(), feed="b")
        assert following.partial(other.messages[3]) == following.partial_at(1, 3)

    def test_the_sealed_block_decides_without_a_next_message(
        self, following: Following, jobs: tuple[Built, Built]
    ) -> None:
        first, other = jobs
        following.canonical(other.blocks[2])
        assert following.sealed(1) == other.blocks[2].hash
        assert following.counted("SealForeign") == 0, "its messages were enough"
        assert following.partial(first.messages[2]) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("receipts_root", OTHER_HASH),
        ("logs_bloom", b"\xff" * 256),
        ("gas_used", 1_000_000),
        ("blob_gas_used", 1_000_000),
        ("withdrawals_root", OTHER_HASH),
        ("state_root", OTHER_HASH),
        ("block_hash", OTHER_HASH),
    ],
)
def test_a_false_value_is_detected_at_its_message(
    truth: Truth, following: Following, field: str, value: object
) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*map(subblock, job.messages[:2]))
    following.hear(claiming(**{field: value})(job.messages[2].as_subblock()))
    assert following.counted("Diverged") == 1
    assert f"1.2: {field}" in (following.follower.last_error or "")
    assert following.pending == (1, 1)


def test_a_false_transaction_is_detected_at_its_message(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    other = truth.job("other", [*PLAN[:2], [(2, 7)]], number=1).messages[2].diff.transactions
    following.hear(*map(subblock, job.messages[:2]))
    following.hear(claiming(transactions=other)(job.messages[2].as_subblock()))
    assert following.counted("Diverged") == 1
    assert following.pending == (1, 1)


def test_a_false_base_is_detected_at_sealing(truth: Truth, following: Following) -> None:
    """No field of a subblock commits to the randao of its block."""
    (job,) = sealed_jobs(truth, 1)
    first = job.messages[0]
    assert first.base is not None
    false = replace(first, base=replace(first.base, prev_randao=OTHER_HASH))
    following.hear(*map(subblock, (false, *job.messages[1:])))
    assert following.pending == (1, 3)
    following.canonical(job.blocks[-1])
    assert following.sealed(1) == job.blocks[-1].hash
    assert following.counted("SealForeign") == 1
    assert following.partial(first) is None


@pytest.mark.parametrize(
    "missing",
    [
        {"block_hash"},
        {"state_root"},
        {"withdrawals_root"},
        {"state_root", "withdrawals_root"},
        {"block_hash", "state_root"},
    ],
)
def test_each_field_that_is_provided_is_compared(
    truth: Truth, following: Following, missing: set[str]
) -> None:
    """With real state roots, which the hashes cover."""
    (job,) = sealed_jobs(truth, 1)
    zeros = claiming(**dict.fromkeys(missing, ZERO))
    for message, block in zip(job.messages, job.blocks, strict=True):
        diff = {"state_root": block.header.state_root, "block_hash": block.hash}
        following.hear(zeros(claiming(**diff)(message)))
    assert following.counted("Applied") == len(job.messages)
    for field in {"block_hash", "state_root", "withdrawals_root"} - missing:
        following.hear(claiming(**{field: OTHER_HASH})(zeros(job.messages[3])), feed="b")
    assert following.counted("Equivocation") == 3 - len(missing)


def test_what_was_executed_is_known_after_a_restart(truth: Truth, following: Following) -> None:
    (job,) = sealed_jobs(truth, 1)
    following.hear(*map(subblock, job.messages[:3]))
    following.reopen()
    following.hear(*map(subblock, job.messages[:3]), job.messages[2])
    assert following.counted("Duplicate") == 4
    following.hear(job.messages[3].as_subblock())
    assert following.pending == (1, 3)


def test_a_buffer_keeps_copies_of_both_forms(truth: Truth) -> None:
    """Each has separate claims, and one of them may be false."""
    (job,) = sealed_jobs(truth, 1)
    plain, zero = job.messages[1], job.messages[1].as_subblock()
    buffered = Buffered()
    for message in (plain, zero, zero, plain):
        buffered.keep(Received("a", 1, message))
    assert [each.message for each in buffered] == [plain, zero]
    assert Received("a", 1, plain).is_copy_of(Received("b", 1, zero))


@pytest.mark.parametrize(
    "lacks",
    [
        {},
        {"hash": None},
        {"hash": "0x" + "00" * 32, "stateRoot": "0x" + "00" * 32},
        {"hash": None, "stateRoot": None},
        dict.fromkeys(("hash", "stateRoot", "withdrawalsRoot"), "0x" + "00" * 32),
    ],
)
def test_a_polled_endpoint_may_provide_no_hash(
    tmp_path: Path, truth: Truth, following: Following, lacks: dict[str, object]
) -> None:
    (job,) = sealed_jobs(truth, 1)
    endpoint, polled = Following(tmp_path / "endpoint"), PolledPending()
    with asker(endpoint.ledger) as asked:
        for message in job.messages:
            endpoint.hear(message)
            answer = asked.ask("eth_getBlockByNumber", "pending", True) | lacks
            seen, block_hash = read_pending(Raw(json.dumps(answer).encode()))
            found = polled.see(seen.header, seen.transactions, block_hash)
            assert found is not None
            following.hear(found)
    endpoint.close()
    assert following.counted("Applied") == len(job.messages)
    following.canonical(job.blocks[-1])
    assert following.sealed(1) == job.blocks[-1].hash
    assert following.counted("SealForeign") == 0


class TestUnknownRules:
    """A post-execution transaction on a chain that has no time for Lagoon."""

    @pytest.mark.parametrize(
        "change",
        [claiming(post_exec_tx=b"\x7d\xc0"), claiming(transactions=(b"\x7d\xc0",))],
    )
    def test_a_message_that_needs_them(
        self, truth: Truth, following: Following, change: Change
    ) -> None:
        (job,) = sealed_jobs(truth, 1)
        following.hear(*map(subblock, job.messages[:2]), change(job.messages[2].as_subblock()))
        assert following.counted("Unsupported") == 1
        assert "post-exec" in (following.follower.last_error or "").replace("_", "-")
        assert following.counted("Malformed") == following.counted("Undecodable") == 0
        assert following.pending == (1, 1)

    def test_a_sealed_block_that_needs_them(self, truth: Truth, following: Following) -> None:
        (job,) = sealed_jobs(truth, 1)
        block = job.blocks[-1]
        following.canonical(Block(block.header, (*block.transactions, b"\x7d\xc0"), (), ()))
        assert following.latest == 0
        assert following.counted("BadCanonical") == 0
        found = following.follower.last_error or ""
        assert "unknown rules: block 1" in found
        assert "0x7d" in found


class TestPartialState:
    """A follower that cannot compute the root of the withdrawals."""

    @pytest.fixture
    def truth(self, tmp_path: Path) -> Iterator[Truth]:
        truth = Truth(tmp_path / "truth", linked=False)
        truth.grow(2, "before")
        yield truth
        truth.close()

    @pytest.fixture
    def partial(self, tmp_path: Path, truth: Truth) -> Iterator[PartialFollowing]:
        partial = PartialFollowing(tmp_path / "partial", truth, 2)
        yield partial
        partial.close()

    def withdrawing(self, truth: Truth) -> Built:
        """A job whose first index initiates a withdrawal."""
        deposit = deposit_transaction(
            source_hash=bytes(32), sender=SENDERS[1], to=PASSER, mint=0, value=0,
            gas_limit=200_000, input=(7).to_bytes(32) + truth.latest.number.to_bytes(32),
        )  # fmt: skip
        return truth.job(f"withdrawing {truth.latest.number}", PLAN, upgrades=[deposit])

    @pytest.mark.parametrize("plain", [(), (0,), (2,), (3,)])
    def test_withdrawals_are_sealed_by_name(
        self, truth: Truth, partial: PartialFollowing, plain: tuple[int, ...]
    ) -> None:
        for _ in range(3):
            job = self.withdrawing(truth)
            for message in job.messages:
                form = message if message.index in plain else message.as_subblock()
                partial.hear(form, feed="a")
                partial.hear(message, feed="b")
            assert partial.pending == (job.number, 3)
            partial.canonical(truth.seal(job))
            assert partial.latest == job.number
        assert partial.counted("SealForeign") == 0
        assert partial.counted("SealedByCanonical") == 3
        assert partial.counted("Equivocation") == partial.counted("Diverged") == 0

    def test_a_copy_of_a_message_that_waits_for_state_is_not_tried(
        self, truth: Truth, partial: PartialFollowing
    ) -> None:
        job = truth.job("job", PLAN)
        for message in job.messages:
            partial.receive(message, feed="a")
            partial.receive(subblock(message), feed="b")
        assert partial.counted("Wanting") == 1, "the first message, once"
        partial.learn()
        partial.run_until_idle()
        assert partial.pending == (job.number, 3)
        assert partial.counted("Applied") == len(job.messages)
        assert len(partial.follower.buffered) == 0

    def test_a_false_copy_that_waits_for_state_does_not_stand_in_the_way(
        self, truth: Truth, partial: PartialFollowing
    ) -> None:
        job = truth.job("job", PLAN)
        partial.hear(*job.messages[:2])
        partial.receive(claiming(receipts_root=ZERO, block_hash=ZERO)(job.messages[2]), feed="b")
        partial.receive(claiming(block_hash=OTHER_HASH)(job.messages[2]), feed="b")
        partial.receive(subblock(job.messages[2]), feed="a")
        partial.learn()
        assert partial.pending == (job.number, 2)

    def test_a_hash_is_published_only_if_all_roots_are_known(
        self, truth: Truth, partial: PartialFollowing
    ) -> None:
        job = self.withdrawing(truth)
        partial.hear(*map(subblock, job.messages[:3]), job.messages[3])
        *unknown, last = partial.published
        assert {each.diff.block_hash for each in unknown} == {ZERO}
        assert last.diff == job.messages[3].diff

    def test_withdrawals_survive_a_restart(self, truth: Truth, partial: PartialFollowing) -> None:
        job = self.withdrawing(truth)
        partial.hear(*map(subblock, job.messages[:2]))
        partial.reopen()
        partial.hear(*map(subblock, job.messages))
        assert partial.pending == (job.number, 3)
        partial.canonical(truth.seal(job))
        assert partial.latest == job.number
        assert partial.counted("SealForeign") == 0
