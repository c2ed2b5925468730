"""A headless Chromium, driven over its DevTools protocol.

The protocol is JSON over WebSocket, which `websockets` already speaks: no driver to install and no
driver version to match with the browser's.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from support.servers.waiting import PATIENCE, until

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "chromium is not installed (Debian: chromium), so the page is not tried in a browser"
OPTIONS = (
    "--headless=new", "--remote-debugging-port=0", "--no-sandbox", "--disable-gpu",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--no-default-browser-check", "--hide-scrollbars",
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--js-flags=--expose-gc", "about:blank",
)  # fmt: skip
Listener = Callable[[str, dict[str, Any]], None]


def find_chromium() -> str:
    """Return the path of the browser; skip the test if none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(MISSING)
    return path


class Browser:
    """A running browser: sends commands to it and its targets, and delivers their events."""

    def __init__(self, socket: ClientConnection, pid: int) -> None:
        self.pid = pid
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Listener] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def listen(self, session: str, listener: Listener) -> None:
        """Register a callback for every event of a session; it runs in another thread."""
        self._listeners[session] = listener

    def command(self, method: str, params: dict[str, Any], session: str = "") -> dict[str, Any]:
        """Return the result of a command. Raises if the browser rejects it."""
        number = next(self._ids)
        answer: Future[dict[str, Any]] = Future()
        self._waiting[number] = answer
        body = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(body | ({"sessionId": session} if session else {})))
        found = answer.result(PATIENCE)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        result: dict[str, Any] = found["result"]
        return result

    def _read(self) -> None:
        with suppress(ConnectionClosed):
            for text in self._socket:
                message = json.loads(text)
                if "id" in message:
                    self._waiting.pop(message["id"]).set_result(message)
                elif listener := self._listeners.get(message.get("sessionId", "")):
                    listener(message["method"], message["params"])
        for each in self._waiting.values():
            each.set_exception(ConnectionError("the browser has ended"))


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A browser with its own profile, until all its processes have ended."""
    path = find_chromium()
    with tempfile.TemporaryDirectory(prefix="foreblock-", ignore_cleanup_errors=True) as at:
        process = subprocess.Popen(
            [path, f"--user-data-dir={at}", *OPTIONS],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            port, way = until(lambda: _address(Path(at), process), "chromium listens")
            url = f"ws://127.0.0.1:{port}{way}"
            with connect(url, max_size=None, open_timeout=PATIENCE, ping_interval=None) as socket:
                yield Browser(socket, process.pid)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> tuple[str, str] | None:
    assert process.poll() is None, f"chromium ended with {process.returncode}"
    try:
        port, way = (profile / "DevToolsActivePort").read_text("ascii").split("\n")[:2]
    except (FileNotFoundError, ValueError):
        return None
    return port, way
