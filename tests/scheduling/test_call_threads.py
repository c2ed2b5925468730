"""Threads beside the loop: shared fairly, and released when the client disconnects."""

import asyncio
import json
from typing import Any

from foreblock.errors import PoolFull
from foreblock.ledger.calls.call import Outcome, prepare
from foreblock.ledger.calls.request import Call
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.call_threads import CallRunner
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.scheduler import Scheduler
from foreblock.service.network_views import Service, make_scheduler
from support.payloads.bytecode import LOOP
from support.servers.asking import ANYBODY, asker, request, settings_with
from support.servers.long_work import threads

TO = "0x00000000000000000000000000000000000c0de0"
ENDLESS = request("eth_call", {"to": TO}, "latest", {TO: {"code": LOOP}})
SIMULATED = request(
    "eth_simulateV1",
    {"blockStateCalls": [{"stateOverrides": {TO: {"code": LOOP}}, "calls": [{"to": TO}]}]},
    "latest",
)
# Longer than an inline call may take, so that it needs a thread as well.
MODERATE = request("eth_call", {"to": TO, "gas": hex(3_000_000)}, "latest", {TO: {"code": LOOP}})


def service(
    ledger: Ledger, begun: int, running: int = 1, waiting: int = 8
) -> tuple[Service, Scheduler]:
    options = settings_with(
        call_timeout=3_600.0,
        call_gas_cap=0,
        pool_threads=running,
        pool_begun=begun,
        pool_queue=waiting,
    )
    scheduler = make_scheduler(options)
    return Service(ledger, options, scheduler), scheduler


async def begun(answering: Service, body: bytes, client: Client = ANYBODY) -> asyncio.Task[Any]:
    """A request that is not answered immediately."""
    reply = answering.answer(body, client)
    assert not isinstance(reply, Reply)

    async def wait() -> Any:  # noqa: ANN401, it is JSON
        return json.loads((await reply).body)

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    return task


def test_what_a_client_leaves_behind_is_stopped(long_ledger: Ledger) -> None:
    """One thread, occupied by endless calls and simulations: without cancellation it would never be
    free.
    """
    answering, scheduler = service(long_ledger, begun=1)

    async def leave() -> list[Any]:
        answers = []
        for body in (ENDLESS, SIMULATED) * 3:
            left = await begun(answering, body)
            left.cancel()
            answers.append(await (await begun(answering, MODERATE)))
        return answers

    answers = asyncio.run(leave())
    assert [answer["error"]["message"] for answer in answers] == ["out of gas"] * 6
    scheduler.close()


def test_short_calls_do_not_wait_for_the_end_of_long_ones(long_ledger: Ledger) -> None:
    answering, scheduler = service(long_ledger, begun=8)

    async def beside() -> Any:  # noqa: ANN401, it is JSON
        endless = [await begun(answering, ENDLESS) for _ in range(3)]
        endless.append(await begun(answering, SIMULATED))
        answer = await (await begun(answering, MODERATE))
        for each in endless:
            each.cancel()
        return answer

    assert asyncio.run(beside())["error"]["message"] == "out of gas"
    scheduler.close()


def test_an_address_that_has_all_places_gives_way_to_another(long_ledger: Ledger) -> None:
    answering, scheduler = service(long_ledger, begun=1, waiting=2)
    crowd = [Client("192.0.2.1", number) for number in range(3)]

    async def ask() -> list[Any]:
        tasks = [await begun(answering, ENDLESS, client) for client in crowd]
        other = await begun(answering, MODERATE, Client("192.0.2.2", 9))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        refused = [task.result()["error"]["code"] for task in done]
        for task in tasks:
            task.cancel()
        return [*refused, (await other)["error"]["message"]]

    assert asyncio.run(ask()) == [-32005, "out of gas"]
    scheduler.close()


def test_closing_stops_what_runs_for_ever(long_ledger: Ledger) -> None:
    answering, scheduler = service(long_ledger, begun=2, running=2)

    async def close() -> list[asyncio.Task[Any]]:
        tasks = [await begun(answering, body) for body in (ENDLESS, SIMULATED)]
        scheduler.close()
        await asyncio.wait(tasks)
        return tasks

    assert all(task.cancelled() for task in asyncio.run(close()))


def test_work_gets_what_is_left_of_its_time_and_its_failure_comes_back() -> None:
    def working(*, timeout_us: int | None = None, step_us: int | None = None) -> int:
        assert step_us is None
        assert timeout_us is not None
        return timeout_us

    def failing(*, timeout_us: int | None = None, step_us: int | None = None) -> int:
        raise PoolFull(timeout_us is None or step_us is None)

    async def both() -> tuple[int, list[object]]:
        shared = threads()
        left = await shared.work(working, None, 10**9)
        failed = await asyncio.gather(shared.work(failing, None, 1), return_exceptions=True)
        shared.close()
        return left, list(failed)

    left, failed = asyncio.run(both())
    assert 0 < left <= 10**9
    assert isinstance(failed[0], PoolFull)


class Stalling:
    """A clock that stands still, except for one second on request."""

    def __init__(self) -> None:
        self.stalls = False
        self.now = 0.0

    def __call__(self) -> float:
        self.now += self.stalls
        return self.now


def test_a_call_that_took_long_in_place_twice_goes_to_a_thread_next_time(
    long_ledger: Ledger,
) -> None:
    """Regardless of its parts, and although it was not stopped."""
    shared, clock = threads(), Stalling()
    runner = CallRunner(shared, 5_000, clock)
    view = long_ledger.view()
    call = Call(to=bytes(20), gas=100_000)
    run = prepare(call, view.state(view.latest), view.latest.context, None)

    async def three_times() -> None:
        assert isinstance(runner.run(run), Outcome)
        assert not runner.is_slow(run)
        clock.stalls = True
        assert isinstance(runner.run(run), Outcome)
        assert not runner.is_slow(run)
        assert isinstance(runner.run(run), Outcome)
        clock.stalls = False
        assert runner.is_slow(run)
        outcome = runner.run(run)
        assert not isinstance(outcome, Outcome)
        assert (await outcome).status == "success"

    asyncio.run(three_times())
    view.close()
    shared.close()


def test_calls_of_another_network_are_another_kind(long_ledger: Ledger) -> None:
    """One scheduler serves all networks of a worker; a contract is identified by its chain too."""
    view = long_ledger.view()
    context = view.latest.context
    call = Call(to=bytes(20), gas=100_000, data=b"\1\2\3\4\5")
    run = prepare(call, view.state(view.latest), context, None)
    view.close()
    assert run.kind == (context.profile.chain_id, bytes(20), b"\1\2\3\4", False)


def test_what_the_engine_refuses_is_told_alike_here_and_from_a_thread(long_ledger: Ledger) -> None:
    """Authorizations in a block before Prague, which only the engine can reject."""
    signed = {
        "chainId": "0x0", "address": TO, "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x1",
    }  # fmt: skip
    told = []
    for count in (1, 3):  # recovering three takes too long for an inline run
        call = {"to": TO, "authorizationList": [signed] * count, "gas": hex(1_000_000)}
        with asker(long_ledger) as client:
            told.append(client.ask("eth_call", call, "0x1"))
    assert told[0]["code"] == -32000
    assert told[0] == told[1]
