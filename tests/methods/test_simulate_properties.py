"""Invariants of every simulation, on both rule sets."""

from hypothesis import given

from foreblock._engine import Overlay
from foreblock.ledger.calls.request import (
    BlockRequest,
    SimulationLimits,
    SimulationRequest,
    timeline,
)
from foreblock.ledger.calls.simulated_chain import SimulatedChain
from foreblock.ledger.calls.simulation import SimulatedBlock, run_block
from support.chains.simulation_chain import BASE_FEE, Chain, priced, simulated
from support.servers.long_work import finish
from support.strategies.simulation_strategy import accounts, blocks, one_by_one


@given(requests=blocks())
def test_a_block_uses_the_gas_of_its_calls(chain: Chain, requests: list[BlockRequest]) -> None:
    for each in simulated(chain, priced(requests)):
        outcomes = each.block.outcomes
        assert each.block.header.gas_used == sum(outcome.gas_used for outcome in outcomes)
        assert all(outcome.gas_used <= outcome.max_gas_used for outcome in outcomes)


def supply(overlay: Overlay, number: int) -> int:
    """Return the change of the total supply since the last call."""
    changes = overlay.take(number).accounts
    return sum(
        (0 if after is None else after.balance) - (0 if before is None else before.balance)
        for _, before, after, _ in changes
    )


@given(requests=blocks())
def test_ether_is_neither_made_nor_lost(chain: Chain, requests: list[BlockRequest]) -> None:
    """Only the base fee of a priced call is burned, and only without a vault that receives it."""
    asked = priced(requests)
    request = SimulationRequest(asked, state_roots=False)
    view = chain.ledger.view()
    try:
        base = view.latest
        simulated_chain = SimulatedChain(
            base, view.state(base), view.unused, request, SimulationLimits()
        )
        accounts().apply_to(simulated_chain.overlay, base.rules.engine_name)
        supply(simulated_chain.overlay, view.unused)  # balances from overrides are not counted
        burns = simulated_chain.profile.optimism is None
        places = timeline(asked, base.number, base.header.timestamp, 12, 256)
        burned = 0
        for place in places:
            found = run_block(simulated_chain, place)
            done = found if isinstance(found, SimulatedBlock) else finish(found)
            assert place.request is not None
            calls = one_by_one(place.request)
            for call, outcome in zip(calls, done.block.outcomes, strict=True):
                if burns and call.call.price(BASE_FEE):
                    burned += BASE_FEE * outcome.gas_used
        assert supply(simulated_chain.overlay, view.unused + 1) == -burned
    finally:
        view.close()


@given(requests=blocks(priced=False))
def test_calls_mean_the_same_in_one_block_or_in_several(
    chain: Chain, requests: list[BlockRequest]
) -> None:
    funded = accounts()
    everything = [call for each in requests for call in one_by_one(each)]
    together = [BlockRequest(everything, funded)]
    apart = [BlockRequest((), funded), *(BlockRequest([call]) for call in everything)]

    def outcomes(found: list[SimulatedBlock]) -> list[tuple[object, ...]]:
        return [
            (
                outcome.status,
                outcome.halt,
                outcome.gas_used,
                outcome.output,
                [log for _, log in outcome.collected or ()],
                transaction.nonce,
            )
            for each in found
            for outcome, transaction in zip(
                each.block.outcomes, each.block.transactions(), strict=True
            )
        ]

    assert outcomes(simulated(chain, together)) == outcomes(simulated(chain, apart))


@given(requests=blocks())
def test_a_simulation_changes_nothing_that_is_stored(
    chain: Chain, requests: list[BlockRequest]
) -> None:
    before = chain.digest()
    first = simulated(chain, priced(requests))
    second = simulated(chain, priced(requests))
    assert chain.digest() == before
    assert [each.block.header.hash for each in first] == [each.block.header.hash for each in second]
