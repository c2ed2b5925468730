"""Post bodies to one endpoint, several at a time, each within its time.

Every body has a thread and a connection of its own, which is kept for the next one. A post that
takes too long, or that nobody waits for any more, is cut off: an endpoint that sends byte after
byte holds nothing. What goes wrong is a refusal with a name, without the secrets of the URL.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from foreblock.errors import ErrorAnswer, NotAnAnswer, RefusedAnswer, Unreachable
from foreblock.secret_urls import redact, secrets_of
from foreblock.upstream.json_rpc import RefusalKind, refuse
from foreblock.upstream.rpc_client import Endpoint

MOST: Final = 8  # posts at a time, and as many that are urgent beside them
LONGEST_ANSWER: Final = 32 * 1024 * 1024  # bytes

Posted = tuple[int, bytes, Mapping[str, str]]


class HttpReply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Connections:
    """Connections to one endpoint; `close` them."""

    def __init__(self, url: str, timeout: float, most: int = MOST) -> None:
        """`timeout` bounds each step of a post. Raises `InvalidArgument` for a bad URL."""
        self._url: Final = url
        self._timeout: Final = timeout
        self.secrets: Final = secrets_of(url)
        self._idle: Final = [self._open()]
        self._is_closed = False
        self._places: Final = asyncio.Semaphore(most)
        self._urgent_places: Final = asyncio.Semaphore(most)
        # A thread that was cut off may take some time to notice.
        self._threads: Final = ThreadPoolExecutor(4 * most, "foreblock-upstream")

    async def post(self, body: bytes, seconds: float, *, is_urgent: bool = False) -> HttpReply:
        """Post a body. Raises `RefusedAnswer` if nothing comes back in these seconds.

        What is urgent does not wait for a place behind what is not.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        places = self._urgent_places if is_urgent else self._places
        try:
            async with asyncio.timeout(seconds):
                await places.acquire()
        except TimeoutError:
            raise refuse(RefusalKind.UNREACHABLE, "no connection was free in time") from None
        if self._is_closed:
            places.release()
            raise refuse(RefusalKind.UNREACHABLE, "it is not asked any more")
        endpoint = self._idle.pop() if self._idle else self._open()
        work = self._threads.submit(endpoint.post_once, body)
        posted = asyncio.wrap_future(work)
        posted.add_done_callback(_retrieve)
        try:
            done, _ = await asyncio.wait([posted], timeout=max(0.0, until - loop.time()))
            if not done:
                raise refuse(RefusalKind.UNREACHABLE, f"no answer in {seconds:g} s")
            return HttpReply(*self._result(posted))
        finally:
            if posted.done() and not self._is_closed:
                self._idle.append(endpoint)
            else:
                endpoint.abort()
                work.add_done_callback(lambda _: endpoint.close())
            places.release()

    def _result(self, posted: "asyncio.Future[Posted]") -> Posted:
        try:
            return posted.result()
        except Unreachable as why:
            raise refuse(RefusalKind.UNREACHABLE, self.hide(why.why)) from None
        except NotAnAnswer as why:
            raise refuse(RefusalKind.TOO_LONG, self.hide(why.why)) from None

    def hide(self, text: str) -> str:
        """The text without the secrets of the URL, which the endpoint may repeat."""
        return redact(text, self.secrets)

    def hidden(self, refused: RefusedAnswer) -> RefusedAnswer:
        """The refusal without them."""
        said = refused.said
        if said is not None:
            said = ErrorAnswer(said.code, self.hide(said.message), self.hide(said.data))
        return RefusedAnswer(refused.kind, self.hide(refused.why), said)

    def close(self) -> None:
        """Close what is idle, and give up what is not."""
        self._is_closed = True
        for endpoint in self._idle:
            endpoint.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _open(self) -> Endpoint:
        return Endpoint(self._url, self._timeout, LONGEST_ANSWER, may_go_back=True)


def _retrieve(posted: "asyncio.Future[Posted]") -> None:
    """Retrieve the exception, so that asyncio does not log it when nobody waits."""
    if not posted.cancelled():
        posted.exception()
