"""Invariants for any feed: order does not matter, and states are pure functions of transactions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import DiskFull
from foreblock.ledger.storage import partial_rows
from support.chains.following import Built, Following, Truth
from support.payloads.ledger_state import root_from_scratch

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)], [], [(0, 5)], [(1, 7), (1, 9)]]
OTHER = [[], [(2, 7)], [(1, 8), (0, 9)]]


@contextmanager
def chains() -> Iterator[tuple[Truth, Following]]:
    with TemporaryDirectory() as folder:
        truth, following = Truth(Path(folder) / "truth"), Following(Path(folder) / "followed")
        yield truth, following
        following.close()
        truth.close()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Built:
    truth = Truth(tmp_path_factory.mktemp("truth") / "store")
    job = truth.job("1p", PLAN)
    truth.close()
    return job


@st.composite
def arrivals(draw: st.DrawFn) -> list[int]:
    """Every message of the job at least once, in any order."""
    order = draw(st.permutations(range(len(PLAN))))
    again = draw(st.lists(st.integers(0, len(PLAN) - 1), max_size=6))
    for each in again:
        order.insert(draw(st.integers(0, len(order))), each)
    return order


@given(order=arrivals(), worked=st.booleans())
def test_any_order_and_duplication_of_a_job_ends_in_the_same_partials(
    job: Built, order: list[int], *, worked: bool
) -> None:
    with TemporaryDirectory() as folder:
        following = Following(Path(folder) / "followed")
        for index in order:
            following.receive(job.messages[index])
            if worked:
                following.run_until_idle()
        with following.store.view() as view:
            found = []
            for index in range(len(PLAN)):
                row = view.row(partial_rows.by_position_key(1, index))
                assert row is not None
                (number,) = partial_rows.decode_numbers(row)
                partial = view.partial(number)
                assert partial is not None
                found.append(partial.hash)
        assert found == [message.diff.block_hash for message in job.messages]
        assert following.pending == (1, len(PLAN) - 1)
        assert len(following.published) == len(PLAN)
        following.close()


def test_states_are_what_the_transactions_make_of_the_parent_through_every_switch(
    tmp_path: Path,
) -> None:
    """Roots are built from scratch from the whole state, before and after folding."""
    with chains() as (truth, following):
        first, stray = truth.job("1p", PLAN), truth.job("1q", OTHER, salt=b"q")
        other = truth.job("1p", [*PLAN[:4], [(2, 99)], [(2, 101)]])
        truth.seal(other)
        second = truth.job("2p", OTHER)
        truth.seal(second)
        third = truth.job("3p", PLAN)
        following.receive(*first.messages[:5], stray.messages[0])
        following.receive(other.messages[4], other.messages[5], *second.messages)
        check_states(tmp_path / "a", following, (first, other, stray, second))
        following.run_until_idle()
        assert following.latest == 1
        check_states(tmp_path / "b", following, (first, other, stray, second))
        following.receive(*third.messages[:3])
        check_states(tmp_path / "c", following, (other, second, third))
        following.run_until_idle()
        following.reopen()
        check_states(tmp_path / "d", following, (other, second, third))
        following.receive(*third.messages[3:])
        assert check_states(tmp_path / "e", following, (other, second, third)) == 15


def check_states(folder: Path, following: Following, jobs: tuple[Built, ...]) -> int:
    """Compare every reachable partial block with the truth's."""
    folder.mkdir()
    seen = 0
    with following.store.view() as view:
        for job in jobs:
            for message, block in zip(job.messages, job.blocks, strict=True):
                number = following.partial(message)
                if number is not None:
                    state = view.state_of_partial(number)
                    root = root_from_scratch(folder / f"{message.payload_id.hex()}{seen}", state)
                    assert root == block.header.state_root
                    seen += 1
    assert seen
    return seen


def test_jobs_are_rebuilt_from_their_rows_after_a_kill() -> None:
    """A rejected job is found again, too."""
    with chains() as (truth, following):
        first, stray = truth.job("1p", PLAN), truth.job("1q", OTHER, salt=b"q")
        truth.seal(first)
        second = truth.job("2p", OTHER)
        following.hear(*first.messages, stray.messages[0])
        following.reopen()
        following.hear(second.messages[0])
        assert (following.latest, following.pending) == (1, (2, 0))
        assert following.sealed(1) == first.blocks[-1].hash
        assert following.partial(stray.messages[0]) is None


def test_stacked_block_is_proven_after_a_kill() -> None:
    with chains() as (truth, following):
        first = truth.job("1p", PLAN)
        truth.seal(first)
        second = truth.job("2p", OTHER)
        following.receive(*first.messages, *second.messages[:2])
        assert following.latest == 0
        following.reopen()
        assert following.pending == (2, 1)
        following.run_until_idle()
        assert (following.latest, following.pending) == (1, (2, 1))
        following.hear(second.messages[2])
        assert following.pending == (2, 2)


def test_store_that_fails_is_told_and_the_last_commit_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with chains() as (truth, following):
        first = truth.job("1p", PLAN)
        following.hear(*first.messages[:2])

        def fail(*_: object) -> None:
            raise DiskFull("/")

        with monkeypatch.context() as broken:
            broken.setattr(following.writer, "commit", fail)
            with pytest.raises(DiskFull):
                following.follower.receive(first.messages[2], "a")
        assert following.published == list(first.messages[:2]), "only stored data is announced"
        following.hear(*first.messages[2:])
        assert following.pending == (1, len(PLAN) - 1)


def test_failure_here_is_counted_and_the_last_commit_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with chains() as (truth, following):
        first = truth.job("1p", PLAN)
        following.hear(*first.messages[:2])

        def fail(*_: object) -> None:
            raise RuntimeError("a mistake of ours")

        with monkeypatch.context() as broken:
            broken.setattr("foreblock.ledger.following.actions.classify", fail)
            following.follower.receive(first.messages[2], "a")
        assert following.counted("Failed") == 1
        assert following.follower.last_error == "RuntimeError: a mistake of ours"
        for message in first.messages[2:]:
            following.follower.receive(message, "a")
        assert following.pending == (1, len(PLAN) - 1)


def test_heads_may_be_named_between_any_two_messages() -> None:
    with chains() as (truth, following):
        first, stray = truth.job("1p", PLAN), truth.job("1q", OTHER, salt=b"q")
        block = truth.seal(first)
        second = truth.job("2p", OTHER)
        following.hear(*first.messages, second.messages[0], *stray.messages)
        following.follower.heads(block.hash, truth.headers[0].hash)
        following.hear(*second.messages[1:])
        assert following.pending == (2, 2)
        with following.store.view() as view:
            assert view.heads.safe == (1, block.hash)
