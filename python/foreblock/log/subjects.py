"""The subjects and the stream of the log of a network. No I/O.

| Subject | Sent by | Holds |
|---|---|---|
| `fb.NET.log` | the writer, into the stream `FB_NET` | commits |
| `fb.NET.head` | the writer | head announcements |
| `fb.NET.ask.EPOCH` | replicas, who are answered with a head | nothing |
| `fb.NET.submit.EPOCH` | replicas, who are answered | transactions |
| `fb.NET.nonce` | the writer | nonce hints |
"""

import re
from dataclasses import dataclass
from typing import Final

from foreblock.errors import InvalidArgument

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class LogSubjects:
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
        """Questions to the writers of all epochs."""
        return f"fb.{self.name}.ask.*"

    def ask(self, epoch: int) -> str:
        return f"fb.{self.name}.ask.{epoch}"

    def submit(self, epoch: int) -> str:
        return f"fb.{self.name}.submit.{epoch}"
