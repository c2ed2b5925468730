"""Commands to one network in the writer: in order, in groups, and the notifications of workers."""

import asyncio
import threading

import pytest

from foreblock.bus.commands import AddBalance, AnyCommand, Mine, SendUnsigned, SetAccount
from foreblock.bus.messages import (
    Committed,
    NextNonce,
    PoolNumbers,
    Result,
    Submit,
    ToWorker,
    failed,
)
from foreblock.errors import RefusedCommand, RejectedTransaction, SequencerUnavailable
from foreblock.sources.network_writer import MOST_CHECKED
from support.chains.network_stage import ALICE, BOB, DEADLINE, Stage, play


def order(stage: Stage, number: int, deadline_ns: int = DEADLINE) -> None:
    stage.call(number, Mine(number), deadline_ns)


def test_commands_are_carried_out_in_order_after_what_was_submitted() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = 7
        stage.submit(1, b"raw")
        order(stage, 2)
        order(stage, 3)

    stage = play(scene, lambda stage: Result(3, 7) in stage.messages)
    assert stage.source.commands == [Mine(2), Mine(3)]
    assert stage.source.run_count == 1
    said = [each for each in stage.messages if isinstance(each, Result | Result)]
    assert said == [Result(1), Result(2, 7), Result(3, 7)]
    assert len(stage.source.threads) == 1


def test_after_a_nonce_has_fallen_workers_forget_and_hear_again_which_come_next() -> None:
    """Also of senders without waiting transactions: workers still remember their nonces."""

    def scene(stage: Stage) -> None:
        def include() -> None:
            stage.source.waiting = 0

        def take_back() -> None:
            stage.source.nonces = {BOB: 2, ALICE: 1}

        stage.notes_changes = True
        stage.source.on_tick, stage.source.on_command = include, take_back
        for number in range(2):
            stage.submit(number, b"raw")
            stage.submit(number, b"raw", BOB)
        order(stage, 7)

    stage = play(scene, lambda stage: Result(7) in stage.messages)
    after = stage.messages[stage.messages.index(Result(0, "forgotten")) + 1 :]
    assert after[:3] == [NextNonce("main", BOB, 2), NextNonce("main", ALICE, 1), Result(7)]


def test_workers_forget_nothing_while_no_nonce_falls() -> None:
    def scene(stage: Stage) -> None:
        def go_on() -> None:
            stage.source.nonces[BOB] = 5

        stage.notes_changes = True
        stage.source.on_command = go_on
        stage.submit(1, b"raw")
        stage.submit(2, b"raw", BOB)
        order(stage, 3)

    stage = play(scene, lambda stage: Result(3) in stage.messages)
    assert Result(0, "forgotten") not in stage.messages
    assert stage.messages[-2:] == [NextNonce("main", BOB, 5), Result(3)]


def test_who_was_told_of_many_senders_forgets_after_every_command() -> None:
    def scene(stage: Stage) -> None:
        stage.notes_changes = True
        for number in range(MOST_CHECKED + 1):
            stage.submit(number, b"raw", bytes([number]) * 20)
        order(stage, 30)
        order(stage, 31)

    stage = play(scene, lambda stage: Result(31) in stage.messages)
    assert stage.messages.count(Result(0, "forgotten")) == 2


def test_workers_forget_nothing_after_a_command_that_only_adds() -> None:
    def scene(stage: Stage) -> None:
        stage.notes_changes = True
        stage.source.nonces[BOB] = 3
        asked = SendUnsigned(BOB, ALICE, bytes(32), b"", 21_000)
        stage.call(1, asked)

    stage = play(scene, lambda stage: Result(1) in stage.messages)
    assert stage.messages[:2] == [NextNonce("main", BOB, 3), Result(1)]


def test_one_that_may_not_replace_another_is_refused() -> None:
    def scene(stage: Stage) -> None:
        for number in (1, 2):
            stage.call(number, Submit(b"raw", ALICE, may_replace=False))

    refused = failed(2, RejectedTransaction("replacement transaction underpriced"))
    stage = play(scene, lambda stage: refused in stage.messages)
    assert Result(1) in stage.messages


def test_command_that_is_refused_or_late_is_answered() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = RefusedCommand("no")
        order(stage, 1, stage.clock.monotonic_ns())
        order(stage, 2)

    stage = play(scene, lambda stage: failed(2, RefusedCommand("no")) in stage.messages)
    assert failed(1, SequencerUnavailable()) in stage.messages
    assert stage.source.commands == [Mine(2)]


def test_command_that_breaks_the_chain_is_answered_and_ends_the_network() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.source.outcome = ZeroDivisionError()
        order(stage, 1)
        order(stage, 2)
        with pytest.raises(ZeroDivisionError):
            await stage.writer.run()
        await stage.writer.close()
        return stage.messages

    assert asyncio.run(run()) == [
        failed(1, RefusedCommand("the command failed, and the chain is restarted")),
        failed(2, SequencerUnavailable()),
    ]


def test_commands_that_set_accounts_are_carried_out_together_and_in_order() -> None:
    commands: list[AnyCommand] = [
        SetAccount(ALICE, nonce=1),
        AddBalance(ALICE, bytes(32)),
        Mine(),
        SetAccount(BOB),
    ]

    def scene(stage: Stage) -> None:
        stage.source.outcome = 7
        for number, command in enumerate(commands):
            stage.call(number, command)

    stage = play(scene, lambda stage: len(stage.messages) == len(commands))
    assert stage.source.together == [2]
    assert stage.messages == [Result(0, None), Result(1, None), Result(2, 7), Result(3, 7)]


def test_what_is_short_is_done_on_the_loop_and_what_is_long_on_the_thread() -> None:
    here = threading.get_ident()
    threads: list[int] = []

    def scene(stage: Stage) -> None:
        def note() -> None:
            threads.append(threading.get_ident())

        stage.source.short, stage.source.on_command, stage.source.on_submit = True, note, note
        stage.submit(0, b"raw")
        order(stage, 1)
        order(stage, 1_000)

    play(scene, lambda stage: Result(1_000) in stage.messages)
    assert [each == here for each in threads] == [True, True, False]


def test_workers_hear_of_commits_before_the_answer() -> None:
    def scene(stage: Stage) -> None:
        def commit() -> None:
            stage.source.last_commit += 1

        stage.source.on_command = commit
        order(stage, 1)
        order(stage, 2)
        stage.ask(3)

    stage = play(scene, lambda stage: Result(3, PoolNumbers()) in stage.messages)
    said = [each for each in stage.messages if each != Result(3, PoolNumbers())]
    assert said == [Committed("main", 2), Result(1), Committed("main", 3), Result(2)]
