"""Shortcuts of simulations give the same results as the full path."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from foreblock.errors import ForeblockError
from foreblock.ledger.calls.request import (
    AS_IT_IS,
    BlockOverrides,
    BlockRequest,
    Call,
    CallRequest,
    PlainCalls,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.calls.simulated_chain import SimulatedChain
from foreblock.ledger.calls.simulation import SimulatedBlock
from foreblock.ledger.rules.transaction_rules import MAX_INIT_CODE
from foreblock.methods.calls.simulate_methods import BlockShape, render
from foreblock.scheduling.reply import whole
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Dialect
from support.chains.simulation_chain import Chain, priced, simulated, simulated_steps
from support.payloads.params import plain_calls
from support.servers.long_work import finish
from support.strategies.simulation_strategy import CODES, CONTRACTS, PEOPLE, accounts, blocks

T = TypeVar("T")


def noting(steps: Steps[T], handed_out: list[Work | None]) -> Steps[T]:
    """Pass steps through and record their yielded values."""
    found = None
    try:
        while True:
            work = steps.send(found)
            handed_out.append(work)
            found = yield work
    except StopIteration as done:
        result: T = done.value
        return result


# --- Texts written by the engine -------------------------------------------------------


def plain_text(block: SimulatedBlock) -> dict[str, Any]:
    """A block as JSON, written value by value, without failures that only `preconf` reports."""
    sealed = block.block
    header, transactions = sealed.header, sealed.transactions()
    place = {
        "blockNumber": hex(header.number),
        "blockHash": "0x" + header.hash.hex(),
        "blockTimestamp": hex(header.timestamp),
        "removed": False,
    }
    calls = []
    for index, (transaction, outcome) in enumerate(zip(transactions, sealed.outcomes, strict=True)):
        logs = [
            place
            | {
                "address": "0x" + address.hex(),
                "topics": ["0x" + topic.hex() for topic in topics],
                "data": "0x" + data.hex(),
                "logIndex": hex(position),
                "transactionHash": "0x" + transaction.hash.hex(),
                "transactionIndex": hex(index),
            }
            for position, (address, topics, data) in outcome.collected or ()
        ]
        calls.append(
            {
                "status": "0x1" if outcome.status == "success" else "0x0",
                "returnData": "0x" + outcome.output.hex(),
                "gasUsed": hex(outcome.gas_used),
                "maxUsedGas": hex(outcome.max_gas_used),
                "logs": logs,
            }
        )
    members: dict[str, Any] = json.loads(b"{%b}" % header.members(sealed.size))
    members |= {"uncles": [], "calls": calls}
    if header.withdrawals_root is not None:
        members["withdrawals"] = []
    members["transactions"] = ["0x" + each.hash.hex() for each in transactions]
    return members


def shown(found: list[SimulatedBlock], dialect: Dialect) -> Any:  # noqa: ANN401, it is JSON
    shape = BlockShape(dialect, full_transactions=False)
    return json.loads(whole(finish(render(found, shape, UNHURRIED))))


@given(requests=blocks())
def test_blocks_are_written_as_they_are_value_by_value(
    chain: Chain, requests: list[BlockRequest]
) -> None:
    found = simulated(chain, priced(requests))
    written = shown(found, "preconf")
    for block in written:
        for call in block["calls"]:
            assert ("error" in call) == (call["status"] == "0x0")
            call.pop("error", None)
    assert written == [plain_text(block) for block in found]


# --- Calls checked by the engine -------------------------------------------------------

AMOUNTS = st.one_of(st.integers(0, 60), st.sampled_from([10**18 - 1, 10**18, 10**18 + 1, 2**255]))
DATA = st.one_of(
    st.sampled_from([b"", *CODES, bytes(MAX_INIT_CODE), bytes(MAX_INIT_CODE + 1)]),
    st.binary(max_size=200),
)


@st.composite
def unpriced_calls(draw: st.DrawFn) -> CallRequest:
    """Calls that offer nothing for gas, many of them invalid in some way."""
    to = draw(st.sampled_from([*PEOPLE, *CONTRACTS, None]))
    call = Call(to, 0, draw(st.sampled_from([*PEOPLE, b"\x99" * 20])), draw(DATA), draw(AMOUNTS))
    gas = st.one_of(st.none(), st.integers(20_000, 70_000), st.sampled_from([0, 10**6, 10**9]))
    return CallRequest(call, draw(gas))


def at_once(requests: list[CallRequest]) -> PlainCalls:
    """Run the calls in one call of the engine."""
    calls = ((each.call, each.gas) for each in requests)
    return plain_calls(*((call.sender, call.to, call.value, call.data, gas) for call, gas in calls))


def outcome(
    chain: Chain, calls: Sequence[CallRequest] | PlainCalls, *, validation: bool, gas: int
) -> object:
    """The outcome of a block of these calls and one more, or its error."""
    one_more = CallRequest(Call(PEOPLE[1], 0, PEOPLE[0]), 21_000)
    requests = [BlockRequest(calls, accounts()), BlockRequest([one_more])]
    limits = SimulationLimits(gas=gas)
    try:
        found = simulated(chain, requests, validation=validation, limits=limits)
    except ForeblockError as refused:
        return type(refused), str(refused)
    return [(each.block.header.hash, shown([each], "ethereum")) for each in found]


@given(
    calls=st.lists(unpriced_calls(), min_size=1, max_size=5),
    validation=st.booleans(),
    gas=st.sampled_from([50_000_000, 300_000, 100_000, 30_000]),
)
def test_plain_calls_mean_the_same_at_once_and_one_by_one(
    chain: Chain, calls: list[CallRequest], validation: bool, gas: int
) -> None:
    one_by_one = outcome(chain, calls, validation=validation, gas=gas)
    assert outcome(chain, at_once(calls), validation=validation, gas=gas) == one_by_one


def test_plain_calls_go_on_in_slices(chain: Chain) -> None:
    """One call per slice, and one that loops: handed to a thread, with the same result."""

    class Short(Pace):
        timeout_us = 500

        def is_over(self) -> bool:
            return True

        def slice_us(self) -> int:
            return 0

    loops = CONTRACTS[6]
    requests = [CallRequest(Call(to, 0, PEOPLE[0]), 10**7) for to in (*PEOPLE, loops, *PEOPLE)]
    handed_out: list[Work | None] = []
    found = []
    for calls, pace in ((requests, UNHURRIED), (at_once(requests), Short())):
        steps = simulated_steps(chain, [BlockRequest(calls, accounts())], pace)
        found.append(finish(noting(steps, handed_out))[0].block.header.hash)
    assert found[0] == found[1]
    assert None in handed_out
    assert any(handed_out)


# --- The block that is cached with its parent ------------------------------------------


def test_the_first_block_is_the_same_whether_it_is_kept_or_made(chain: Chain) -> None:
    view = chain.ledger.view()
    base = view.latest
    view.close()
    request = [BlockRequest([CallRequest(Call(PEOPLE[1], 0, PEOPLE[0]))], accounts())] * 2
    base.following = None
    made = simulated(chain, request)
    kept = vars(base)["following"]
    assert kept is not None
    again = simulated(chain, request)
    assert vars(base)["following"] is kept
    assert [each.block.header.hash for each in made] == [each.block.header.hash for each in again]


def test_blocks_that_are_judged_or_overridden_are_not_kept(chain: Chain) -> None:
    view = chain.ledger.view()
    base = view.latest
    view.close()
    base.following = None
    (strict,) = simulated(chain, [BlockRequest()], validation=True)
    (other,) = simulated(chain, priced([BlockRequest()]))
    assert base.following is None
    (usual,) = simulated(chain, [BlockRequest()])
    assert usual.block.header.base_fee_per_gas == 0
    assert len({strict.block.header.hash, other.block.header.hash, usual.block.header.hash}) == 3


# --- Blocks that begin like their predecessors ------------------------------------------

SAID = st.sampled_from(
    [
        BlockOverrides(),
        BlockOverrides(mix_hash=b"\7" * 32),
        BlockOverrides(base_fee_per_gas=7, gas_limit=10**8, beneficiary=b"\xbe" * 20),
        BlockOverrides(parent_beacon_block_root=b"\5" * 32, blob_base_fee=3),
    ]
)


@given(said=st.lists(st.none() | SAID, min_size=1, max_size=6), validation=st.booleans())
def test_blocks_are_opened_the_same_whether_like_the_last_or_anew(
    chain: Chain, said: list[BlockOverrides | None], validation: bool
) -> None:
    """A block with an explicit number is treated differently, even if the number is the default."""
    view = chain.ledger.view()
    base = view.latest
    view.close()
    like, anew = [], []
    for number, overrides in enumerate(said, base.number + 1):
        stated = structs.replace(overrides or AS_IT_IS, number=number)
        like.append(BlockRequest(block=AS_IT_IS if overrides is None else stated))
        anew.append(BlockRequest(block=stated))
    found = [
        [each.block.header.hash for each in simulated(chain, requests, validation=validation)]
        for requests in (like, anew)
    ]
    assert found[0] == found[1]


# --- Large roots -----------------------------------------------------------------------


@pytest.mark.parametrize(("slots", "handed_out"), [(3, 1), (THRESHOLDS.rooted_entries + 1, 2)])
def test_the_trie_is_opened_elsewhere_and_so_are_roots_of_many_changes(
    chain: Chain, slots: int, handed_out: int
) -> None:
    view = chain.ledger.view()
    try:
        base, request = view.latest, SimulationRequest([])
        simulated_chain = SimulatedChain(
            base, view.state(base), view.unused, request, SimulationLimits()
        )
        some = dict.fromkeys(range(1, slots + 1), 1)
        simulated_chain.overlay.set(PEOPLE[0], state_diff=some, nonce=1)
        elsewhere: list[Work | None] = []
        assert finish(noting(simulated_chain.state_root(), elsewhere)) != base.header.state_root
        assert len(elsewhere) == handed_out
    finally:
        view.close()
