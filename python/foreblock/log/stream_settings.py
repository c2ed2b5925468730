"""The stream of a log: its subjects, its required settings, and responses of its API. No I/O.

`docs/design/log.md` lists the subjects. The operator chooses the age and the size that a stream
keeps. The rules of the log rely on the other settings, and a stream that differs is refused with a
list of the differences. An error of JetStream is a response with a code; `LogUnreachable` is raised
if there is none.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from foreblock.errors import InvalidArgument, LogServerTooOld, LogUnreachable

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class LogSubjects(Struct, frozen=True):
    """The names that follow from the name of a log."""

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(
                f"{self.name!r} cannot name a log: letters, digits, - and _ only, at most 64"
            )

    @property
    def stream(self) -> str:
        return f"FB_{self.name}"

    @property
    def log(self) -> str:
        return f"fb.{self.name}.log"

    @property
    def head(self) -> str:
        return f"fb.{self.name}.head"

    @property
    def nonce(self) -> str:
        return f"fb.{self.name}.nonce"

    @property
    def asks(self) -> str:
        """Requests to the writers of all epochs."""
        return f"fb.{self.name}.ask.*"

    def ask(self, epoch: int) -> str:
        return f"fb.{self.name}.ask.{epoch}"

    def submit(self, epoch: int) -> str:
        return f"fb.{self.name}.submit.{epoch}"


NEEDED_VERSION: Final = (2, 12)  # the first with atomic batches
_HOUR_NS: Final = 3600 * 10**9
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


# Sizes for a new stream, the largest first: servers refuse what exceeds their storage.
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
    """The differences of a stream's settings from the required ones, as text."""
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


_NO_ROOM: Final = (10047, 10023)  # for a stream of this size: on a server, in a cluster
_NO_PEERS: Final = 10005  # to place a stream on: they are away, or they have no room


class StreamState(Struct, frozen=True):
    """The first and the last sequence of a stream; of an empty one the first is one above."""

    first: int
    last: int


class ApiAnswer(Struct, frozen=True):
    """A response of JetStream: fields, or an error."""

    fields: dict[str, Any]

    @property
    def error(self) -> int:
        """The code of its error, 0 if there is none."""
        return int(self.fields.get("error", {}).get("err_code", 0))

    @property
    def why(self) -> str:
        return str(self.fields.get("error", {}).get("description", ""))

    @property
    def is_out_of_room(self) -> bool:
        """Return true if a stream was refused for its size; 10005 has other causes too."""
        if self.error == _NO_PEERS:
            return "insufficient storage" in self.why
        return self.error in _NO_ROOM


def read_answer(data: bytes) -> ApiAnswer:
    """A response of JetStream. Raises `LogUnreachable` for anything else."""
    try:
        return ApiAnswer(msgspec.json.decode(data, type=dict[str, Any]))
    except msgspec.MsgspecError as why:
        raise LogUnreachable(f"not a response of JetStream: {why}") from None
