"""The file format of a recording: one line of JSON per message, with its time.

The first line identifies the format. Each further line has `at`, in seconds since the start,
and the payload of one frame byte for byte: as `text` if it is UTF-8, else as `base64`. A
truncated last line is ignored, since recording may stop at any time.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import msgspec

from foreblock.errors import BadRecording

FORMAT: Final = "foreblock feed recording"
VERSION: Final = 1
_LONGEST_LINE: Final = 128 * 1024 * 1024  # a message of 16 MiB, every character escaped


class _Head(msgspec.Struct):
    format: str
    version: int
    url: str = ""
    began: str = ""  # the date, for people


class _Line(msgspec.Struct, omit_defaults=True):
    at: float
    text: str | None = None
    base64: str | None = None


class Recorded(NamedTuple):
    """A message and its time in seconds."""

    at: float
    message: bytes


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode


def head_line(url: str, began: str) -> bytes:
    return _encode(_Head(FORMAT, VERSION, url, began)) + b"\n"


def message_line(at: float, message: bytes) -> bytes:
    try:
        line = _Line(round(at, 6), text=message.decode())
    except UnicodeDecodeError:
        line = _Line(round(at, 6), base64=b64encode(message).decode())
    return _encode(line) + b"\n"


def read_recording(name: str, file: BinaryIO) -> Iterator[Recorded]:
    """Read the messages of a file. Raises `BadRecording`."""
    head = file.readline(_LONGEST_LINE)
    try:
        kind = _decode_head(head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        kind = None
    if kind is None or kind.format != FORMAT:
        raise BadRecording(name, 1, "not a recording of a feed")
    if kind.version != VERSION:
        raise BadRecording(name, 1, f"version {kind.version} is not known")
    number = 1
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if not line.endswith(b"\n"):
            return
        yield _read_line(name, number, line)


def _read_line(name: str, number: int, line: bytes) -> Recorded:
    try:
        found = _decode(line)
        if found.text is not None:
            return Recorded(found.at, found.text.encode())
        return Recorded(found.at, b64decode(found.base64 or "", validate=True))
    except (ValueError, msgspec.DecodeError) as why:
        raise BadRecording(name, number, str(why)) from why
