"""What holds for every simulation, on both rule sets."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from builder import ChainBuilder
from foreblock._engine import Overlay
from foreblock.ledger.block_overrides import BlockOverrides
from foreblock.ledger.import_files import import_files
from foreblock.ledger.overrides import apply
from foreblock.ledger.simulation.block import SimulatedBlock, run_block
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.limits import SimulationLimits
from foreblock.ledger.simulation.open_block import Budget
from foreblock.ledger.simulation.request import BlockRequest, SimulationRequest
from foreblock.ledger.simulation.run import simulate
from foreblock.ledger.simulation.steps import finish
from foreblock.ledger.simulation.timeline import timeline
from foreblock.ledger.view import Ledger
from profiles import JOVIAN
from simulation_strategy import COINBASE, accounts, blocks

BASE_FEE = 20
GENESIS = json.dumps(
    {
        "config": JOVIAN,
        "gasLimit": "0x5f5e100",
        "difficulty": "0x0",
        "extraData": "0x0100000032000000060000000000000000",
        "alloc": {},
    }
).encode()
often = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass(frozen=True)
class Chain:
    ledger: Ledger
    file: Path

    def digest(self) -> bytes:
        """What the store's file holds, down to the byte."""
        return hashlib.sha256(self.file.read_bytes()).digest()


@pytest.fixture(scope="module", params=["ethereum", "optimism"])
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain") / "store"
    if request.param == "ethereum":
        published = request.getfixturevalue("published")
        import_files(
            published.genesis, published.chain, folder, published.fork_choice, lambda _: None
        )
    else:
        builder = ChainBuilder(folder, GENESIS)
        builder.add()
        builder.store.close()
    ledger = Ledger.open(str(folder))
    yield Chain(ledger, folder / "data.mdb")
    ledger.close()


def priced(requests: list[BlockRequest]) -> list[BlockRequest]:
    """The same blocks with a base fee, a coinbase of their own and funded callers first."""
    overrides = BlockOverrides(base_fee_per_gas=BASE_FEE, beneficiary=COINBASE)
    first = structs.replace(requests[0], accounts=accounts())
    return [structs.replace(each, block=overrides) for each in (first, *requests[1:])]


def simulated(chain: Chain, requests: list[BlockRequest]) -> list[SimulatedBlock]:
    view = chain.ledger.view()
    try:
        request = SimulationRequest(requests, trace_transfers=True)
        base = view.latest
        steps = simulate(base, view.state(base), view.unused, request, SimulationLimits())
        return finish(steps)
    finally:
        view.close()


@often
@given(requests=blocks())
def test_a_block_uses_the_gas_of_its_calls(chain: Chain, requests: list[BlockRequest]) -> None:
    for each in simulated(chain, priced(requests)):
        assert each.block.header.gas_used == sum(call.outcome.gas_used for call in each.calls)
        assert all(call.outcome.gas_used <= call.outcome.max_gas_used for call in each.calls)


def supply(overlay: Overlay, number: int) -> int:
    """How much more ether there is than at the last time."""
    changes = overlay.take(number).accounts
    return sum(
        (0 if after is None else after.balance) - (0 if before is None else before.balance)
        for _, before, after, _ in changes
    )


@often
@given(requests=blocks())
def test_ether_is_neither_made_nor_lost(chain: Chain, requests: list[BlockRequest]) -> None:
    """Only the base fee of a priced call is burned, and only where no vault receives it."""
    asked = priced(requests)
    request = SimulationRequest(asked, state_roots=False)
    view = chain.ledger.view()
    try:
        base = view.latest
        branch = Branch(base, view.state(base), view.unused, roots=False)
        apply(asked[0].accounts, branch.overlay, base.rules)
        supply(branch.overlay, view.unused)  # what overrides make is not counted
        burns = branch.profile.optimism is None
        places = timeline(asked, base.number, base.header.timestamp, 12, 256)
        budget = Budget(50_000_000)
        burned = 0
        for place in places:
            done = finish(run_block(branch, place, request, budget))
            assert place.request is not None
            for call, result in zip(place.request.calls, done.calls, strict=True):
                if burns and call.call.price(BASE_FEE):
                    burned += BASE_FEE * result.outcome.gas_used
        assert supply(branch.overlay, view.unused + 1) == -burned
    finally:
        view.close()


@often
@given(requests=blocks(priced=False))
def test_calls_mean_the_same_in_one_block_or_in_several(
    chain: Chain, requests: list[BlockRequest]
) -> None:
    funded = accounts()
    everything = [call for each in requests for call in each.calls]
    together = [BlockRequest(everything, funded)]
    apart = [BlockRequest((), funded), *(BlockRequest([call]) for call in everything)]

    def outcomes(found: list[SimulatedBlock]) -> list[tuple[object, ...]]:
        results = [call for each in found for call in each.calls]
        return [
            (
                result.outcome.status,
                result.outcome.halt,
                result.outcome.gas_used,
                result.outcome.output,
                [log for _, log in result.logs],
                result.transaction.nonce,
            )
            for result in results
        ]

    assert outcomes(simulated(chain, together)) == outcomes(simulated(chain, apart))


@often
@given(requests=blocks())
def test_a_simulation_changes_nothing_that_is_stored(
    chain: Chain, requests: list[BlockRequest]
) -> None:
    before = chain.digest()
    first = simulated(chain, priced(requests))
    second = simulated(chain, priced(requests))
    assert chain.digest() == before
    assert [each.block.hash for each in first] == [each.block.hash for each in second]
