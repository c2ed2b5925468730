"""What the stream of a log and its servers must be. No I/O.

The age and the size that a stream keeps are its operator's to choose; the rest is what the rules
of the log rely on, and a stream that differs is refused with all that is wrong.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from foreblock.errors import LogServerTooOld
from foreblock.log.subjects import LogSubjects

NEEDED_VERSION: Final = (2, 12)  # the first with atomic batches
_HOUR_NS: Final = 3600 * 10**9
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


# Bytes that a new stream keeps, from the most on: servers refuse what exceeds their storage.
STREAM_BYTES: Final = (16 << 30, 4 << 30, 1 << 30, 256 << 20)


def new_stream(
    subjects: LogSubjects, replicas: int, most_bytes: int = STREAM_BYTES[0]
) -> dict[str, Any]:
    """The settings with which a writer creates the stream."""
    return needed_settings(subjects) | {
        "max_age": 24 * _HOUR_NS,
        "max_bytes": most_bytes,
        "duplicate_window": _HOUR_NS // 30,
        "num_replicas": replicas,
    }


def needed_settings(subjects: LogSubjects) -> dict[str, Any]:
    """The settings without which a stream is no log."""
    return {
        "name": subjects.stream,
        "subjects": [subjects.log],
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "allow_direct": True,
        "allow_atomic": True,
        "deny_delete": True,
        "deny_purge": True,
    }


def differences(found: Mapping[str, Any], subjects: LogSubjects) -> list[str]:
    """What is wrong with the settings of a stream, each as words."""
    needed = needed_settings(subjects)
    return [
        f"{name} is {_text(found.get(name))} and must be {_text(value)}"
        for name, value in needed.items()
        if found.get(name, False if value is True else None) != value
    ]


def _text(value: object) -> str:
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_version(text: str) -> None:
    """Raises `LogServerTooOld` unless a server of this version can hold a log."""
    found = _VERSION.match(text)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < NEEDED_VERSION:
        raise LogServerTooOld(text or "unknown", ".".join(map(str, NEEDED_VERSION)))
