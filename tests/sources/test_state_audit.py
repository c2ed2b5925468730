"""The audit: trusted values are proven later, and false ones are found."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Account, FetchedState
from foreblock.clock import DrivenClock
from foreblock.errors import NoUpstream
from foreblock.follow import audit as state_audit
from foreblock.follow.audit import Key, RefutedClaim, StateAudit
from foreblock.follow.state_fetcher import ExecutedBlocks, StateFetcher
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.upstream.budget import Purpose
from support.chains.following import Truth
from support.chains.state_fetcher import SOURCE, FakeFetcher
from support.chains.writing import SCRIBE, SENDERS

EPOCH, ANCHOR, LATEST, SECONDS = 7, 4, 7, 10.0
SLOTS = frozenset({1, 2})
CLAIMS = len(SENDERS) + 1 + len(SLOTS)  # the account of the slots is included
WANTED = StateKeys(frozenset(SENDERS), {SCRIBE: SLOTS})


MOST_TURNS = 50  # of the loop, for the slices of a test


class Audited:
    """A learner with accepts_unproven, its audit, and the state known then."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.clock = DrivenClock()
        self.claims, self.proofs = FakeFetcher(truth, 5), FakeFetcher(truth, 6)
        self.claims.proves = False
        self.audit = StateAudit(self.proofs, self.clock, SECONDS)  # type: ignore[arg-type]
        self.learner = StateFetcher(
            self.claims, proven=False, behind=2, audit=self.audit  # type: ignore[arg-type]
        )  # fmt: skip
        self.learner.begin(FetchedState(EPOCH))
        headers = [truth.headers[number] for number in range(LATEST, ANCHOR - 1, -1)]
        self.blocks = ExecutedBlocks(EPOCH, headers, keeps_hashes=False)

    async def learn(self, wanted: StateKeys = WANTED) -> None:
        await self.learner.find(wanted, self.blocks, Purpose.CLIENT, 1.0)

    def known(self, number: int, key: Key) -> Account | int | None:
        """The known state: the true values, and a false one."""
        address, slot = key
        with self.truth.store.view() as view:
            state = view.state(number)
            if slot is None:
                return state.account(address)
            return self.claims.another.get((address, slot), state.storage(address, slot))

    async def next_refuted(self) -> RefutedClaim | None:
        """Return the false values; None once nothing waits any more, or nothing can be proven."""
        auditing = asyncio.ensure_future(self.audit.next_refuted(lambda: self.blocks, self.known))
        try:
            for _ in range(MOST_TURNS):
                await asyncio.sleep(0)
            return auditing.result() if auditing.done() else None
        finally:
            auditing.cancel()


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audited]:
    monkeypatch.setattr(state_audit, "AGAIN_SECONDS", 0.0)
    truth = Truth(tmp_path / "truth")
    truth.grow(8, "chain")
    yield Audited(truth)
    truth.close()


def test_what_was_believed_is_proven(audited: Audited) -> None:
    async def scene() -> None:
        await audited.learn()
        assert audited.audit.waiting == CLAIMS
        assert await audited.next_refuted() is None

    asyncio.run(scene())
    assert audited.audit.waiting == 0
    assert audited.audit.counters == {"proven": CLAIMS}
    assert audited.audit.accepts_unproven
    assert not audited.proofs.lies


def test_a_lie_is_found_and_nothing_is_believed_for_a_while(audited: Audited) -> None:
    audited.claims.another[SCRIBE, 2] = 99

    async def scene() -> RefutedClaim | None:
        await audited.learn()
        return await audited.next_refuted()

    found = asyncio.run(scene())
    assert found is not None
    assert found.source == SOURCE
    assert f"slot 0x2 of 0x{SCRIBE.hex()} at block 6: 0x63 is not 0x" in found.what
    assert audited.audit.counters["Untrue"] == 1
    assert audited.proofs.lies == [found.what]
    assert not audited.audit.accepts_unproven
    audited.clock.advance(int(state_audit.DISTRUST_SECONDS * 10**9))
    audited.audit.begin(EPOCH + 1)
    assert audited.audit.accepts_unproven


def test_only_what_is_proven_is_learned_while_nothing_is_believed(audited: Audited) -> None:
    async def scene() -> None:
        await audited.learn()
        audited.clock.advance(int((SECONDS + 1) * 10**9))
        assert not audited.audit.accepts_unproven
        asked = len(audited.claims.places)
        await audited.learn(StateKeys(slots={SCRIBE: frozenset({3})}))
        assert len(audited.claims.places) == asked
        audited.proofs.proves = False
        with pytest.raises(NoUpstream):
            await audited.learn(StateKeys(slots={SCRIBE: frozenset({4})}))

    asyncio.run(scene())
    assert audited.audit.waiting == CLAIMS


def test_a_proof_of_a_block_that_is_not_known_settles_nothing(audited: Audited) -> None:
    audited.proofs.at = 8

    async def scene() -> None:
        await audited.learn()
        assert await audited.next_refuted() is None

    asyncio.run(scene())
    assert audited.audit.waiting == CLAIMS
    assert audited.audit.counters["of another block"] > 0


def test_a_proof_that_does_not_hold_is_told_and_settles_nothing(audited: Audited) -> None:
    audited.proofs.turned = (-1, 0)

    async def scene() -> None:
        await audited.learn(StateKeys(frozenset(SENDERS[:1])))
        assert await audited.next_refuted() is None

    asyncio.run(scene())
    assert audited.audit.waiting == 1
    assert audited.proofs.lies


def test_another_epoch_has_nothing_to_prove(audited: Audited) -> None:
    asyncio.run(audited.learn())
    audited.audit.begin(EPOCH + 1)
    assert audited.audit.waiting == 0
    asyncio.run(audited.learn())  # the requests in flight then
    assert audited.audit.waiting == 0


def test_the_oldest_claims_are_asked_for_where_they_have_not_changed(audited: Audited) -> None:
    async def scene() -> None:
        await audited.learn()
        await audited.next_refuted()

    asyncio.run(scene())
    assert [each.number for each in audited.proofs.places[0]] == [LATEST, 6, 5]
