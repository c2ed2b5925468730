"""Any bytes after a handshake are answered, or end the connection with a code and a reason."""

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from foreblock.scheduling.reply import Reply
from foreblock.settings import ServerLimits, WebSocketLimits
from support.servers.in_loop import turns
from support.servers.websocket_wire import WebSocketWire, masked

LIMITS = ServerLimits(body_limit=5000, connections=10)

GOOD = st.builds(
    masked, st.binary(max_size=200), st.sampled_from([0, 1, 2, 8, 9, 10]), final=st.booleans()
).filter(bool)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Frames with bytes changed, removed or inserted."""
    data = bytearray(b"".join(draw(st.lists(GOOD, min_size=1, max_size=5))))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 2)):
            case 0:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del data[at : at + draw(st.integers(1, 10))]
            case _:
                data[at:at] = draw(st.binary(min_size=1, max_size=10))
    return bytes(data)


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=50),
        GOOD,
        damaged(),
        st.sampled_from([masked(b"slow"), masked(b"", 9) * 30, masked(b"x") * 100]),
    ),
    max_size=8,
)


@given(PIECES, st.booleans())
@example([masked(b"slow")] * 4, True)
def test_any_bytes_are_answered_or_end_the_connection(pieces: list[bytes], reads: bool) -> None:
    async def talk() -> None:
        wire = WebSocketWire(LIMITS, WebSocketLimits(requests=2, unsent_bytes=1024))
        wire.transport.client_reads = reads
        for piece in pieces:
            wire.send_raw(piece)
            await turns()
            wire.advance_seconds(1)
        if not reads:
            wire.transport.client_takes_all()
            await turns()
        closed = wire.close_of()
        if closed is not None:
            assert 1000 <= closed[0] < 5000
            assert closed[0] != 1011, "it is never our fault"
        assert wire.over() == (closed is not None)
        # Requests above the limit begin when the previous ones are answered.
        while late := [each for _, each in wire.session.waiting if not each.done()]:
            for waiting in late:
                waiting.set_result(Reply(b"late"))
            await turns()
        wire.advance_seconds(200)
        assert wire.over(), "nothing stays for ever without a word"
        wire.transport.close()
        await turns()
        assert (wire.session.ends, wire.ticker.count, wire.budget.held) == (1, 0, 0)

    asyncio.run(talk())
