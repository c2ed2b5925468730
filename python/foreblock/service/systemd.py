"""Notifications to systemd, as `sd_notify(3)` describes them.

A unit of `Type=notify` counts as started once the service says so, and with `WatchdogSec` it is
killed and restarted if it is silent for that long. The supervisor notifies, in its event loop: it
watches the other processes itself. Without systemd nothing is sent.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

STARTED: Final = b"READY=1"
ALIVE: Final = b"WATCHDOG=1"
MICROSECONDS: Final = 10**6
TIMES: Final = 4  # that a process notifies within the time of its watchdog


class ServiceState:
    """The state of this process, as systemd is told it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """The variables are those that systemd sets; a watchdog may be for another process."""
        name = environment.get("NOTIFY_SOCKET", "")
        self._address: Final = f"\0{name[1:]}" if name.startswith("@") else name
        own = str(os.getpid())
        limit = environment.get("WATCHDOG_USEC", "")
        is_watched = limit.isdecimal() and environment.get("WATCHDOG_PID", own) == own
        self._every: Final = int(limit) / MICROSECONDS / TIMES if is_watched else 0.0

    def started(self) -> None:
        """Report that everything serves; from now on the running loop reports that it runs."""
        self._send(STARTED)
        if self._every > 0:
            self._keep_alive()

    def _keep_alive(self) -> None:
        self._send(ALIVE)
        asyncio.get_running_loop().call_later(self._every, self._keep_alive)

    def _send(self, state: bytes) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)  # noqa: FBT003, the loop must not wait for systemd
            sock.sendto(state, self._address)
