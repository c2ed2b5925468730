"""Which requests hints are asked for: calls, a few of each body."""

import asyncio
from collections.abc import Sequence
from typing import Final

from foreblock.rpc.fetching import Missed
from foreblock.upstream.access_hint import access_hint
from foreblock.upstream.old_blocks import AskUpstream
from foreblock.upstream.wanted import Wanted, all_of

CALLS: Final = frozenset({"eth_call", "eth_estimateGas"})
MOST_CALLS: Final = 4  # of one body that are asked about


async def call_hints(ask: AskUpstream, missed: Sequence[Missed]) -> Wanted:
    """The keys that these calls touch, as far as an upstream says so; raises nothing."""
    calls = [each for each in missed if each.method in CALLS][:MOST_CALLS]
    return all_of(await asyncio.gather(*(access_hint(ask, each.params) for each in calls)))
