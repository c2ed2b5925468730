"""The header Foreblock-Snapshot: the commit of a response."""

import re
from dataclasses import dataclass

_SNAPSHOT = re.compile(
    r"commit=(\d+); latest=0x([0-9a-f]+):0x([0-9a-f]{64})"
    r"(?:; pending=0x([0-9a-f]+)\.(\d+):0x([0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit and its heads."""

    commit: int
    latest: tuple[int, bytes]  # number and hash
    pending: tuple[int, int, bytes] | None  # number, index and hash


def read_snapshot(text: str) -> Snapshot:
    """Parse the header; `ValueError` if it is malformed."""
    found = _SNAPSHOT.fullmatch(text)
    if found is None:
        raise ValueError(f"no snapshot is named by {text!r}")
    commit, number, hash, pending, index, pending_hash = found.groups()  # noqa: A001, its name
    return Snapshot(
        commit=int(commit),
        latest=(int(number, 16), bytes.fromhex(hash)),
        pending=(int(pending, 16), int(index), bytes.fromhex(pending_hash)) if pending else None,
    )
