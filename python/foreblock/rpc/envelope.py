r"""Bytes to requests, results and faults to bytes.

Two ways in. `read_usual` decodes what a well-behaved client sends, in one pass, with
`id` and `params` left as the bytes they are. Whatever it refuses goes through `read`,
which takes the bytes apart again and says what is wrong, in this order: not JSON, no
usable id, not a request. So only an error costs more than a fraction of a microsecond.

An id is echoed as it was sent, byte for byte: 1e400 and "\u0041" come back unchanged. The beginning
of a response is written as soon as its id is known, because that is also the cheapest way to look
at the id; a result and a brace complete it. Answers are joined and never formatted: `%` copies a
large result twice.
"""

from typing import Final, Literal

import msgspec
from msgspec import DecodeError, Raw, Struct

from foreblock.rpc.error_codes import Fault
from foreblock.scheduling.reply import Text
from foreblock.scheduling.thresholds import THRESHOLDS

NULL: Final = Raw(b"null")
NO_PARAMS: Final = Raw(b"null")

# Everything that decoding may raise. A `Raw` is not checked as UTF-8, typed text is.
DECODING: Final = (DecodeError, UnicodeDecodeError, RecursionError)

PARSE_ERROR: Final = Fault(-32700, "parse error")
INVALID_REQUEST: Final = Fault(-32600, "invalid request")
EMPTY_BATCH: Final = Fault(-32600, "empty batch")
BATCH_TOO_LARGE: Final = Fault(-32600, "batch too large")
RESPONSE_TOO_LARGE: Final = Fault(-32003, "response too large")
REQUEST_TIMED_OUT: Final = Fault(-32002, "request timed out")
_SPACE: Final = b" \t\n\r"
_COMPOSED: Final = b"{["  # how objects and arrays begin
_BEFORE_ID: Final = b'{"jsonrpc":"2.0","id":'
_BEFORE_RESULT: Final = b',"result":'
_ID_AT: Final = len(_BEFORE_ID)
MAX_METHOD_NAME: Final = 2048  # bytes, as in geth


class Request(Struct, gc=False, frozen=True):
    """A call. A notification, which has no id on the wire, has null here."""

    method: str
    jsonrpc: Literal["2.0"]
    id: Raw
    params: Raw = NO_PARAMS


class Malformed(Struct, gc=False, frozen=True):
    """An item that is not a request: the fault, and the id to answer it with."""

    fault: Fault
    id: Raw = NULL


# A request and how its response begins; a notification has no response.
Asked = tuple[Request, bytes]
Item = Asked | Malformed

_decode_request = msgspec.json.Decoder(Request).decode
_decode_requests = msgspec.json.Decoder(list[Request]).decode
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_skip = msgspec.json.Decoder(Raw).decode
_encode = msgspec.json.Encoder().encode


def read_usual(body: bytes) -> Asked | None:
    """The one call that a body holds, if it is as most of them are: ASCII, with a plain id."""
    try:
        request = _decode_request(body)
    except DECODING:
        return None
    opening = b"".join((_BEFORE_ID, request.id, _BEFORE_RESULT))
    if opening[_ID_AT] in _COMPOSED or not body.isascii():
        return None
    return request, opening


def read(body: bytes, most: int) -> Item | list[Item]:
    """Read a body: one request, or those of a batch in their order.

    Of more than `most` that are not all requests, one more is checked.
    """
    if not body.isascii() and not _is_utf8(body):
        return Malformed(PARSE_ERROR)
    if body.lstrip(_SPACE)[:1] != b"[":
        return judge(Raw(body)) if _is_json(body) else Malformed(PARSE_ERROR)
    try:
        requests = _decode_requests(body)
    except DECODING:
        return _judge_items(body, most)
    usual: list[Item] = [
        (request, opening)
        for request in requests
        if (opening := b"".join((_BEFORE_ID, request.id, _BEFORE_RESULT)))[_ID_AT] not in _COMPOSED
    ]
    return usual if len(usual) == len(requests) else _judge_items(body, most)


def _judge_items(body: bytes, most: int) -> Item | list[Item]:
    """A batch that holds something else than requests."""
    try:
        items = _decode_items(body)
    except DECODING:
        return Malformed(PARSE_ERROR)
    return [judge(item) for item in items[: most + 1]]


def judge(item: Raw) -> Item:
    """Read a request, or return why it is invalid. The last of equal keys counts."""
    try:
        fields = _decode_fields(item)
    except DECODING:
        fields = None
    return judge_fields(fields)


def judge_fields(fields: dict[str, Raw] | None) -> Item:
    """Return the members of a JSON object, or None for any other value."""
    if fields is None:
        return Malformed(INVALID_REQUEST)
    id = fields.get("id", NULL)  # noqa: A001, its name on the wire
    if bytes(id)[0] in _COMPOSED:
        return Malformed(INVALID_REQUEST)
    try:
        version = _decode_text(fields.get("jsonrpc", NULL))
        method = _decode_text(fields.get("method", NULL))
    except DECODING:
        return Malformed(INVALID_REQUEST, id)
    if version != "2.0":
        return Malformed(INVALID_REQUEST, id)
    request = Request(method, "2.0", id, fields.get("params", NO_PARAMS))
    opening = b"".join((_BEFORE_ID, id, _BEFORE_RESULT)) if "id" in fields else b""
    return request, opening


def _is_json(body: bytes) -> bool:
    try:
        _skip(body)
    except DECODING:
        return False
    return True


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def unknown_method(name: str) -> Fault:
    """The fault of a method that is not in the table."""
    if not name:
        return INVALID_REQUEST
    length = len(name.encode())
    if length > MAX_METHOD_NAME:
        return Fault(-32600, f"method name too long: {length} > {MAX_METHOD_NAME}")
    return Fault(-32601, f"the method {name} does not exist/is not available")


def enveloped(opening: bytes, text: Text) -> Text:
    """A result between what comes before and after it; a long one is left in its pieces."""
    if not opening:
        return b""
    if isinstance(text, list):
        return [opening, *text, b"}"]
    if len(text) >= THRESHOLDS.long_bytes:
        return [opening, text, b"}"]
    return b"".join((opening, text, b"}"))


def failure(item: Item, fault: Fault) -> bytes:
    """The response with an error; nothing for a notification."""
    if isinstance(item, Malformed):
        return _failure(item.id, fault)
    request, opening = item
    return _failure(request.id, fault) if opening else b""


def _failure(id: Raw, fault: Fault) -> bytes:
    return b"".join((_BEFORE_ID, id, b',"error":', _encode(fault), b"}"))


def join(answers: list[bytes]) -> bytes:
    """The response to a batch; nothing when all of it were notifications."""
    return b"".join((b"[", b",".join(answers), b"]")) if answers else b""
