"""Messages of the log, as hypothesis makes them."""

from hypothesis import strategies as st

from foreblock.log.message import LogMessage
from foreblock.log.position import HeadAnnouncement

U64 = st.integers(0, (1 << 64) - 1)


def binary(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


@st.composite
def messages(draw: st.DrawFn, longest: int = 300) -> LogMessage:
    """A commit message with any fields and a body that packs well or not."""
    before = draw(st.integers(0, (1 << 64) - 2))
    after = draw(st.integers(before + 1, (1 << 64) - 1))
    body = draw(st.binary(max_size=longest) | st.builds(bytes, st.integers(0, longest)))
    return LogMessage(draw(U64), before, after, draw(binary(16)), draw(binary(32)), body)


def heads() -> st.SearchStrategy[HeadAnnouncement]:
    return st.builds(HeadAnnouncement, U64, U64, U64, binary(32), binary(16), U64)
