"""Bodies of blocks from received messages: those of the parent of the block that names it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.jobs import Job, bodies_named
from foreblock.types import Flashblock, transactions_root
from support.chains.following import Built, Following, Truth

Parts = tuple[Built, Built]


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    yield made
    made.close()


@pytest.fixture
def parts(truth: Truth) -> Parts:
    """A block of three messages, and the first message of the next one."""
    first = truth.job("first", [[(0, 1)], [(1, 2), (2, 3)], []])
    truth.seal(first)
    return first, truth.job("second", [[(0, 4)]])


def _named(parts: Parts, messages: Sequence[Flashblock], hash: bytes = b"") -> list[bytes]:
    """The roots of the bodies found for the block, or for another hash."""
    held = [Received("a", 0, each) for each in messages]
    jobs: list[Job] = []
    return [
        transactions_root(each)
        for each in bodies_named(hash or parts[0].blocks[-1].hash, jobs, held)
    ]


def test_messages_in_any_order_make_up_the_body(parts: Parts) -> None:
    root = parts[0].blocks[-1].header.transactions_root
    messages = [*parts[1].messages, *reversed(parts[0].messages)]
    assert _named(parts, messages) == [root]
    assert _named(parts, [*messages, *messages]) == [root]


def test_without_a_message_there_is_no_body(parts: Parts) -> None:
    messages = [parts[0].messages[0], parts[0].messages[2], *parts[1].messages]
    assert _named(parts, messages) == []


def test_a_hash_that_no_message_names_has_none(parts: Parts) -> None:
    assert _named(parts, parts[0].messages) == []
    assert _named(parts, [*parts[0].messages, *parts[1].messages], b"\x11" * 32) == []


def test_a_follower_knows_the_body_of_what_it_executed(tmp_path: Path, parts: Parts) -> None:
    """Also while the block is not sealed, because its feed has no state root."""
    follower = Following(tmp_path / "followed")
    for message in parts[0].messages:
        follower.receive(message)
    sealed = parts[0].blocks[-1].hash
    assert follower.follower.bodies_named(sealed) == []
    follower.receive(parts[1].messages[0])
    bodies = follower.follower.bodies_named(sealed)
    follower.close()
    root = parts[0].blocks[-1].header.transactions_root
    assert root in map(transactions_root, bodies)
