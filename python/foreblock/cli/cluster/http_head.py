"""Heads of HTTP/1.1 messages, as far as a balancer has to understand them. No I/O.

A head is passed on as it came, byte for byte; here is only read where its message ends, and
whether the connection becomes a WebSocket or is closed after it.
"""

from dataclasses import dataclass
from typing import Final

END: Final = b"\r\n\r\n"
_NO_BODY: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The head of a request or an answer."""

    raw: bytes
    start: bytes  # the first line
    fields: dict[bytes, bytes]  # names in lower case

    @property
    def length(self) -> int | None:
        """Bytes of the body, if the head says so. Raises `ValueError`."""
        text = self.fields.get(b"content-length")
        if text is None:
            return None
        if not text.isdigit():
            raise ValueError("a length that is no number")
        return int(text)

    @property
    def is_chunked(self) -> bool:
        return self.fields.get(b"transfer-encoding", b"").lower().endswith(b"chunked")

    @property
    def is_upgrade(self) -> bool:
        return self.fields.get(b"upgrade", b"").lower() == b"websocket"

    @property
    def closes(self) -> bool:
        """Whether the connection ends after this message."""
        said = self.fields.get(b"connection", b"").lower()
        return said == b"close" or (self.start.endswith(b"HTTP/1.0") and said != b"keep-alive")

    @property
    def status(self) -> int:
        """The status of an answer. Raises `ValueError`."""
        return int(self.start.split(b" ")[1])

    @property
    def has_no_body(self) -> bool:
        """Whether an answer ends with its head, whatever else that says."""
        return self.status < 200 or self.status in _NO_BODY


def read_head(raw: bytes) -> HttpHead:
    """A head, with the empty line that ends it. Raises `ValueError`."""
    start, *lines = raw.removesuffix(END).split(b"\r\n")
    if len(start.split(b" ")) < 3 and not start.startswith(b"HTTP/"):
        raise ValueError("no head of HTTP")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            raise ValueError("a line without a colon")
        fields[name.strip().lower()] = value.strip()
    return HttpHead(raw, start, fields)
