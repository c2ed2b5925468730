"""A recorded feed, served again.

It begins when somebody listens. Messages go out at their times, divided by the speed, or
as fast as every client takes them; nobody is closed for being slower than a recording.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from foreblock.feed.recording.file import Recorded
from foreblock.feed.server import FeedServer

_LOOK_SECONDS: Final = 0.001  # between two looks at what clients have not taken


async def replay(
    recording: Iterable[Recorded],
    server: FeedServer,
    speed: float,
    listeners: int = 1,
    progress: Callable[[Recorded], None] = lambda _: None,
) -> None:
    """Send a recording to all clients once there are so many; a speed of 0 is the fastest."""
    while server.clients < listeners:  # noqa: ASYNC110, a client is nobody's event
        await asyncio.sleep(_LOOK_SECONDS)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    start: float | None = None
    for each in recording:
        start = each.at if start is None else start
        if speed:
            await asyncio.sleep(max(0.0, begun + (each.at - start) / speed - loop.time()))
        while server.unsent:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
        server.publish_bytes(each.message)
        progress(each)
        if not speed:
            await asyncio.sleep(0)
    while server.unsent:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
