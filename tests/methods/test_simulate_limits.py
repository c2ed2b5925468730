"""Excessive simulations are rejected or stopped, and other requests are served meanwhile."""

import asyncio
import json
import time
from itertools import count
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, make_scheduler
from support.payloads.bytecode import LOOP, returning
from support.servers.asking import (
    A0,
    A1,
    A2,
    ANYBODY,
    Asker,
    asker,
    block,
    body_of,
    error,
    funded,
    request,
    settings_with,
    simulate,
    word,
)

BEACON_ROOTS = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02"


def too_many(what: str) -> dict[str, object]:
    return error(-38026, what)


def test_nothing_is_not_simulated(preconf: Asker) -> None:
    assert simulate(preconf) == error(-32602, "empty input")
    assert preconf.ask("eth_simulateV1", {}, "latest") == error(-32602, "empty input")


def test_too_many_blocks_are_refused_before_anything_is_read(preconf: Asker) -> None:
    nonsense = block({"to": "nowhere"})
    assert simulate(preconf, *[nonsense] * 257) == too_many("too many blocks")
    assert len(simulate(preconf, *[{}] * 256)) == 256


def test_too_many_calls_are_refused_before_any_is_read(preconf: Asker) -> None:
    nonsense = {"to": "nowhere"}
    found = simulate(preconf, block(*[nonsense] * 5001))
    assert found == too_many("too many calls in block: 5001 > 5000")
    found = simulate(preconf, *[block(*[nonsense] * 4000)] * 3)
    assert found == too_many("too many calls: 12000 > 10000")


def test_256_blocks_of_5000_calls_are_refused_at_once(preconf: Asker) -> None:
    body = request("eth_simulateV1", {"blockStateCalls": [block(*[{}] * 5000)] * 256}, "latest")
    started = time.thread_time()
    assert json.loads(preconf.reply(body).body)["error"]["code"] == -38026
    assert time.thread_time() - started < 5


def test_blocks_after_the_first_call_too_many_are_not_looked_at(preconf: Asker) -> None:
    found = simulate(preconf, *[block(*[{}] * 4000)] * 3, {"calls": "none at all"})
    assert found == too_many("too many calls: 12000 > 10000")
    found = simulate(preconf, block({}), {"calls": "none at all"})
    place = "$.blockStateCalls[1].calls"
    assert found == error(-32602, f"invalid argument 0: {place}: expected an array, found a string")


@pytest.mark.parametrize("number", ["0x137", "0xffff", "0xffffffffffffffff"])
def test_numbers_far_ahead_are_refused(preconf: Asker, number: str) -> None:
    assert simulate(preconf, block(number=number)) == too_many("too many blocks")


def test_the_last_number_within_reach_is_filled_up_to(ethereum: Asker) -> None:
    assert len(simulate(ethereum, block(number=hex(54 + 256)))) == 256


def test_time_ends_where_headers_do(preconf: Asker) -> None:
    last = hex(2**64 - 1)
    assert simulate(preconf, block(time=last))[0]["timestamp"] == last
    found = simulate(preconf, block(time=last), block())
    assert found == error(-38021, f"block timestamps end at {2**64 - 1}")
    found = simulate(preconf, block(time=last), block(time="0x1"))
    assert found == error(-38021, f"block timestamps must be in order: 1 <= {2**64 - 1}")


def test_limits_are_an_operators(long_ledger: Ledger) -> None:
    options = {"simulate_blocks": 2, "simulate_block_calls": 3, "simulate_calls": 4}
    with asker(long_ledger, "preconf", **options) as client:
        assert simulate(client, *[{}] * 3) == too_many("too many blocks")
        assert simulate(client, block(*[{}] * 4))["code"] == -38026
        assert simulate(client, block(*[{}] * 3), block(*[{}] * 2))["code"] == -38026
        assert len(simulate(client, block(*[{}] * 3), block({}))) == 2


def test_all_calls_share_the_gas_of_one_request(preconf: Asker) -> None:
    loops = {A1: {"code": LOOP}}
    first, second = simulate(
        preconf, block({"to": A1, "gas": "0x1c9c380"}, accounts=loops), block({"to": A1})
    )
    assert first["gasUsed"] == "0x1c9c380"
    assert second["gasUsed"] == hex(50_000_000 - 30_000_000)
    (call,) = second["calls"]
    assert call["error"] == ("out of gas (gas limit was capped by the RPC server's global gas cap)")
    found = simulate(preconf, block({"to": A1}, {"to": A2}, accounts=loops))
    assert found == error(-38013, "err: intrinsic gas too low: have 0, want 21000 (supplied gas 0)")


