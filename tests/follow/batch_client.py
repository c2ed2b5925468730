"""A connection that asks batches of JSON-RPC, and reads which snapshot answered."""

import json
import re
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple, Self

import msgspec

Json = Any
Request = tuple[str, list[Json]]
TIMEOUT = 30.0  # seconds after which there is no answer
LONG = 1024  # bytes of a result that is compared as it is, and read only where it has to be
_ANSWERS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_LATEST = re.compile(r"\blatest=(0x[0-9a-f]+):(0x[0-9a-f]{64})")
_BASE = re.compile(r"\bbase=(0x[0-9a-f]+):(0x[0-9a-f]{64})")
_PENDING = re.compile(r"\bpending=(0x[0-9a-f]+)\.(\d+):(0x[0-9a-f]{64})")


class Identity(NamedTuple):
    """A block, or the state of one in progress: named so that it is the same everywhere."""

    number: int
    hash: str
    flashblock: int | None = None  # its index, where the block is in progress

    @property
    def block(self) -> Json:
        """The block parameter that means it."""
        if self.flashblock is None:
            return {"blockHash": self.hash}
        return {"blockNumber": hex(self.number), "flashblockIndex": hex(self.flashblock)}


class LongText:
    """A long result as it came: equal texts are equal values, and need not be read."""

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
        """What it says."""
        return msgspec.json.decode(self._text)


def plain(value: Json) -> Json:
    """A result as a value of JSON."""
    return value.value if isinstance(value, LongText) else value


class Answered(NamedTuple):
    """The answers to a batch, in its order; none where there are none."""

    answers: list[dict[str, Json]] | None
    snapshot: str  # the header, or nothing
    seconds: float
    why: str = ""  # there are none

    @property
    def latest(self) -> Identity | None:
        """The latest block of the snapshot."""
        found = _LATEST.search(self.snapshot)
        return Identity(int(found[1], 16), found[2]) if found else None

    @property
    def base(self) -> Identity | None:
        """The block at which a follower began, if its state is known in part."""
        found = _BASE.search(self.snapshot)
        return Identity(int(found[1], 16), found[2]) if found else None

    @property
    def pending(self) -> Identity | None:
        """What pending meant: the block in progress, or the latest."""
        found = _PENDING.search(self.snapshot)
        return Identity(int(found[1], 16), found[3], int(found[2])) if found else self.latest


class BatchClient:
    """Asks one endpoint over one connection."""

    def __init__(self, url: str, timeout: float = TIMEOUT) -> None:
        host, _, path = url.removeprefix("http://").partition("/")
        self._path = f"/{path}"
        self._connection = HTTPConnection(host, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, requests: Sequence[Request]) -> Answered:
        """Ask in one batch. What is not a whole answer to it is none."""
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
        return Answered(None, snapshot, seconds, "not the answers of the batch")
    return Answered(answers, snapshot, seconds)


def _value(raw: msgspec.Raw) -> Json:
    text = bytes(raw)
    return LongText(text) if len(text) > LONG else msgspec.json.decode(text)
