"""Both event loops on which foreblock runs."""

from functools import partial

import pytest
import uvloop

from support.servers import in_loop
from support.servers.in_loop import Runner


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Run a test's coroutine, and fail if it does not end."""
    uses_uvloop = request.param == "uvloop"
    return partial(in_loop.run, loop_factory=uvloop.new_event_loop if uses_uvloop else None)
