"""The text of a trace on its way to an answer, in pieces where it is long."""

from foreblock.ledger.tracing.traces import TraceText
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.steps import Pace, Steps


def pieces_of(text: TraceText, pace: Pace) -> Steps[list[bytes]]:
    """The pieces, each of them copied within a slice."""
    pieces: list[bytes] = []
    while (piece := text.take()) is not None:
        pieces.append(piece)
        if pace.is_over():
            yield None
    return pieces


def whole_text(text: TraceText, pace: Pace, before: bytes = b"", after: bytes = b"") -> Steps[Text]:
    """The text between two others."""
    pieces = yield from pieces_of(text, pace)
    return in_pieces([before, *pieces, after])
