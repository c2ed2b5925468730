"""A browser tab: user actions, and problems that the page must not have."""

import base64
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.browser.chromium import Browser
from support.servers.waiting import until

KEYS = {"Enter": ("Enter", "\r", 13), "Escape": ("Escape", "", 27)}


class Tab:
    """One page."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.target = browser.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = {"targetId": self.target, "flatten": True}
        self._session = browser.command("Target.attachToTarget", attached)["sessionId"]
        self._lock = threading.Lock()
        self.problems: list[str] = []  # console errors, exceptions, violated policies
        self.requested: list[str] = []  # URLs, including those of WebSockets
        self.sent: deque[str] = deque(maxlen=1000)  # the latest messages over WebSocket
        browser.listen(self._session, self._hear)
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401, JSON
        """Return the result of a command to this tab."""
        return self.browser.command(method, params, self._session)

    def _hear(self, event: str, params: dict[str, Any]) -> None:
        with self._lock:
            match event:
                case "Runtime.exceptionThrown":
                    self.problems.append(json.dumps(params["exceptionDetails"])[:500])
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                    self.problems.append(json.dumps(params["args"])[:500])
                case "Log.entryAdded" if params["entry"]["level"] == "error":
                    entry = params["entry"]
                    text = f"{entry['source']}: {entry['text']} {entry.get('url', '')}"
                    self.problems.append(text)
                case "Audits.issueAdded" if "ContentSecurityPolicy" in params["issue"]["code"]:
                    self.problems.append(json.dumps(params["issue"])[:500])
                case "Network.requestWillBeSent":
                    self.requested.append(params["request"]["url"])
                case "Network.webSocketCreated":
                    self.requested.append(params["url"])
                case "Network.webSocketFrameSent":
                    self.sent.append(params["response"]["payloadData"])
                case _:
                    pass

    def clear_problems(self) -> None:
        """Clear problems that a test has caused on purpose."""
        with self._lock:
            self.problems.clear()

    def has_sent(self, part: str) -> bool:
        """Return whether a recent WebSocket message contains this text."""
        with self._lock:
            return any(part in each for each in self.sent)

    @property
    def origins(self) -> set[str]:
        """Hosts and ports of all requests."""
        with self._lock:
            parts = [urlsplit(url) for url in self.requested]
        return {part.netloc for part in parts if part.scheme not in ("about", "data")}

    # User actions.

    def open(self, url: str) -> None:
        self.do("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'", f"{url} is loaded")

    def set_viewport(self, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Set the window size and the system's colour scheme."""
        phone = width < 600
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])

    def type(self, text: str) -> None:
        self.do("Input.insertText", text=text)

    def press(self, key: str) -> None:
        code, text, number = KEYS.get(key, (key, key, 0))
        event: dict[str, Any] = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.do("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self.do("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    # Page content.

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401, JSON
        """Return the value of an expression in the page."""
        found = self.do(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(json.dumps(found["exceptionDetails"])[:1000])
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the visible text of the first matching element, or an empty text."""
        found = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return str(found)

    def wait(self, expression: str, what: str) -> Any:  # noqa: ANN401, JSON
        """Return the value of an expression once it is true, even across page loads."""

        def value() -> Any:  # noqa: ANN401, JSON
            try:
                return self.evaluate(expression)
            except RuntimeError as refused:
                if "target navigated" in str(refused):
                    return None
                raise

        return until(value, what)

    def wait_for_text(self, selector: str, part: str) -> str:
        def found() -> str | None:
            text = self.text(selector)
            return text if part in text else None

        return until(found, f"{part!r} shows")

    def picture(self, path: Path) -> None:
        """Write a screenshot as PNG."""
        data = self.do("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def heap_bytes(self) -> int:
        """Return the bytes of live JavaScript objects, after garbage collection."""
        self.do("HeapProfiler.collectGarbage")
        used: int = int(self.do("Runtime.getHeapUsage")["usedSize"])
        return used


@contextmanager
def opened_tab(browser: Browser, url: str, **look: Any) -> Iterator[Tab]:  # noqa: ANN401
    """A tab that shows a URL, until it is closed."""
    tab = Tab(browser)
    tab.set_viewport(**look)
    tab.open(url)
    try:
        yield tab
    finally:
        browser.command("Target.closeTarget", {"targetId": tab.target})
