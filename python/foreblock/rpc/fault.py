"""What an error is on the wire."""

from msgspec import Struct


class Fault(Struct, frozen=True, omit_defaults=True):
    """The `error` member of an answer; `data` is left out when there is none."""

    code: int
    message: str
    data: str | None = None
