"""Requests for state and to upstreams, over a real socket and part by part."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.frames import LONGEST, MOST_BYTES, frame
from foreblock.bus.messages import (
    MOST_STATE_BYTES,
    STATE_PART_BYTES,
    BusCall,
    BusRequest,
    CallUpstream,
    Failed,
    GetState,
    PendingCall,
    Result,
    ResultPart,
    ToWorker,
)
from foreblock.errors import (
    BusMessageTooLong,
    ErrorAnswer,
    InvalidProofData,
    NewEpoch,
    NoUpstream,
    UnitsSpent,
)
from support.servers.in_loop import closed, in_loop, listening
from support.servers.waiting import PATIENCE

BODY = GetState(3, b"ab")


def request(sent: list[ToWorker]) -> BusRequest:
    return BusRequest(BusCall(7, "main", BODY, 0), sent.append)


@given(st.integers(0, 3 * STATE_PART_BYTES + 1))
def test_parts_make_up_the_whole(size: int) -> None:
    data = bytes(size)

    @in_loop
    async def scene() -> None:
        pending, sent = PendingCall(BODY), list[ToWorker]()
        request(sent).finish_in_parts(data)
        assert [type(each) for each in sent] == [ResultPart] * (len(sent) - 1) + [Result]
        for each in sent:
            assert len(frame(each)) < LONGEST
            assert isinstance(each, ResultPart | Result)
            pending.on_message(each)
        assert b"".join((*pending.parts, await pending.result)) == data

    scene()


@pytest.mark.parametrize(
    "why",
    [
        NoUpstream("down", 3),
        UnitsSpent(2),
        NewEpoch(),
        InvalidProofData("a node"),
        ErrorAnswer(3, "execution reverted", "0x08c3"),
    ],
    ids=lambda why: type(why).__name__,
)
def test_errors_cross_the_bus(why: Exception) -> None:
    received = failure_after(why)
    assert (type(received), str(received)) == (type(why), str(why))


def test_details_of_other_errors_stay_in_the_writer() -> None:
    received = failure_after(ValueError("https://secret"))
    assert isinstance(received, NoUpstream)
    assert "secret" not in str(received)


def failure_after(why: Exception) -> BaseException | None:
    sent: list[ToWorker] = []
    request(sent).fail(why)
    (message,) = sent
    assert isinstance(message, Failed)

    async def received() -> BaseException | None:
        pending = PendingCall(BODY)
        pending.on_message(message)
        return pending.result.exception()

    return asyncio.run(received())


def test_endless_result_is_given_up() -> None:
    @in_loop
    async def scene() -> None:
        pending = PendingCall(BODY)
        for _ in range(MOST_STATE_BYTES // STATE_PART_BYTES + 1):
            pending.on_message(ResultPart(1, bytes(STATE_PART_BYTES)))
        with pytest.raises(NoUpstream):
            await pending.result

    scene()


class Network:
    """Echoes its input many times, unless it is silent."""

    def __init__(self, *, is_long: bool = False) -> None:
        self.calls: list[BusCall] = []
        self.is_silent = False
        self.is_long = is_long
        self.server = BusServer(self.on_call, lambda: ())

    def on_call(self, request: BusRequest) -> None:
        self.calls.append(request.call)
        body = request.call.body
        assert isinstance(body, GetState | CallUpstream)
        data = body.keys if isinstance(body, GetState) else body.params
        if self.is_long:
            request.finish(b"%d" % len(data))
        elif not self.is_silent:
            request.finish_in_parts(data * STATE_PART_BYTES)


async def connected(network: Network, path: str) -> BusClient:
    await network.server.listen(listening(path))
    client = BusClient(path)
    client.start()
    await client.tried()
    return client


def test_calls_get_results_or_fail_in_time(tmp_path: Path) -> None:
    network = Network()

    @in_loop
    async def scene() -> None:
        client = await connected(network, str(tmp_path / "bus"))
        found = await asyncio.gather(
            client.get_state("main", 3, b"ab", PATIENCE),
            client.ask_upstream("main", "eth_getBlockByHash", b"[]", PATIENCE),
        )
        assert list(found) == [b"ab" * STATE_PART_BYTES, b"[]" * STATE_PART_BYTES]
        network.is_silent = True
        with pytest.raises(NoUpstream, match=r"nothing in 0\.01 s"):
            await client.get_state("main", 3, b"ab", 0.01)
        waiting = asyncio.ensure_future(client.get_state("main", 3, b"ab", PATIENCE))
        await asyncio.sleep(0)
        network.server.close()
        with pytest.raises(NoUpstream, match="is not available"):
            await waiting
        client.close()
        await closed()

    scene()
    assert [(each.network, each.body) for each in network.calls[:2]] == [
        ("main", GetState(3, b"ab")),
        ("main", CallUpstream("eth_getBlockByHash", b"[]")),
    ]


def test_long_calls_get_results_and_one_that_is_too_long_is_refused(tmp_path: Path) -> None:
    network, long = Network(is_long=True), bytes(2 * LONGEST)

    @in_loop
    async def scene() -> None:
        client = await connected(network, str(tmp_path / "bus"))
        with pytest.raises(BusMessageTooLong):
            await client.pass_on("main", "eth_call", bytes(MOST_BYTES), PATIENCE)
        found = await asyncio.gather(
            client.get_state("main", 3, long, PATIENCE),
            client.pass_on("main", "eth_call", long, PATIENCE),
            client.get_state("main", 3, b"ab", PATIENCE),
        )
        assert list(found) == [b"%d" % len(long), b"%d" % len(long), b"2"]
        client.close()
        network.server.close()
        await closed()

    scene()


def test_without_a_writer_there_is_no_state() -> None:
    @in_loop
    async def scene() -> None:
        with pytest.raises(NoUpstream):
            await BusClient("").get_state("main", 1, b"", 1.0)

    scene()
