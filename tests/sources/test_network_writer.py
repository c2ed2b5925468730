"""One network in the writer: ticks when due, ordered responses, revocable hints."""

import asyncio

from foreblock.bus.messages import (
    Failed,
    NextNonce,
    PoolNumbers,
    Result,
    ResultPart,
    Started,
    ToWorker,
    WaitingTransaction,
    failed,
)
from foreblock.errors import PoolUnavailable, RejectedTransaction, SequencerUnavailable
from foreblock.sources.call_queues import MOST_QUERIES
from support.chains.network_stage import ALICE, BOB, DEADLINE, Stage, play
from support.chains.sequencing import transfer


def test_what_is_due_is_done_on_the_network_s_own_thread() -> None:
    stage = play(
        lambda stage: setattr(stage.source, "due", 0), lambda stage: stage.source.ticks == 1
    )
    assert len(stage.source.threads) == 1


def test_everybody_hears_the_next_nonce_before_the_sender_has_its_answer() -> None:
    stage = play(lambda stage: stage.submit(7, b"good"), lambda stage: stage.source.ticks > 0)
    assert stage.messages[:3] == [Started((7,)), NextNonce("main", ALICE, 1), Result(7)]


def test_a_refusal_is_told_in_its_own_words_and_a_failure_in_none() -> None:
    def scene(stage: Stage) -> None:
        stage.submit(1, b"bad")
        stage.submit(2, b"broken", BOB)

    stage = play(scene, lambda stage: sum(isinstance(each, Failed) for each in stage.messages) == 2)
    answers = [each for each in stage.messages if isinstance(each, Failed)]
    assert answers == [
        failed(1, RejectedTransaction("nonce too low")),
        failed(2, RejectedTransaction("internal error")),
    ]


def test_hints_that_are_no_longer_so_are_taken_back() -> None:
    def scene(stage: Stage) -> None:
        def drop() -> None:
            stage.source.nonces[ALICE] = 0

        stage.source.on_tick = drop
        stage.submit(1, b"good")

    stage = play(scene, lambda stage: NextNonce("main", ALICE, 0) in stage.messages)
    assert stage.messages[1:] == [
        NextNonce("main", ALICE, 1),
        Result(1),
        NextNonce("main", ALICE, 0),
    ]
    assert list(stage.writer.hints()) == [NextNonce("main", ALICE, 0)]


def test_where_nothing_waits_there_is_nothing_to_hint_at() -> None:
    def scene(stage: Stage) -> None:
        def include() -> None:
            stage.source.waiting = 0

        stage.source.on_tick = include
        stage.submit(1, b"good")

    stage = play(scene, lambda stage: stage.source.ticks > 0 and not list(stage.writer.hints()))
    assert stage.messages[1:] == [NextNonce("main", ALICE, 1), Result(1)]


def test_what_is_past_its_deadline_is_thrown_away() -> None:
    """The source is stuck for longer than a client waits; requests received meanwhile are
    dropped.
    """

    def scene(stage: Stage) -> None:
        def stuck() -> None:
            stage.submit(1, b"good")
            stage.clock.advance(DEADLINE)

        stage.source.on_tick = stuck
        stage.source.due = 0

    stage = play(scene, lambda stage: bool(stage.messages))
    assert stage.messages == [failed(1, SequencerUnavailable())]
    assert stage.source.waiting == 0


def test_the_deadline_counts_when_a_transaction_is_put_before_the_source() -> None:
    """It was accepted in time; its client gets a response, or an error for an unknown outcome."""

    def scene(stage: Stage) -> None:
        stage.source.on_submit = lambda: stage.clock.advance(DEADLINE)
        stage.submit(1, b"good")
        stage.submit(2, b"good", BOB)

    stage = play(scene, lambda stage: stage.source.ticks > 0)
    answers = [each for each in stage.messages if not isinstance(each, NextNonce)]
    assert answers == [Started((1, 2)), Result(1), failed(2, SequencerUnavailable())]
    assert stage.source.nonces == {ALICE: 1}


def test_who_still_waits_at_the_end_is_refused() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.submit(1, b"good")
        await stage.writer.close()
        return stage.messages

    assert asyncio.run(run()) == [failed(1, SequencerUnavailable())]


def test_questions_are_answered_on_the_thread_and_after_transactions() -> None:
    waits = transfer(0, 0)

    def scene(stage: Stage) -> None:
        def add() -> None:
            stage.source.pool.add(waits)

        stage.source.on_submit = add
        stage.ask(1)
        stage.submit(2, b"good")

    stage = play(scene, lambda stage: Result(1, PoolNumbers(1)) in stage.messages)
    part = next(each for each in stage.messages if isinstance(each, ResultPart))
    shown = WaitingTransaction(waits.hash, waits.raw, waits.sender, can_run=True)
    assert part == ResultPart(1, (shown,))
    assert len(stage.source.threads) == 1


def test_question_that_is_late_or_too_large_or_one_too_many_has_no_answer() -> None:
    def scene(stage: Stage) -> None:
        stage.ask(1, stage.clock.monotonic_ns())
        stage.ask(2, DEADLINE, *([b"\0" * 32] * 33))
        for number in range(MOST_QUERIES):
            stage.ask(10 + number)

    stage = play(
        scene, lambda stage: Result(10 + MOST_QUERIES - 2, PoolNumbers()) in stage.messages
    )
    assert [each for each in stage.messages if isinstance(each, Failed)] == [
        failed(2, PoolUnavailable()),
        failed(10 + MOST_QUERIES - 1, PoolUnavailable()),
    ]
    assert Result(1, PoolNumbers()) not in stage.messages


def test_questions_that_wait_when_a_network_ends_are_refused() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.ask(1)
        await stage.writer.close()
        return stage.messages

    assert asyncio.run(run()) == [failed(1, PoolUnavailable())]


# --- Commands --------------------------------------------------------------------------
