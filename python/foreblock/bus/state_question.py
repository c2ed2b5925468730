"""A question about state that a store does not have, from its first to its last part. No I/O."""

import asyncio

from foreblock.bus.state_frames import MOST_BYTES, StateNotFound, StatePart
from foreblock.errors import ErrorAnswer, InvalidProofData, NewEpoch, NoUpstream, UnitsSpent


class StateQuestion:
    """A question, as its worker knows it."""

    def __init__(self) -> None:
        self._heard: list[bytes] = []
        self._size = 0
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def hear(self, word: StatePart | StateNotFound) -> None:
        """Apply a message of the network."""
        if self.answer.done():
            return
        if isinstance(word, StateNotFound):
            self.answer.set_exception(failure_of(word))
            return
        self._heard.append(word.data)
        self._size += len(word.data)
        if self._size > MOST_BYTES:
            self._fail(f"an answer of more than {MOST_BYTES} bytes")
        elif word.is_last:
            self.answer.set_result(b"".join(self._heard))

    def give_up(self) -> None:
        """Fail without an answer: the network's process is gone."""
        if not self.answer.done():
            self._fail("the process that fetches is not there")

    def _fail(self, why: str) -> None:
        self.answer.set_exception(NoUpstream(why, 1))


def failure_of(word: StateNotFound) -> Exception:
    """The exception that says why there is no answer."""
    match word.reason:
        case "unavailable":
            return NoUpstream(word.why, word.retry_after)
        case "spent":
            return UnitsSpent(word.retry_after)
        case "moved":
            return NewEpoch()
        case "untrue":
            return InvalidProofData(word.why)
        case "error":
            return ErrorAnswer(word.code, word.why, word.data)


def not_found(number: int, why: Exception) -> StateNotFound:
    """What the worker is told of an exception of fetching; others than these are hidden."""
    match why:
        case UnitsSpent(retry_after):
            return StateNotFound(number, "spent", retry_after=retry_after)
        case NoUpstream(text, retry_after):
            return StateNotFound(number, "unavailable", text, retry_after)
        case NewEpoch():
            return StateNotFound(number, "moved")
        case InvalidProofData(text):
            return StateNotFound(number, "untrue", text)
        case ErrorAnswer(code, text, data):
            return StateNotFound(number, "error", text, code=code, data=data)
        case _:
            return StateNotFound(number, "unavailable", "internal error")
