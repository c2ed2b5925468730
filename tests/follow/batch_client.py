"""A connection that sends JSON-RPC batches, and reads the snapshot of each response."""

import json
import re
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple, Self

import msgspec

Json = Any
Request = tuple[str, list[Json]]
TIMEOUT = 30.0  # seconds
LONG = 1024  # bytes of a result that is compared as text, and parsed only if necessary
_ANSWERS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_LATEST = re.compile(r"\blatest=(0x[0-9a-f]+):(0x[0-9a-f]{64})")
_BASE = re.compile(r"\bbase=(0x[0-9a-f]+):(0x[0-9a-f]{64})")
_PENDING = re.compile(r"\bpending=(0x[0-9a-f]+)\.(\d+):(0x[0-9a-f]{64})")


class Identity(NamedTuple):
    """A block, or the state of one in progress, identified independently of the node."""

    number: int
    hash: str
    flashblock: int | None = None  # its index, if the block is in progress

    @property
    def block(self) -> Json:
        """The equivalent block parameter."""
        if self.flashblock is None:
            return {"blockHash": self.hash}
        return {"blockNumber": hex(self.number), "flashblockIndex": hex(self.flashblock)}


class LongText:
    """A long result as text: equal texts are equal values, and need no parsing."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LongText):
            return False
        return self._text == other._text or self.value == other.value

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def value(self) -> Json:
        """The parsed value."""
        return msgspec.json.decode(self._text)


def plain(value: Json) -> Json:
    """A result as a value of JSON."""
    return value.value if isinstance(value, LongText) else value


class Answered(NamedTuple):
    """The ordered responses to a batch, empty on failure."""

    answers: list[dict[str, Json]] | None
    snapshot: str  # the header, or empty
    seconds: float
    why: str = ""  # the reason for missing responses

    @property
    def latest(self) -> Identity | None:
        """The latest block of the snapshot."""
        found = _LATEST.search(self.snapshot)
        return Identity(int(found[1], 16), found[2]) if found else None

    @property
    def base(self) -> Identity | None:
        """The anchor block of a follower with partial state."""
        found = _BASE.search(self.snapshot)
        return Identity(int(found[1], 16), found[2]) if found else None

    @property
    def pending(self) -> Identity | None:
        """The block of `pending`: the block in progress, or the latest."""
        found = _PENDING.search(self.snapshot)
        return Identity(int(found[1], 16), found[3], int(found[2])) if found else self.latest


class BatchClient:
    """A client of one endpoint over one connection."""

    def __init__(self, url: str, timeout: float = TIMEOUT) -> None:
        host, _, path = url.removeprefix("http://").partition("/")
        self._path = f"/{path}"
        self._connection = HTTPConnection(host, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def ask(self, requests: Sequence[Request]) -> Answered:
        """Send one batch. An incomplete response counts as missing."""
        body = json.dumps(
            [
                {"jsonrpc": "2.0", "id": at, "method": method, "params": params}
                for at, (method, params) in enumerate(requests)
            ]
        )
        begun = time.monotonic()
        try:
            headers = {"Content-Type": "application/json"}
            self._connection.request("POST", self._path, body, headers)
            response = self._connection.getresponse()
            text, snapshot = response.read(), response.headers["Foreblock-Snapshot"] or ""
        except (HTTPException, OSError) as why:
            self._connection.close()
            return Answered(None, "", time.monotonic() - begun, type(why).__name__)
        seconds = time.monotonic() - begun
        if response.status != 200:
            return Answered(None, snapshot, seconds, f"status {response.status}")
        return _checked(text, len(requests), snapshot, seconds)


def _checked(text: bytes, count: int, snapshot: str, seconds: float) -> Answered:
    try:
        answers = [
            {name: _value(each) for name, each in answer.items()}
            for answer in _ANSWERS.decode(text)
        ]
    except ValueError:
        return Answered(None, snapshot, seconds, "not the JSON of a batch")
    if [each.get("id") for each in answers] != [*range(count)]:
        return Answered(None, snapshot, seconds, "not the responses of the batch")
    return Answered(answers, snapshot, seconds)


def _value(raw: msgspec.Raw) -> Json:
    text = bytes(raw)
    return LongText(text) if len(text) > LONG else msgspec.json.decode(text)
