"""Answers of JetStream's API. No I/O.

An error of JetStream is an answer, with a code; `LogUnreachable` is raised where there is none.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from foreblock.errors import LogUnreachable

_NO_ROOM: Final = (10047, 10023)  # for a stream of this size: on a server, in a cluster
_NO_PEERS: Final = 10005  # to place a stream on: they are away, or they have no room


@dataclass(frozen=True, slots=True)
class StreamState:
    """The first and the last sequence of a stream; of an empty one the first is one above."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer of JetStream: fields, or an error."""

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
        """Whether a stream was refused for its size; 10005 has other causes beside."""
        if self.error == _NO_PEERS:
            return "insufficient storage" in self.why
        return self.error in _NO_ROOM


def read_answer(data: bytes) -> ApiAnswer:
    """An answer of JetStream. Raises `LogUnreachable` for anything else."""
    try:
        return ApiAnswer(msgspec.json.decode(data, type=dict[str, Any]))
    except msgspec.MsgspecError as why:
        raise LogUnreachable(f"not an answer of JetStream: {why}") from None
