"""The choice of thread for calls: short ones inline, long ones on the pool."""

import json
import time
from typing import cast

import pytest

from foreblock.errors import DeadlineExceeded, TimedOut
from foreblock.ledger.calls.call import Outcome, Run
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.call_threads import CallRunner, CallThreads
from foreblock.scheduling.thresholds import THRESHOLDS
from support.payloads.bytecode import LOOP, code, returning
from support.servers.asking import Asker, asker, error, request
from support.servers.long_work import thresholds
from support.servers.two_ways import UNHURRIED_US

TO = "0x00000000000000000000000000000000000c0de0"
FOREVER = {TO: {"code": LOOP}}
MODEXP = "0x" + "00" * 19 + "05"


def endless(data: str = "0x") -> bytes:
    return request("eth_call", {"to": TO, "data": data}, "latest", FOREVER)


def test_long_call_is_answered_from_the_pool(long_ledger: Ledger) -> None:
    """It runs out of gas long after 200 µs: a stopped run is never used as a response."""
    with asker(long_ledger) as client:
        given = {"to": TO, "gas": hex(3_000_000)}
        begun = time.monotonic()
        assert client.ask("eth_call", given, "latest", FOREVER) == error(-32000, "out of gas")
        assert time.monotonic() - begun > THRESHOLDS.call_us / 1e6


def test_call_that_takes_too_long_is_stopped(long_ledger: Ledger) -> None:
    with asker(long_ledger, call_timeout=0.02, call_gas_cap=0) as client:
        expected = error(-32000, "execution aborted (timeout = 20ms)")
        assert client.ask("eth_call", {"to": TO}, "latest", FOREVER) == expected


def test_recursion_is_stopped_too(long_ledger: Ledger) -> None:
    """Calls without a jump: each frame checks the clock."""
    again = code(0, 0, 0, 0, 0, "ADDRESS", "GAS", "CALL")
    with asker(long_ledger, call_timeout=0.02, call_gas_cap=0) as client:
        overrides = {TO: {"code": again + again[2:] * 3}}
        expected = error(-32000, "execution aborted (timeout = 20ms)")
        assert client.ask("eth_call", {"to": TO}, "latest", overrides) == expected


def test_large_precompile_is_not_begun_in_place(long_ledger: Ledger) -> None:
    """A precompile cannot be interrupted. 1024 bytes with a full exponent need millions of gas."""
    size = f"{1024:064x}"
    data = "0x" + size * 3 + "ff" * 3072
    with asker(long_ledger) as client:
        answer = client.ask("eth_call", {"to": MODEXP, "data": data}, "latest")
        assert answer == error(-32000, "out of gas")


def test_full_queue_is_said_at_once_and_short_calls_go_on(long_ledger: Ledger) -> None:
    with (
        thresholds(call_us=UNHURRIED_US),
        asker(long_ledger, pool_begun=1, pool_queue=2, call_timeout=0.3, call_gas_cap=0) as client,
    ):
        cheap = request("eth_getBalance", TO, "latest")
        given = {"to": TO, "data": "0x12345678"}
        short = request("eth_call", given, "latest", {TO: {"code": returning(7)}})
        replies = client.replies([endless() for _ in range(6)] + [cheap, short])
        answers = [json.loads(reply.body) for reply in replies]
    busy = error(-32005, "too many long calls are waiting, try again later")
    late = error(-32000, "execution aborted (timeout = 300ms)")
    errors = [answer.get("error") for answer in answers]
    assert errors[:6].count(busy) >= 3
    assert errors[:6].count(late) == 6 - errors[:6].count(busy)
    assert errors[6] is None
    assert int(answers[7]["result"], 16) == 7


def test_known_heavy_call_is_not_tried_in_place(
    long_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asker(long_ledger) as client:
        given = request("eth_call", {"to": TO, "gas": hex(3_000_000)}, "latest", FOREVER)
        client.reply(given)
        # Another inline run would now end with this outcome.
        monkeypatch.setattr(Run, "here", None)
        with thresholds(call_us=10**9):
            assert json.loads(client.reply(given).body)["error"] == error(-32000, "out of gas")


def test_checks_speak_for_heavy_calls_too(long_ledger: Ledger) -> None:
    with asker(long_ledger) as client:
        client.ask("eth_call", {"to": TO, "gas": hex(3_000_000)}, "latest", FOREVER)
        answer = client.ask("eth_call", {"to": TO, "gas": "0x0"}, "latest", FOREVER)
        why = "err: intrinsic gas too low: have 0, want 21000 (supplied gas 0)"
        assert answer == error(-32000, why)


def test_long_calls_of_a_batch_come_in_order(long_ledger: Ledger) -> None:
    with asker(long_ledger) as client:
        long = json.loads(request("eth_call", {"to": TO, "gas": hex(2_000_000)}, "latest", FOREVER))
        short = json.loads(request("eth_blockNumber"))
        body = json.dumps([long | {"id": 1}, short | {"id": 2}, long | {"id": 3}]).encode()
        answers = json.loads(client.reply(body).body)
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert [answer.get("error", {}).get("message") for answer in answers] == [
        "out of gas", None, "out of gas",
    ]  # fmt: skip


def test_service_goes_on_after_long_calls(preconf: Asker) -> None:
    preconf.ask("eth_call", {"to": TO, "gas": hex(3_000_000)}, "latest", FOREVER)
    assert preconf.ask("eth_call", {"to": TO}, "latest", {TO: {"code": returning(7)}}) == (
        f"0x{7:064x}"
    )


class Halting:
    """A run that is interrupted by the system: this many tries are stopped, then it ends after
    these times.
    """

    kind = "halting"

    def __init__(self, stopped: int = 0, seconds: float = 0.0) -> None:
        self.stopped, self.seconds, self.now = stopped, seconds, 0.0
        self.tries = 0

    def here(self, _timeout_us: int, _step_us: int) -> Outcome:
        self.tries += 1
        if self.tries <= self.stopped:
            raise DeadlineExceeded
        self.now += self.seconds
        return cast(Outcome, "ended")


def placed(run: Halting) -> CallRunner:
    return CallRunner(cast(CallThreads, None), 5000, lambda: run.now)


def test_call_that_was_halted_once_is_short_all_the_same() -> None:
    run = Halting(stopped=1)
    where = placed(run)
    assert cast(str, where.run(cast(Run, run))) == "ended"
    assert run.tries == 2
    assert not where.is_slow(cast(Run, run))


def test_call_that_ended_late_once_is_short_all_the_same() -> None:
    run = Halting(seconds=THRESHOLDS.late_call_seconds)
    where = placed(run)
    for seconds in (THRESHOLDS.late_call_seconds, 0.0) * 3:
        run.seconds = seconds
        where.run(cast(Run, run))
        assert not where.is_slow(cast(Run, run))


def test_call_that_ends_late_every_time_is_slow() -> None:
    run = Halting(seconds=THRESHOLDS.late_call_seconds)
    where = placed(run)
    where.run(cast(Run, run))
    where.run(cast(Run, run))
    assert where.is_slow(cast(Run, run))


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(5000, "5s"), (1500, "1.5s"), (60_000, "60s"), (20, "20ms")]
)
def test_timeouts_are_written_as_other_nodes_do(milliseconds: int, text: str) -> None:
    assert str(TimedOut(milliseconds)) == f"execution aborted (timeout = {text})"
