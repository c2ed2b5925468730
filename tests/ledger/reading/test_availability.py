"""Readiness: a live chain is ready while its pending block is fresh."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.reading.availability import network_status
from foreblock.ledger.reading.view import Ledger
from foreblock.status.status_text import status_lines
from support.chains.preconfirming import PreconfirmingChain

LIFETIME_NS = 2 * 2 * 10**9  # two blocks of two seconds


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def asked(chain: PreconfirmingChain, *, moves: bool) -> tuple[bool, str]:
    ledger = Ledger(chain.store, clock=chain.clock)
    found = network_status(ledger, "main", "dev" if moves else "store", chain.clock.wall_ns())
    return found.ready, "\n".join(status_lines(found))


def test_a_chain_that_moves_is_ready_while_pending_is_fresh(chain: PreconfirmingChain) -> None:
    assert asked(chain, moves=True)[0] is False
    chain.begin()
    chain.extend()
    chain.clock.advance(1_500_000_000)
    ready, facts = asked(chain, moves=True)
    assert ready
    assert "pending: block 1, flashblock 1, 1.50 s old" in facts
    assert "pending is 1 above latest" in facts
    chain.clock.advance(LIFETIME_NS)
    ready, facts = asked(chain, moves=True)
    assert not ready
    assert "no flashblock came in time" in facts


def test_a_chain_that_does_not_move_is_always_ready(chain: PreconfirmingChain) -> None:
    ready, facts = asked(chain, moves=False)
    assert ready
    assert "latest: block 0" in facts
    assert "nothing is written to this chain" in facts
    assert "states: from block 0 on" in facts
    assert "logs: 1 block to index" in facts
    assert "maintenance" not in facts


def test_how_far_the_work_behind_the_head_is_can_be_read(chain: PreconfirmingChain) -> None:
    for _ in range(3):
        chain.begin()
        chain.seal()
    assert "maintenance: 5 blocks to fold, 0 items to clear" in asked(chain, moves=True)[1]
    while chain.store.maintain(1000):
        pass
    assert "maintenance: up to date" in asked(chain, moves=True)[1]


def test_a_followed_chain_without_flashblocks_is_ready_while_its_latest_block_is_young(
    chain: PreconfirmingChain,
) -> None:
    chain.begin()
    chain.seal()
    chain.clock.advance(LIFETIME_NS)
    ledger = Ledger(chain.store, clock=chain.clock, followed=True)
    view = ledger.view()
    most = 4 * view.profile.time_step + 2
    young = (view.latest.header.timestamp + most) * 10**9
    view.close()
    assert network_status(ledger, "main", "follow", young).ready
    old = network_status(ledger, "main", "follow", young + 10**6)
    assert not old.ready
    assert f"behind: latest is older than {most} s" in status_lines(old)
    assert network_status(ledger, "main", "store", young + 10**6).ready
