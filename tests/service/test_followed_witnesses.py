"""debug_executionWitness on a followed chain: the same as on a complete store.

The blocks were executed on state learned by proofs. Their witnesses need more: the contract whose
storage root is in the headers was never read.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import NoUpstream
from foreblock.ledger.reading.view import Ledger
from support.chains.following import Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import PASSER
from support.servers.asking import asker, error
from support.servers.cold_follower import Follower, follower

ANCHOR, LATEST = 3, 9
WITNESS = "debug_executionWitness"


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Ledger]:
    """The chain; a follower has executed the blocks after its anchor."""
    with closing(Truth(tmp_path / "truth")) as truth:
        truth.grow(ANCHOR, "before")
        partial = PartialFollowing(tmp_path / "store", truth, ANCHOR)
        partial.canonical(*truth.grow(LATEST - ANCHOR, "after"))
        partial.close()
        yield Ledger(truth.store)


@pytest.fixture
def cold(whole: Ledger, tmp_path: Path) -> Iterator[Follower]:
    with follower(whole, tmp_path / "store", is_begun=True) as made:
        yield made


def test_witnesses_are_those_of_a_whole_store(whole: Ledger, cold: Follower) -> None:
    with asker(whole) as everything:
        for number in range(ANCHOR + 1, LATEST + 1):
            true = everything.ask(WITNESS, hex(number))
            assert PASSER.hex() not in "".join(true["keys"]), "it is never read"
            assert cold.ask(WITNESS, hex(number)) == true
    assert "0x" + PASSER.hex() in cold.network.proofs_at
    assert cold.network.asked == [], "no value is missing"
    asked = len(cold.network.proofs_at)
    cold.ask(WITNESS, hex(LATEST))
    assert len(cold.network.proofs_at) == asked, "known state is not requested again"


def test_what_cannot_be_had_is_an_error(cold: Follower) -> None:
    def refuse(_: Any) -> Any:  # noqa: ANN401, JSON
        raise NoUpstream("nobody proves that block", 1)

    cold.network.change = refuse
    refused = cold.ask(WITNESS, hex(LATEST))
    assert refused["code"] == -32002
    assert "nobody proves that block" in refused["message"]


def test_blocks_up_to_the_anchor_have_none(cold: Follower) -> None:
    assert cold.ask(WITNESS, hex(ANCHOR - 1)) == error(-32000, f"block #{ANCHOR - 1} not found")
    assert cold.ask(WITNESS, hex(ANCHOR))["code"] == -32000, "only its header is here"
