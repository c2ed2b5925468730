"""An answer that comes from an upstream: who asks waits for it, and is told where it is from.

Such answers are verified before they are given, but for those that are passed on as they are. One
of a batch has no header of its own: the whole batch has it.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.table import MethodFunction
from foreblock.rpc.fetching import mark_batch
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import LongWait

NULL: Final = b"null"
MARK: Final = b"Foreblock-Source: upstream\r\n"

Find = Callable[[], Awaitable[Text]]


class UpstreamAnswer(LongWait[Text]):
    """A result that an upstream has; nothing is begun before it is awaited."""

    def __init__(self, find: Find, headers: bytes) -> None:
        self._find: Final = find
        self._headers: Final = headers

    def __await__(self) -> Generator[Any, None, Text]:
        return self._in_batch().__await__()

    async def _in_batch(self) -> Text:
        text = await self._find()
        if text != NULL:
            mark_batch(MARK)
        return text

    async def apart(self) -> tuple[Text, bytes]:
        """The result, with the mark of where it comes from."""
        text = await self._find()
        return text, self._headers if text == NULL else self._headers + MARK


def beside(
    here: MethodFunction, elsewhere: Callable[[LedgerView, Raw], Find | None]
) -> MethodFunction:
    """The method here, or what is found elsewhere where that cannot know."""

    def run(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        find = elsewhere(view, raw)
        return here(view, raw) if find is None else UpstreamAnswer(find, view.headers)

    run.__doc__ = here.__doc__
    return run
