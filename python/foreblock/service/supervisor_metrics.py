"""The metrics of the supervisor: how often it replaced processes, and its own memory."""

import asyncio
from typing import Final

from foreblock.metrics.catalogue import PROCESS_RESTARTS
from foreblock.metrics.instruments import Count
from foreblock.metrics.process_metrics import SECONDS, ProcessMetrics, sheet_of

ROLES: Final = ("worker", "writer")  # names of slots


class SupervisorMetrics:
    """The metrics of the supervisor."""

    def __init__(self, runtime: str) -> None:
        sheet = sheet_of(runtime, "supervisor")
        self._process: Final = ProcessMetrics(sheet, "supervisor")
        self._restarts: Final = {role: Count(sheet, PROCESS_RESTARTS, role) for role in ROLES}

    def restarted(self, role: str) -> None:
        """Count a process that is replaced."""
        self._restarts[role].add()

    def keep_sampling(self) -> None:
        """Look at the process every second, in the running loop."""
        self._process.sample()
        asyncio.get_running_loop().call_later(SECONDS, self.keep_sampling)
