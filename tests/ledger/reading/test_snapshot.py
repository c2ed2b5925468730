"""A commit as seen by its views, and the expiry of its pending block."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.clock import DrivenClock
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.partials import Freshness
from support.chains.preconfirming import PreconfirmingChain

LIFETIME_NS = 2 * 2 * 10**9  # two blocks of two seconds


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


class CountingClock(DrivenClock):
    """Counts its readings."""

    asked = 0

    def monotonic_ns(self) -> int:
        self.asked += 1
        return super().monotonic_ns()


def pending_index(ledger: Ledger) -> int | None:
    view = ledger.view()
    view.close()
    assert view.resolve("pending") is (view.pending or view.latest)
    return None if view.pending is None else view.pending.index


def test_pending_ends_at_its_deadline_and_not_a_nanosecond_before(
    chain: PreconfirmingChain,
) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    chain.begin()
    chain.clock.advance(LIFETIME_NS - 1)
    assert pending_index(ledger) == 0
    chain.clock.advance(1)
    assert pending_index(ledger) is None
    chain.extend()
    assert pending_index(ledger) == 1, "the next flashblock is fresh"
    chain.clock.advance(LIFETIME_NS - 1)
    assert pending_index(ledger) == 1
    chain.clock.advance(1)
    assert pending_index(ledger) is None


def test_every_reader_sees_the_deadline_at_the_same_moment(chain: PreconfirmingChain) -> None:
    """A reader that saw the commit, and one that comes long after the deadline."""
    early = Ledger(chain.store, clock=chain.clock)
    chain.begin()
    assert pending_index(early) == 0
    chain.clock.advance(LIFETIME_NS)
    late = Ledger(chain.store, clock=chain.clock)
    assert (pending_index(early), pending_index(late)) == (None, None)


def test_view_keeps_the_pending_block_that_it_was_taken_with(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    chain.begin()
    view = ledger.view()
    chain.clock.advance(LIFETIME_NS)
    assert view.resolve("pending") is view.pending
    assert view.pending is not None
    assert b"pending=0x1.0:0x" in view.headers
    view.close()


def test_deadline_of_an_earlier_start_of_the_machine_has_passed(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    chain.begin()
    batch = chain.store.batch()
    batch.note(Freshness(b"another start ..", 2**63).encode())
    chain.store.commit(batch)
    assert pending_index(ledger) is None


def test_time_is_asked_only_where_something_is_pending(chain: PreconfirmingChain) -> None:
    clock = CountingClock()
    ledger = Ledger(chain.store, clock=clock)
    ledger.view().close()
    assert clock.asked == 0
    chain.begin()
    ledger.view().close()
    assert clock.asked == 1
    clock.advance(LIFETIME_NS)
    for _ in range(3):
        ledger.view().close()
    assert clock.asked == 2, "what has expired is not pending any more"


def test_header_names_latest_and_the_place_of_pending(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    for _ in range(2):
        chain.begin()
    for _ in range(11):
        flashblock = chain.extend([chain.pay()])
    with chain.store.view() as raw:
        heads = raw.heads
    assert heads.latest is not None
    view = ledger.view()
    view.close()
    latest = f"commit={heads.commit}; latest=0x1:0x{heads.latest[1].hex()}"
    pending = f"pending=0x2.11:0x{flashblock.diff.block_hash.hex()}"
    assert view.headers.decode() == f"Foreblock-Snapshot: {latest}; {pending}\r\n"
    chain.clock.advance(LIFETIME_NS)
    view = ledger.view()
    view.close()
    assert view.headers.decode() == f"Foreblock-Snapshot: {latest}\r\n"


def test_header_that_nobody_wants_stays_away(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock, announce=False)
    chain.begin()
    for _ in range(2):
        view = ledger.view()
        view.close()
        assert view.headers == b""
        chain.clock.advance(LIFETIME_NS)


def test_block_boundary_never_shows_a_gap(chain: PreconfirmingChain) -> None:
    """A seal and the next first index are one commit."""
    ledger = Ledger(chain.store, clock=chain.clock)
    chain.begin()
    for number in range(1, 4):
        view = ledger.view()
        assert view.pending is not None
        assert (view.latest.number, view.pending.number) == (number - 1, number)
        assert view.pending.header.parent_hash == view.latest.hash
        view.close()
        chain.begin()


def test_safe_and_finalized_follow_at_a_distance_and_earliest_is_genesis(
    chain: PreconfirmingChain,
) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    for latest in range(70):
        chain.begin()
        view = ledger.view()
        assert view.latest.number == latest
        assert view.resolve("safe").number == max(latest - 32, 0)
        assert view.resolve("finalized").number == max(latest - 64, 0)
        assert view.resolve("earliest").number == 0
        view.close()
