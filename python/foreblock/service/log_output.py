"""Logs: an event's name and its fields, one line each, on standard error.

No URL is written with its secrets, wherever it stands, also in a traceback (`secret_urls`).
`docs/logs.md` has all events.

Verbs that end write for themselves. Processes that serve leave it to a thread
(`foreblock.service.log_output`), so that a collector of logs which stalls does not stop them.
"""

import atexit
import logging
import os
import select
import sys
import threading
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, TextIO, cast

import structlog

from foreblock.secret_urls import redact_urls

LogFormat = Literal["auto", "json", "text"]

MOST_BYTES: Final = 1 << 20  # of queued lines
FLUSH_SECONDS: Final = 1.0  # on exit

log = structlog.get_logger()


def configure(level: str, form: LogFormat = "auto") -> None:
    """Log from this level on; `auto` is text on a terminal and JSON elsewhere."""
    _configure(level, _processors(form), structlog.WriteLoggerFactory(sys.stderr))


def configure_queued(level: str, form: LogFormat = "auto") -> "LogQueue":
    """`configure` through the queue, so that logging never blocks; includes `logging` records.

    The process closes the queue when it ends, or earlier to write something after the log.
    """
    processors = _processors(form)
    queue = LogQueue(partial(write_to, sys.stderr.fileno()), _dropped_event(processors))
    atexit.register(queue.close)
    _configure(level, processors, partial(QueueLogger, queue))
    logging.basicConfig(handlers=[FromLibraries()])
    return queue


def queued_output() -> Callable[[str], None]:
    """A function that prints texts of whole lines, each with one write, and never blocks."""
    output = cast("TextIO | None", sys.stdout)
    if output is None:  # it was closed before the start
        return lambda _: None
    queue = LogQueue(
        partial(write_to, output.fileno()), lambda count: f"({count} texts are not shown)"
    )
    atexit.register(queue.close)
    return queue.put


class LogQueue:
    """A bounded queue of log lines, and the thread that writes them."""

    def __init__(self, write: Callable[[bytes], None], say_dropped: Callable[[int], str]) -> None:
        """`write` may block; `say_dropped` formats the count of dropped lines."""
        self._write: Final = write
        self._say_dropped: Final = say_dropped
        self._waiting: list[bytes] = []
        self._size = 0  # bytes queued or being written
        self._dropped = 0
        self._closed = False
        # Reentrant: a finalizer may log while the garbage collector runs inside `put`.
        self._changed: Final = threading.Condition(threading.RLock())
        self._thread: Final = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, text: str) -> None:
        """Queue a line, or count it as dropped."""
        line = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._closed or self._size + len(line) > MOST_BYTES:
                self._dropped += 1
                return
            if self._dropped:
                self._add(self._say_dropped(self._dropped).encode() + b"\n")
                self._dropped = 0
            self._add(line)
            self._changed.notify()

    def _add(self, line: bytes) -> None:
        self._waiting.append(line)
        self._size += len(line)

    def close(self, seconds: float = FLUSH_SECONDS) -> None:
        """Refuse further lines and wait up to `seconds` until all are written."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            lines, dropped = self._take()
            if not lines and not dropped:
                return
            # One write a line, so that lines of several processes do not mix.
            for line in lines:
                self._write(line)
                with self._changed:
                    self._size -= len(line)
            if dropped:
                self._write(self._say_dropped(dropped).encode() + b"\n")

    def _take(self) -> tuple[list[bytes], int]:
        """Wait for lines; return them and the count of dropped ones. Neither means the end."""
        with self._changed:
            while not (self._waiting or self._dropped or self._closed):
                self._changed.wait()
            lines, self._waiting = self._waiting, []
            dropped, self._dropped = self._dropped, 0
        return lines, dropped


def write_to(descriptor: int, data: bytes) -> None:
    """Write everything to a descriptor, blocking or not; ignore one that is closed.

    Without Python's file locks: a thread blocked here would hold one at exit.
    """
    left = memoryview(data)
    with suppress(OSError):
        while left:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                select.select([], [descriptor], [])


class QueueLogger:
    """Hands lines to the queue; unlike structlog's own loggers it holds no lock."""

    def __init__(self, queue: LogQueue, *_: object) -> None:
        self.msg: Final = queue.put

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return self.msg  # at any level


class FromLibraries(logging.Handler):
    """Forwards records of `logging` to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as an event."""
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        exc_info = record.exc_info or None
        log.log(level, record.getMessage(), logger=record.name, exc_info=exc_info)


def _processors(form: LogFormat) -> Sequence[Any]:
    terminal = sys.stderr.isatty()
    people = form == "text" or (form == "auto" and terminal)
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
        structlog.dev.ConsoleRenderer(colors=terminal)
        if people
        else structlog.processors.JSONRenderer(),
    ]


def hide_secrets(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take the secrets out of every URL in an event, whatever its fields are."""
    return {name: _hidden(value) for name, value in event.items()}


def _hidden(value: object) -> object:
    match value:
        case str():
            return redact_urls(value)
        case bool() | int() | float() | None:
            return value
        case list() | tuple():
            return [_hidden(each) for each in value]
        case dict():
            return {name: _hidden(each) for name, each in value.items()}
        case _:
            return redact_urls(str(value))


def _configure(level: str, processors: Sequence[Any], factory: Callable[..., Any]) -> None:
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def _dropped_event(processors: Sequence[Any]) -> Callable[[int], str]:
    """Formats a count of dropped lines as a log line, whatever the level is."""
    any_level = structlog.make_filtering_bound_logger(logging.NOTSET)
    said = structlog.wrap_logger(structlog.ReturnLogger(), processors, any_level)
    return lambda count: str(said.warning("log_lines_dropped", count=count))
