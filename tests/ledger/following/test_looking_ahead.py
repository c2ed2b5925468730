"""State for later messages is requested while an earlier one waits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.following import Built, Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import SENDERS

ANCHOR = 1


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    made.grow(ANCHOR, "before")
    yield made
    made.close()


@pytest.fixture
def partial(tmp_path: Path, truth: Truth) -> Iterator[PartialFollowing]:
    made = PartialFollowing(tmp_path / "partial", truth, ANCHOR)
    yield made
    made.close()


@pytest.fixture
def built(truth: Truth) -> Built:
    """A block in which each message has another sender."""
    return truth.job("block", [[(0, 2)], [(1, 3)], [(2, 5)]])


def test_a_message_behind_one_that_waits_is_tried_at_once(
    partial: PartialFollowing, built: Built
) -> None:
    partial.hear(built.messages[0])
    partial.receive(built.messages[1])
    first = partial.follower.take_wanted()
    assert SENDERS[1] in first.accounts
    assert SENDERS[2] not in first.accounts
    partial.receive(built.messages[2])
    second = partial.follower.take_wanted()
    assert SENDERS[2] in second.accounts
    assert not second.is_needed


def test_so_both_take_no_more_rounds_than_one(partial: PartialFollowing, built: Built) -> None:
    """First the sender and the contract with its code, then the slot that it reads."""
    partial.hear(built.messages[0])
    for message in built.messages[1:]:
        partial.receive(message)
    for _ in range(2):
        assert partial.pending == (ANCHOR + 1, 0)
        partial.prove(partial.follower.take_wanted())
        partial.follower.try_again(learned=True)
    assert not partial.follower.take_wanted()
    assert partial.pending == (ANCHOR + 1, 2)


def test_a_message_of_the_next_block_is_tried_too(
    truth: Truth, partial: PartialFollowing, built: Built
) -> None:
    partial.hear(built.messages[0])
    partial.receive(built.messages[1])
    partial.follower.take_wanted()
    truth.seal(built)
    partial.receive(truth.job("next", [[(2, 7)]]).messages[0])
    assert SENDERS[2] in partial.follower.take_wanted().accounts
