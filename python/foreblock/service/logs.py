"""Logs: an event's name and its fields, one line each, on standard error.

Verbs that end write for themselves. Processes that serve leave it to a thread
(`foreblock.service.log_queue`), so that a collector of logs which stalls does not stop them.
"""

import atexit
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import structlog

from foreblock.service.log_queue import LogQueue, write_to

log = structlog.get_logger()


def configure(level: str) -> None:
    """Log from this level on; for people on a terminal, as JSON elsewhere."""
    _configure(level, _processors(), structlog.WriteLoggerFactory(sys.stderr))


def configure_queued(level: str) -> None:
    """The same without ever waiting; what libraries log by Python's own means goes along."""
    processors = _processors()
    queue = LogQueue(partial(write_to, sys.stderr.fileno()), _said_dropped(processors))
    atexit.register(queue.close)
    _configure(level, processors, partial(QueueLogger, queue))
    logging.basicConfig(handlers=[FromLibraries()])


class QueueLogger:
    """The last step of a log call. Unlike structlog's own it holds no lock meanwhile."""

    def __init__(self, queue: LogQueue, *_: object) -> None:
        self.msg: Final = queue.put

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return self.msg  # at any level


class FromLibraries(logging.Handler):
    """Logs what libraries log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as an event."""
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        exc_info = record.exc_info or None
        log.log(level, record.getMessage(), logger=record.name, exc_info=exc_info)


def _processors() -> Sequence[Any]:
    people = sys.stderr.isatty()
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([] if people else [structlog.processors.format_exc_info]),
        structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer(),
    ]


def _configure(level: str, processors: Sequence[Any], factory: Callable[..., Any]) -> None:
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def _said_dropped(processors: Sequence[Any]) -> Callable[[int], str]:
    """Says how many lines were dropped, in the form of the others, whatever the level is."""
    any_level = structlog.make_filtering_bound_logger(logging.NOTSET)
    said = structlog.wrap_logger(structlog.ReturnLogger(), processors, any_level)
    return lambda count: str(said.warning("log_lines_dropped", count=count))
