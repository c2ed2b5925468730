"""Where a transaction is found: in a sealed block, in pending, and in what that stands on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import keccak256
from foreblock.ledger.reading.blocks import PreconfirmedBlock, SealedBlock
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.types import Flashblock
from support.chains.following import Following, Truth

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)]]


@pytest.fixture
def chains(tmp_path: Path) -> Iterator[tuple[Truth, Following]]:
    truth, following = Truth(tmp_path / "truth"), Following(tmp_path / "followed")
    yield truth, following
    following.close()
    truth.close()


def found(following: Following, message: Flashblock) -> tuple[bytes, int, type] | None:
    """The hash of the block that has the first transaction of a message, its place, its kind."""
    view = following.ledger.view()
    try:
        at = find_transaction(view, keccak256(message.diff.transactions[0]))
        return None if at is None else (at[0].hash, at[1], type(at[0]))
    finally:
        view.close()


def test_a_transaction_of_a_block_that_is_not_sealed_yet_is_found_below_pending(
    chains: tuple[Truth, Following],
) -> None:
    truth, following = chains
    first = truth.job("1p", PLAN)
    sealed = truth.seal(first)
    second = truth.job("2p", PLAN)
    following.receive(*first.messages, *second.messages[:2])
    assert (following.latest, following.pending) == (0, (2, 1)), "stacked, and proven later"
    end = first.messages[2].diff.block_hash
    assert found(following, first.messages[1]) == (end, 1, PreconfirmedBlock)
    pending = second.messages[1].diff.block_hash
    assert found(following, second.messages[1]) == (pending, 1, PreconfirmedBlock)
    following.settle()
    assert found(following, first.messages[1]) == (sealed.hash, 1, SealedBlock)
    assert found(following, second.messages[1]) == (pending, 1, PreconfirmedBlock)
