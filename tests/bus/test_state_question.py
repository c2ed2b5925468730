"""Questions for state, over a real socket and part by part."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.exchange import Exchange, Respond
from foreblock.bus.frames import LONGEST, ToWriter, frame
from foreblock.bus.frames import MOST_BYTES as LONGEST_MESSAGE
from foreblock.bus.link import WriterLink
from foreblock.bus.state_frames import (
    MOST_BYTES,
    PART_BYTES,
    AskState,
    AskUpstream,
    StatePart,
    state_parts,
)
from foreblock.bus.state_question import StateQuestion, failure_of, not_found
from foreblock.errors import BusMessageTooLong, NewEpoch, NoUpstream, UnitsSpent, UntrueState
from support.servers.in_loop import closed, in_loop, listening
from support.servers.waiting import PATIENCE


@given(st.integers(0, 3 * PART_BYTES + 1))
def test_parts_make_up_the_whole(size: int) -> None:
    data = bytes(size)

    @in_loop
    async def scene() -> None:
        question, parts = StateQuestion(), list(state_parts(7, data))
        assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
        for part in parts:
            assert len(frame(part)) < LONGEST
            question.hear(part)
        assert await question.answer == data

    scene()


@pytest.mark.parametrize(
    "why",
    [NoUpstream("down", 3), UnitsSpent(2), NewEpoch(), UntrueState("a node")],
    ids=lambda why: type(why).__name__,
)
def test_reason_crosses_the_bus(why: Exception) -> None:
    heard = failure_of(not_found(1, why))
    assert (type(heard), str(heard)) == (type(why), str(why))


def test_other_failures_are_hidden() -> None:
    heard = failure_of(not_found(1, ValueError("https://secret")))
    assert isinstance(heard, NoUpstream)
    assert "secret" not in str(heard)


def test_endless_answer_is_given_up() -> None:
    @in_loop
    async def scene() -> None:
        question = StateQuestion()
        for _ in range(MOST_BYTES // PART_BYTES + 1):
            question.hear(StatePart(1, bytes(PART_BYTES), is_last=False))
        with pytest.raises(NoUpstream):
            await question.answer

    scene()


def test_questions_are_answered_by_the_network_that_is_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "bus")
    asked: list[ToWriter] = []

    def answer(message: AskState | AskUpstream, respond: Respond) -> None:
        asked.append(message)
        data = message.keys if isinstance(message, AskState) else message.params
        for part in state_parts(message.id, data * PART_BYTES):
            respond(part)

    @in_loop
    async def scene() -> None:
        exchange = Exchange(lambda *_: None, lambda: ())
        exchange.answer_state("main", answer)
        await exchange.listen(listening(path))
        link = WriterLink(path)
        link.start()
        await link.tried()
        found = await asyncio.gather(
            link.ask_state("main", 3, b"ab", PATIENCE),
            link.ask_upstream("main", "eth_getBlockByHash", b"[]", PATIENCE),
        )
        assert list(found) == [b"ab" * PART_BYTES, b"[]" * PART_BYTES]
        with pytest.raises(NoUpstream, match="not followed"):
            await link.ask_state("test", 3, b"ab", PATIENCE)
        exchange.answer_state("main", None)
        with pytest.raises(NoUpstream, match="not followed"):
            await link.ask_state("main", 3, b"ab", PATIENCE)
        exchange.answer_state("main", lambda *_: None)
        with pytest.raises(NoUpstream, match=r"nothing in 0\.01 s"):
            await link.ask_state("main", 3, b"ab", 0.01)
        waiting = asyncio.ensure_future(link.ask_state("main", 3, b"ab", PATIENCE))
        await asyncio.sleep(0)
        exchange.close()
        with pytest.raises(NoUpstream, match="is not there"):
            await waiting
        link.close()
        await closed()

    scene()
    assert isinstance(asked[0], AskState)
    assert (asked[0].network, asked[0].epoch, asked[0].keys) == ("main", 3, b"ab")
    assert isinstance(asked[1], AskUpstream)
    assert (asked[1].method, asked[1].params) == ("eth_getBlockByHash", b"[]")


def test_long_questions_are_answered_and_one_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path, long = str(tmp_path / "bus"), bytes(2 * LONGEST)

    def answer(message: AskState | AskUpstream, respond: Respond) -> None:
        data = message.keys if isinstance(message, AskState) else message.params
        respond(StatePart(message.id, b"%d" % len(data)))

    @in_loop
    async def scene() -> None:
        exchange = Exchange(lambda *_: None, lambda: ())
        exchange.answer_state("main", answer)
        await exchange.listen(listening(path))
        link = WriterLink(path)
        link.start()
        await link.tried()
        with pytest.raises(BusMessageTooLong):
            await link.pass_on("main", "eth_call", bytes(LONGEST_MESSAGE), PATIENCE)
        found = await asyncio.gather(
            link.ask_state("main", 3, long, PATIENCE),
            link.pass_on("main", "eth_call", long, PATIENCE),
            link.ask_state("main", 3, b"ab", PATIENCE),
        )
        assert list(found) == [b"%d" % len(long), b"%d" % len(long), b"2"]
        link.close()
        exchange.close()
        await closed()

    scene()


def test_without_a_writer_there_is_no_state() -> None:
    @in_loop
    async def scene() -> None:
        with pytest.raises(NoUpstream):
            await WriterLink("").ask_state("main", 1, b"", 1.0)

    scene()
