"""Learned state: only claims shown by proofs, at executed blocks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foreblock._engine import FetchedState, MissingKeys, Store
from foreblock.errors import BadProof, NewEpoch, NoUpstream
from foreblock.follow import state_fetcher as state_learner
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.state_fetcher import ExecutedBlocks, StateFetcher
from foreblock.ledger.following.missing_state import MissingNodes, MissingState
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import Header, keccak256
from foreblock.upstream.budget import Purpose
from support.chains.following import Truth
from support.chains.state_fetcher import FakeFetcher
from support.chains.writing import SCRIBE, SENDERS

EPOCH = 7


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    made.grow(8, "chain")
    yield made
    made.close()


def _blocks(truth: Truth, anchor: int, latest: int) -> ExecutedBlocks:
    headers = [truth.headers[number] for number in range(latest, anchor - 1, -1)]
    return ExecutedBlocks(EPOCH, headers, keeps_hashes=False)


class Learner(StateFetcher):
    """Exposes the state it learns into."""

    def begin(self, learned: FetchedState, *how: Any, **named: Any) -> None:  # noqa: ANN401, as declared
        self.learned = learned
        super().begin(learned, *how, **named)


def _learner(truth: Truth, at: int, *, proven: bool = True) -> tuple[Learner, FakeFetcher]:
    fetcher = FakeFetcher(truth, at)
    learner = Learner(fetcher, proven=proven, behind=2)  # type: ignore[arg-type]
    learner.begin(FetchedState(EPOCH))
    return learner, fetcher


def _find(learner: StateFetcher, wanted: StateKeys, blocks: ExecutedBlocks) -> FetchResult:
    found = asyncio.run(learner.find(wanted, blocks, Purpose.CLIENT, 1.0))
    return found.found


WANTED = StateKeys(frozenset(SENDERS), {SCRIBE: frozenset({1, 2})}, codes_of=frozenset({SCRIBE}))


@pytest.mark.parametrize("at", [4, 5, 7])
def test_a_proof_of_any_block_that_was_executed_will_do(truth: Truth, at: int) -> None:
    learner, fetcher = _learner(truth, at)
    found = _find(learner, WANTED, _blocks(truth, 4, 7))
    assert not found.missing(WANTED)
    assert not fetcher.lies
    assert learner.learned.unstored > len(SENDERS)


@pytest.mark.parametrize("at", [3, 8])
def test_a_proof_of_another_block_is_not_used(truth: Truth, at: int) -> None:
    """Below the anchor, or above the executed blocks: a key may have another value there."""
    learner, fetcher = _learner(truth, at)
    with pytest.raises(NoUpstream):
        _find(learner, StateKeys(frozenset(SENDERS)), _blocks(truth, 4, 7))
    assert learner.learned.unstored == 0
    assert not fetcher.lies
    assert learner.counters["of another block"] == len(SENDERS)


def _in_time(learner: StateFetcher, wanted: StateKeys, come: list[ExecutedBlocks]) -> FetchResult:
    """The found state while these blocks arrive, one per poll; the last one stays."""
    finding = learner.find_in_time(
        wanted, lambda: come.pop(0) if come[1:] else come[0], Purpose.CLIENT, 60.0
    )
    return asyncio.run(finding).found


def test_a_proof_of_a_block_that_comes_in_a_moment_is_waited_for(
    truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not requested again: with a moving tip that would never end."""
    monkeypatch.setattr(state_learner, "MOMENT", 0.0)
    learner, fetcher = _learner(truth, 8)
    come = [*[_blocks(truth, 4, 7)] * 4, _blocks(truth, 4, 8)]
    assert not _in_time(learner, WANTED, come).missing(WANTED)
    assert len(fetcher.places) == 1
    assert not fetcher.lies


