"""Messages that wait."""

import asyncio

from foreblock.feed.inbox import Inbox, InboxBounds

NO_PATIENCE = InboxBounds(messages=3, bytes=100, patience=0)


def test_messages_come_out_as_they_went_in() -> None:
    async def body() -> None:
        inbox = Inbox(NO_PATIENCE)
        for message in (b"a", b"b", b"c"):
            await inbox.put(message)
        assert inbox.drain() == [b"a", b"b", b"c"]
        assert inbox.drain() == []

    asyncio.run(body())


def test_the_oldest_go_when_there_are_too_many() -> None:
    async def body() -> None:
        inbox = Inbox(NO_PATIENCE)
        for number in range(5):
            await inbox.put(b"%d" % number)
        assert inbox.dropped == 2
        assert inbox.drain() == [b"2", b"3", b"4"]

    asyncio.run(body())


def test_the_oldest_go_when_there_are_too_many_bytes() -> None:
    async def body() -> None:
        inbox = Inbox(NO_PATIENCE)
        await inbox.put(b"a" * 60)
        await inbox.put(b"b" * 30)
        await inbox.put(b"c" * 70)
        assert inbox.dropped == 1
        assert inbox.drain() == [b"b" * 30, b"c" * 70]

    asyncio.run(body())


def test_a_message_alone_is_never_too_large() -> None:
    async def body() -> None:
        inbox = Inbox(NO_PATIENCE)
        await inbox.put(b"a")
        await inbox.put(b"b" * 1_000)
        assert inbox.drain() == [b"b" * 1_000]

    asyncio.run(body())


def test_who_is_patient_loses_nothing_to_a_reader_that_comes() -> None:
    async def body() -> None:
        inbox = Inbox(InboxBounds(messages=2, bytes=100, patience=20))
        taken: list[bytes] = []

        async def read() -> None:
            while len(taken) < 100:
                taken.extend(inbox.drain())
                await asyncio.sleep(0)

        reading = asyncio.create_task(read())
        for number in range(100):
            await inbox.put(b"%d" % number)
        await reading
        assert taken == [b"%d" % number for number in range(100)]
        assert inbox.dropped == 0

    asyncio.run(body())
