"""Transactions from a replica to the writer of its epoch, and hints back."""

import asyncio

import pytest

from foreblock.errors import OutcomeUnknown, SequencerBusy, SequencerUnavailable
from foreblock.log import node_messages
from foreblock.log.node_messages import publish_hint, receiving_hints, receiving_submissions, submit
from foreblock.log.submission import ForwardedAnswer, ForwardedTransaction, NonceHint, decode_answer
from support.servers.log_nodes import node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE

ALICE = b"a" * 20


def test_a_transaction_is_answered_with_the_next_nonce(server: NatsServer) -> None:
    async def examine(transaction: ForwardedTransaction) -> ForwardedAnswer:
        why = None if transaction.raw == b"good" else "nonce too low"
        return ForwardedAnswer(len(transaction.raw), why)

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            async with receiving_submissions(writer.connection, 3, examine):
                await writer.connection.state()
                good = await submit(replica.connection, 3, ForwardedTransaction(ALICE, b"good"))
                bad = await submit(replica.connection, 3, ForwardedTransaction(ALICE, b"bad"))
                assert good == ForwardedAnswer(4)
                assert bad == ForwardedAnswer(3, "nonce too low")
                # the writer of another epoch is not there
                with pytest.raises(SequencerUnavailable):
                    await submit(replica.connection, 2, ForwardedTransaction(ALICE, b"good"))
                subject = replica.connection.subjects.submit(3)
                answer = decode_answer(await replica.connection.request(subject, b"\1"))
                assert answer.rejected is not None
                assert "at least 21" in answer.rejected
            await writer.connection.state()
            with pytest.raises(SequencerUnavailable):
                await submit(replica.connection, 3, ForwardedTransaction(ALICE, b"good"))

    asyncio.run(run())


def test_many_are_examined_at_once_and_one_too_many_is_refused(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = asyncio.Event()
    begun = 0
    all_begun = asyncio.Event()

    async def examine(transaction: ForwardedTransaction) -> ForwardedAnswer:
        nonlocal begun
        begun += 1
        if begun == 5:
            all_begun.set()
        await free.wait()
        return ForwardedAnswer(transaction.raw[0])

    async def run() -> None:
        monkeypatch.setattr(node_messages, "MOST_WAITING", 5)
        async with (
            node(server.url) as writer,
            node(server.url) as replica,
            receiving_submissions(writer.connection, 1, examine),
        ):
            await writer.connection.state()
            asked = [
                asyncio.create_task(
                    submit(replica.connection, 1, ForwardedTransaction(ALICE, bytes([n])), PATIENCE)
                )
                for n in range(5)
            ]
            async with asyncio.timeout(PATIENCE):
                await all_begun.wait()
            sixth = await submit(replica.connection, 1, ForwardedTransaction(ALICE, b"6"))
            assert sixth.rejected == str(SequencerBusy())
            free.set()
            assert [(await each).next_nonce for each in asked] == [0, 1, 2, 3, 4]

    asyncio.run(run())


def test_without_an_answer_the_outcome_is_unknown(server: NatsServer) -> None:
    async def examine(_: ForwardedTransaction) -> ForwardedAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> None:
        async with (
            node(server.url) as writer,
            node(server.url) as replica,
            receiving_submissions(writer.connection, 1, examine),
        ):
            await writer.connection.state()
            with pytest.raises(OutcomeUnknown):
                await submit(replica.connection, 1, ForwardedTransaction(ALICE, b"x"), 0.05)

    asyncio.run(run())


def test_hints_reach_every_replica_and_garbage_is_no_hint(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            heard: asyncio.Queue[NonceHint] = asyncio.Queue()
            async with receiving_hints(replica.connection, heard.put_nowait):
                await replica.connection.state()
                await writer.connection.publish(writer.connection.subjects.nonce, b"garbage")
                await publish_hint(writer.connection, NonceHint(ALICE, 7))
                async with asyncio.timeout(PATIENCE):
                    assert await heard.get() == NonceHint(ALICE, 7)

    asyncio.run(run())