def test_what_came_without_its_proof_is_not_all_that_is_waited_for(
    truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code is verified by its hash immediately, its account only with its block."""
    monkeypatch.setattr(state_learner, "MOMENT", 0.0)
    learner, _ = _learner(truth, 8)
    wanted = StateKeys(frozenset({SCRIBE}), codes_of=frozenset({SCRIBE}))
    found = _find(learner, wanted, _blocks(truth, 4, 7))
    assert found.missing(wanted) == StateKeys(frozenset({SCRIBE}))
    found = _in_time(learner, wanted, [_blocks(truth, 4, 7), _blocks(truth, 4, 8)])
    assert not found.missing(wanted)


def test_a_block_that_never_comes_is_not_waited_for_alone(
    truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_learner, "MOMENT", 0.0)
    monkeypatch.setattr(state_learner, "MOST_CHECKS", 3)
    learner, fetcher = _learner(truth, 8)
    looks = []

    def executed() -> ExecutedBlocks:
        looks.append(fetcher.at)
        fetcher.at = 7 if len(fetcher.places) > 1 else 8
        return _blocks(truth, 4, 7)

    finding = learner.find_in_time(WANTED, executed, Purpose.CLIENT, 60.0)
    assert not asyncio.run(finding).found.missing(WANTED)
    assert len(fetcher.places) > 1


def test_a_code_without_its_account_is_no_reason_to_try_again(truth: Truth) -> None:
    wanted = MissingState()
    wanted.need(MissingKeys(accounts=[SCRIBE]))
    wanted.contracts.add(SCRIBE)
    for at, is_known in ((8, False), (7, True)):
        learner, _ = _learner(truth, at)
        learning = learner.fetch_and_prove(wanted, _blocks(truth, 4, 7), Purpose.FLASHBLOCK, 1.0)
        assert asyncio.run(learning) is is_known


def test_an_epoch_that_the_store_has_begun_is_waited_for(truth: Truth) -> None:
    """Readers notified of a new epoch would otherwise retry immediately, some 16 times."""
    learner, _ = _learner(truth, 5)
    blocks = _blocks(truth, 4, 7)._replace(epoch=EPOCH + 1)

    async def find() -> FetchResult:
        finding = learner.find_in_time(WANTED, lambda: blocks, Purpose.CLIENT, 60.0)
        asking = asyncio.ensure_future(finding)
        await asyncio.sleep(0)
        assert not asking.done()
        learner.begin(FetchedState(EPOCH + 1))
        return (await asking).found

    assert not asyncio.run(find()).missing(WANTED)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 64), st.integers(0, 1 << 16))
def test_a_proof_with_one_bit_turned_is_never_used(truth: Truth, at: int, bit: int) -> None:
    learner, fetcher = _learner(truth, 5)
    fetcher.turned = (at, bit)
    with pytest.raises(NoUpstream):
        _find(learner, StateKeys(frozenset({SENDERS[0]})), _blocks(truth, 4, 7))
    assert learner.learned.unstored == 0


def test_a_proof_that_does_not_hold_is_told_and_not_used(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 5)
    fetcher.turned = (-1, 0)
    with pytest.raises(NoUpstream):
        _find(learner, StateKeys(frozenset(SENDERS[:1])), _blocks(truth, 4, 7))
    assert len(fetcher.lies) == 1
    assert learner.learned.unstored == 0


@pytest.mark.parametrize("proven", [True, False])
def test_who_says_something_else_than_it_proves_is_not_believed(truth: Truth, proven: bool) -> None:
    learner, fetcher = _learner(truth, 5, proven=proven)
    fetcher.another[SCRIBE, 1] = 99
    with pytest.raises(NoUpstream):
        _find(learner, StateKeys(slots={SCRIBE: frozenset({1})}), _blocks(truth, 4, 7))
    assert len(fetcher.lies) == 1


def test_without_proofs_nothing_is_learned_unless_upstreams_are_trusted(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 5)
    fetcher.proves = False
    with pytest.raises(NoUpstream):
        _find(learner, StateKeys(frozenset(SENDERS)), _blocks(truth, 4, 7))
    learner, fetcher = _learner(truth, 5, proven=False)
    fetcher.proves = False
    assert not _find(learner, WANTED, _blocks(truth, 4, 7)).missing(WANTED)


def test_what_was_wanted_and_is_found_is_heard_with_its_contracts(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 5)
    heard: list[StateKeys] = []
    learner.on_used = lambda keys, purpose: heard.append(keys if purpose else StateKeys())
    nobody = b"\x77" * 20  # without code
    asked = replace(WANTED, codes_of=frozenset({SCRIBE, nobody}))
    _find(learner, asked, _blocks(truth, 4, 7))
    assert heard == [WANTED]
    fetching = learner.find(WANTED, _blocks(truth, 4, 7), Purpose.WARM_UP, 1.0, is_used=False)
    asyncio.run(fetching)
    assert heard == [WANTED], "fetching again does not count as use"
    fetcher.proves = False
    _find(learner, WANTED, _blocks(truth, 4, 7))
    assert heard[1:] == [StateKeys(codes_of=frozenset({SCRIBE}))], "nothing else was found"


def test_asked_below_the_head_and_at_the_anchor_last(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 5)
    _find(learner, WANTED, _blocks(truth, 2, 7))
    assert [each.number for each in fetcher.places[0]] == [5, 4, 3, 2]
    assert fetcher.places[0][-1].hash == truth.headers[2].hash
    _find(learner, WANTED, _blocks(truth, 5, 5))
    assert [each.number for each in fetcher.places[1]] == [5]


def test_hashes_of_old_blocks_come_from_child_to_parent(truth: Truth) -> None:
    learner, _ = _learner(truth, 5)
    blocks = _blocks(truth, 5, 7)
    wanted = StateKeys(blocks=frozenset({1, 3}))
    found = asyncio.run(learner.find(wanted, blocks, Purpose.FLASHBLOCK, 1.0))
    assert found.blocks == {number: truth.headers[number].hash for number in (1, 3)}


def test_a_chain_of_headers_that_breaks_names_nothing(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 5)
    blocks = _blocks(truth, 5, 7)
    fetcher.truth.headers[3] = truth.headers[3].replace(gas_used=1)
    with pytest.raises(NoUpstream):
        asyncio.run(learner.find(StateKeys(blocks=frozenset({2})), blocks, Purpose.FLASHBLOCK, 1.0))


def test_another_epoch_is_refused(truth: Truth) -> None:
    learner, _ = _learner(truth, 5)
    blocks = _blocks(truth, 4, 7)._replace(epoch=EPOCH + 1)
    with pytest.raises(NewEpoch):
        _find(learner, WANTED, blocks)


def test_contracts_that_are_new_come_with_their_code() -> None:
    wanted = MissingState()
    wanted.accounts = {SCRIBE, SENDERS[0]}
    wanted.contracts = {SCRIBE}
    assert wanted.keys.codes_of == {SCRIBE}


@pytest.mark.parametrize("proves", [True, False])
def test_what_is_said_of_an_account_that_has_gone_is_not_learned(
    truth: Truth, tmp_path: Path, proves: bool
) -> None:
    """At that block its slots are zeros, which proves nothing about earlier blocks."""
    learner, fetcher = _learner(truth, 6, proven=proves)
    fetcher.proves = proves
    learned, asked = FetchedState(EPOCH), list[tuple[int, bytes]]()

    def same_life(number: int, address: bytes) -> bool:
        asked.append((number, address))
        return address != SCRIBE

    learner.begin(learned, same_life=same_life)
    wanted = StateKeys(frozenset({SENDERS[0]}), {SCRIBE: frozenset({1})})
    _find(learner, wanted, _blocks(truth, 4, 7))
    at = 6 if proves else 7  # the block of the proof, or the latest possible one
    assert {SCRIBE, SENDERS[0]} == {address for number, address in asked if number == at}
    with Store(str(tmp_path / "partial"), write=True) as store:
        batch = store.batch()
        batch.begin_at(4, truth.headers[4].hash, truth.headers[4].state_root, EPOCH)
        store.commit(batch)
        store.set_fallback_state(learned)
        with store.view() as view:
            missing = view.state(4).missing([SCRIBE, SENDERS[0]], {SCRIBE: [1]})
    assert (missing.accounts, missing.slots) == ([SCRIBE], {SCRIBE: [1]})


def _nodes(learner: StateFetcher, header: Header) -> list[bytes]:
    wanted = MissingNodes.at(header, {SCRIBE: [1, 2]})
    return asyncio.run(learner.find_nodes(wanted, EPOCH, Purpose.SEALED, 1.0))


def test_nodes_for_a_root_lead_from_the_root_of_their_block(truth: Truth) -> None:
    learner, fetcher = _learner(truth, 6)
    assert keccak256(_nodes(learner, truth.headers[6])[0]) == truth.headers[6].state_root
    fetcher.forged = [bytes.fromhex("e21fa0") + bytes(32)]  # an extension to any hash
    with pytest.raises(BadProof):
        _nodes(learner, truth.headers[6])
    fetcher.forged = []
    with pytest.raises(BadProof):
        _nodes(learner, truth.headers[5])
    assert len(fetcher.lies) == 2
    fetcher.is_tip_only = True
    assert _nodes(learner, truth.headers[5]), "they are of another block, and used by their hashes"
    assert len(fetcher.lies) == 2
