"""Both event loops that foreblock can run on."""

from functools import partial

import pytest
import uvloop

from support.servers import in_loop
from support.servers.in_loop import Runner


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Runs a test's coroutine, and fails where it does not end."""
    uses_uvloop = request.param == "uvloop"
    return partial(in_loop.run, loop_factory=uvloop.new_event_loop if uses_uvloop else None)