def test_calls_may_not_return_too_much(long_ledger: Ledger) -> None:
    """In one block or in several, at once or one by one, successful or not."""
    refused = too_many("the calls of the simulation return too many bytes")
    accounts = {A1: {"code": "0x6103e85ff3"}, A2: {"code": "0x6103e85ffd"}}  # 1,000 bytes each
    with asker(long_ledger, "ethereum", simulate_output=5_000) as client:
        for to in (A1, A2):
            five = [{"to": to, "gas": "0xffff"}] * 5
            assert len(simulate(client, block(*five, accounts=accounts))[0]["calls"]) == 5
            assert simulate(client, block(*five, *five[:1], accounts=accounts)) == refused
            assert simulate(client, block(*five, accounts=accounts), block(five[0])) == refused
            one_by_one = [call | {"maxFeePerGas": "0x0"} for call in [*five, *five[:1]]]
            assert simulate(client, block(*one_by_one, accounts=accounts)) == refused


def test_gas_of_a_block_is_shared_by_its_calls(preconf: Asker) -> None:
    call = {"to": A1, "gas": "0x5208"}
    assert len(simulate(preconf, block(call, call, gasLimit=hex(42_000)))[0]["calls"]) == 2
    found = simulate(preconf, block(call, call, gasLimit=hex(41_999)))
    assert found == error(-38015, "block gas limit reached: remaining: 20999, required: 21000")


def test_a_loop_is_stopped_at_the_deadline(long_ledger: Ledger) -> None:
    """The contract at the start of every block loops until it runs out of gas, 256 times."""
    options = {"call_timeout": 0.5, "call_gas_cap": 0}
    with asker(long_ledger, "preconf", **options) as client:
        loops = block(accounts={BEACON_ROOTS: {"code": LOOP}})
        last = block(number=hex(54 + 256))
        assert simulate(client, loops, last) == error(-32000, "execution aborted (timeout = 500ms)")
        endless = block({"to": A1}, accounts={A1: {"code": LOOP}}, gasLimit=hex(2**40))
        assert simulate(client, endless) == error(-32000, "execution aborted (timeout = 500ms)")
        assert simulate(client, block({"to": A1}))[0]["calls"][0]["status"] == "0x1"


def test_deadline_covers_blocks_without_calls(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum", call_timeout=0.003) as client:
        found = simulate(client, block(number=hex(54 + 256)))
    assert found == error(-32000, "execution aborted (timeout = 3ms)")


def test_cyclic_moves_of_precompiles_are_refused(preconf: Asker) -> None:
    one, two = "0x" + "00" * 19 + "01", "0x" + "00" * 19 + "02"
    cycle = {
        one: {"movePrecompileToAddress": two},
        two: {"movePrecompileToAddress": one},
    }
    found = simulate(preconf, block({}, accounts=cycle))
    assert found == error(
        -32000, "account 0x0000000000000000000000000000000000000002 is already overridden"
    )
    itself = simulate(preconf, block({}, accounts={one: {"movePrecompileToAddress": one}}))
    assert itself["message"].endswith("is already overridden")


def test_many_overridden_slots_are_simulated(preconf: Asker, ethereum: Asker) -> None:
    slots = {word(slot): word(slot + 1) for slot in range(20_000)}
    accounts = {A1: {"stateDiff": slots, "code": returning(19_999, "SLOAD")}}
    for client in (preconf, ethereum):
        (found,) = simulate(client, block({"to": A1}, accounts=accounts))
        assert found["calls"][0]["returnData"] == word(20_000)


def test_others_are_served_while_a_simulation_runs(long_ledger: Ledger) -> None:
    """A balance requested after a long simulation is returned before it."""
    long = request(
        "eth_simulateV1",
        {"blockStateCalls": [block({"to": A1}, accounts={A1: {"code": LOOP}})]},
        "latest",
    )
    many = request(
        "eth_simulateV1",
        {"blockStateCalls": [block(*[{"to": A2}] * 2000, accounts=funded(A0))]},
        "latest",
    )
    short = request("eth_getBalance", A0, "latest")
    options = settings_with()
    scheduler = make_scheduler(options)
    service = Service(long_ledger, options, scheduler)
    order = count()
    ended: dict[bytes, int] = {}

    async def ask(body: bytes) -> Any:  # noqa: ANN401, it is JSON
        reply = service.answer(body, ANYBODY)
        reply = await reply if asyncio.iscoroutine(reply) else reply
        ended[body] = next(order)
        assert isinstance(reply, Reply)
        return json.loads(body_of(reply))

    async def all_at_once() -> list[Any]:
        return list(await asyncio.gather(ask(long), ask(many), ask(short)))

    answers = asyncio.run(all_at_once())
    scheduler.close()
    assert answers[0]["result"][0]["calls"][0]["error"].startswith("out of gas")
    assert len(answers[1]["result"][0]["calls"]) == 2000
    assert ended[short] == 0
