"""The writer of a network in the process that serves it: short changes without waiting."""

import asyncio
from collections.abc import Callable

import pytest

from foreblock.bus.commands import WOULD_BLOCK, Mine, TakeSnapshot
from foreblock.bus.messages import Committed, NextNonce, Result
from foreblock.errors import RefusedCommand, RejectedTransaction
from support.chains.network_stage import ALICE, Stage
from support.chains.sequencing import transfer
from support.servers.waiting import poll_until


def at_rest(
    scene: Callable[[Stage], None],
    *,
    stops: bool = True,
    until: Callable[[Stage], bool] = lambda _: True,
) -> Stage:
    """Run a scene when the writer is idle, and nothing needs to be woken."""

    async def run() -> Stage:
        stage = Stage()
        stage.source.short = True
        stage.writer.serve_here(lambda: stage.messages.append(Result(0, "forgotten")))
        running = asyncio.create_task(stage.writer.run())
        await poll_until(lambda: stage.writer.is_at_rest)
        scene(stage)
        await poll_until(lambda: until(stage))
        if stops:
            stage.writer.stop()
        try:
            await running
        finally:
            await stage.writer.close()
        return stage

    return asyncio.run(run())


def test_a_transaction_is_taken_at_once_where_nothing_else_is_done() -> None:
    sent = transfer(0, 0)

    def scene(stage: Stage) -> None:
        assert stage.writer.try_submit(sent, may_replace=True)
        assert stage.source.run_count == 1
        assert stage.messages == [NextNonce("main", sent.sender, 1)]
        with pytest.raises(RejectedTransaction, match="replacement"):
            stage.writer.try_submit(sent, may_replace=False)
        stage.submit(1, b"raw")
        assert not stage.writer.try_submit(sent, may_replace=True), "one before it is not done"

    at_rest(scene)


def test_a_transaction_that_takes_long_is_not_taken_at_once() -> None:
    def scene(stage: Stage) -> None:
        stage.source.short = False
        assert not stage.writer.try_submit(transfer(0, 0), may_replace=True)
        assert stage.writer.try_execute(Mine()) is WOULD_BLOCK
        stage.source.short = True
        assert stage.writer.try_execute(Mine(1_000)) is WOULD_BLOCK

    assert not at_rest(scene).source.nonces


def test_a_command_is_carried_out_at_once_where_nothing_else_is_done() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome, stage.source.nonces = 7, {ALICE: 2}
        stage.source.on_command = lambda: setattr(stage.source, "last_commit", 2)
        assert stage.writer.try_execute(Mine()) == 7
        assert stage.messages == [Committed("main", 2), NextNonce("main", ALICE, 2)]
        stage.source.nonces = {ALICE: 1}
        assert stage.writer.try_execute(Mine()) == 7
        assert stage.messages[2:] == [Result(0, "forgotten"), NextNonce("main", ALICE, 1)]
        stage.source.outcome = RefusedCommand("no")
        with pytest.raises(RefusedCommand, match="no"):
            stage.writer.try_execute(Mine())
        assert stage.writer.is_at_rest

    at_rest(scene)


def test_a_command_that_is_not_committed_is_committed_before_reads_and_other_work() -> None:
    def scene(stage: Stage) -> None:
        held: list[bool] = []
        stage.writer.hold_reads(held.append)
        stage.source.is_lazy = True
        for _ in range(2):
            stage.writer.try_execute(TakeSnapshot())
        assert (held, stage.source.flushed, stage.messages) == ([True], 0, [])
        stage.writer.flush()
        stage.writer.flush()
        assert (held, stage.source.flushed) == ([True, False], 1)
        assert stage.messages == [Committed("main", 2)]
        stage.writer.try_execute(TakeSnapshot())
        stage.source.on_tick = lambda: held.append(stage.source.has_uncommitted)
        stage.submit(1, b"raw")

    stage = at_rest(scene, until=lambda stage: stage.source.ticks > 0)
    assert stage.source.flushed == 2, "before the thread has worked"


def test_a_flush_that_fails_ends_the_network() -> None:
    def scene(stage: Stage) -> None:
        stage.source.is_lazy = True
        stage.writer.try_execute(TakeSnapshot())
        stage.source.flush = fail  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            stage.writer.flush()
        assert not stage.writer.is_at_rest

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        at_rest(scene, stops=False)


def test_what_is_done_at_once_and_breaks_the_chain_ends_the_network() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = ZeroDivisionError()
        with pytest.raises(RefusedCommand, match="restarted"):
            stage.writer.try_execute(Mine())
        assert not stage.writer.is_at_rest
        assert not stage.writer.try_submit(transfer(0, 0), may_replace=True)

    with pytest.raises(ZeroDivisionError):
        at_rest(scene, stops=False)


def test_what_is_due_sooner_after_something_done_at_once_is_done_in_time() -> None:
    async def run() -> int:
        stage = Stage()
        stage.source.short = True
        running = asyncio.create_task(stage.writer.run())
        await poll_until(lambda: stage.writer.is_at_rest)
        stage.writer.try_submit(transfer(0, 0), may_replace=True)  # which makes a tick due
        await poll_until(lambda: stage.source.ticks > 0)
        stage.writer.stop()
        await running
        await stage.writer.close()
        return stage.source.ticks

    assert asyncio.run(run()) == 1
