"""JSON-RPC with other nodes: requests to bytes, responses to results or refusals. No I/O.

A response that is invalid is refused as a whole; an error of one request is a refusal of that
request. Results stay text until their reader knows what they are.

Nodes and providers have no common codes, so an error is classified by its code where that is
certain, and by words otherwise; anything else is `ERROR`. The kind decides what happens next:
another block, another method, another endpoint, a pause.
"""

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from foreblock.errors import ErrorAnswer, RefusedAnswer
from foreblock.primitives import harmless
from foreblock.secret_urls import redact_urls


class RefusalKind(StrEnum):
    """Every kind; the value is the label under which it is counted."""

    # The exchange.
    UNREACHABLE = "unreachable"
    SERVER_FAILED = "server failed"
    FORBIDDEN = "forbidden"
    RATE_LIMITED = "rate limited"
    NOT_JSON = "not JSON"
    HTML = "HTML"
    TRUNCATED = "truncated"
    TOO_LONG = "too long"
    NOT_AN_ANSWER = "not an answer"
    WRONG_ID = "wrong id"
    UNANSWERED = "unanswered"
    # An error in place of a result.
    ERROR = "error"
    NO_METHOD = "no such method"
    NO_BLOCK = "no such block"
    NO_STATE = "no state of the block"
    TOO_LARGE = "request too large"
    REVERTED = "reverted"
    # A result that cannot be used.
    NULL = "null"
    WRONG_SHAPE = "wrong shape"
    BAD_HEX = "bad hex"
    WRONG_LENGTH = "wrong length"
    WRONG_KEY = "another key's answer"
    LONG_PROOF = "over-long proof"
    WRONG_CODE = "another code"
    WRONG_BLOCK = "another block"
    WRONG_CHAIN = "another chain"
    UNTRUE = "untrue"


# Kinds that have nothing to do with the request: a retry may succeed.
OF_THE_EXCHANGE: Final = frozenset(
    {
        RefusalKind.UNREACHABLE,
        RefusalKind.SERVER_FAILED,
        RefusalKind.RATE_LIMITED,
        RefusalKind.NOT_JSON,
        RefusalKind.HTML,
        RefusalKind.TRUNCATED,
    }
)
# Kinds after which the same endpoint may serve another request, or another block.
OF_THE_WAY: Final = frozenset(
    {RefusalKind.NO_METHOD, RefusalKind.TOO_LARGE, RefusalKind.REVERTED, RefusalKind.NO_STATE}
)
# Kinds that are not the endpoint's fault.
HARMLESS: Final = OF_THE_WAY | {RefusalKind.NO_BLOCK, RefusalKind.RATE_LIMITED}

_BY_CODE: Final = {
    -32601: RefusalKind.NO_METHOD,
    -32604: RefusalKind.NO_METHOD,
    -32001: RefusalKind.NO_BLOCK,
    3: RefusalKind.REVERTED,
    429: RefusalKind.RATE_LIMITED,
    -32029: RefusalKind.RATE_LIMITED,
    401: RefusalKind.FORBIDDEN,
}
_RATE_LIMITED: Final = (
    r"rate.?limit|too many requests|requests? (rate|count) exceeded|throughput|compute units|"
    r"capacity|quota|credits"
)
_NO_STATE: Final = (
    r"missing trie node|proof window|exceeds? maximum proof|distance to target block|"
    r"state .{0,40}(not available|unavailable|pruned|missing)|historical state|"
    r"old data not available|no longer kept|archive"
)
_NO_BLOCK: Final = (
    r"(header|block|hash)( for hash)? (was )?not found|unknown block|not canonical|"
    r"block .{0,80}not (found|available)|block number out of range|ahead of|"
    r"beyond current head|cannot query unfinalized"
)
_NO_METHOD: Final = (
    r"method .{0,80}(not|disabled)|(not |un)supported|not (implemented|whitelisted|available on)|"
    r"unknown method|does not exist"
)
_TOO_LARGE: Final = (
    r"too (large|many|big|long)|out of gas|gas (limit|required|cap)|intrinsic gas|"
    r"exceeds? .{0,40}(limit|max)|response size|batch (size|limit)"
)
# The first that is found in the text decides.
_BY_WORDS: Final = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (RefusalKind.RATE_LIMITED, _RATE_LIMITED),
        (RefusalKind.NO_STATE, _NO_STATE),
        (RefusalKind.NO_BLOCK, _NO_BLOCK),
        (RefusalKind.NO_METHOD, _NO_METHOD),
        (RefusalKind.REVERTED, "revert"),
        (RefusalKind.TOO_LARGE, _TOO_LARGE),
    )
)
_BYTES: Final = re.compile(r"0x([0-9a-fA-F]{2})*")
_BY_STATUS: Final[dict[int, RefusalKind]] = {
    HTTPStatus.TOO_MANY_REQUESTS: RefusalKind.RATE_LIMITED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: RefusalKind.TOO_LARGE,
    HTTPStatus.UNAUTHORIZED: RefusalKind.FORBIDDEN,
    HTTPStatus.PAYMENT_REQUIRED: RefusalKind.FORBIDDEN,
    HTTPStatus.FORBIDDEN: RefusalKind.FORBIDDEN,
}


def refuse(kind: RefusalKind, why: str) -> RefusedAnswer:
    """The refusal; of a foreign text one printable line is kept, without secrets of URLs."""
    return RefusedAnswer(kind.value, harmless(redact_urls(why)))


def of_error(code: int, message: str, data: object = None) -> RefusedAnswer:
    """The refusal that an error of JSON-RPC means; of its data only bytes are kept."""
    kind = _BY_CODE.get(code) or next(
        (kind for kind, words in _BY_WORDS if words.search(message)), RefusalKind.ERROR
    )
    refused = refuse(kind, f"{code}: {message}")
    output = data if isinstance(data, str) and _BYTES.fullmatch(data) else ""
    refused.said = ErrorAnswer(code, refused.why.removeprefix(f"{code}: "), output)
    return refused


def of_status(status: int) -> RefusedAnswer | None:
    """The refusal that a status of HTTP means by itself; None if the body decides."""
    kind = _BY_STATUS.get(status)
    if kind is None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = RefusalKind.SERVER_FAILED
    return None if kind is None else refuse(kind, f"HTTP {status}")


def retry_after(headers: Mapping[str, str], wall: float) -> float | None:
    """Seconds that the header names, itself or by a date; none without a usable one."""
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - wall)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


class _Error(Struct):
    code: int
    message: str
    data: Any = None


class _Envelope(Struct):
    jsonrpc: str
    id: int | None = None  # null in an error about the whole
    result: Raw | UnsetType = UNSET
    error: _Error | None = None


_one: Final = msgspec.json.Decoder(_Envelope)
_many: Final = msgspec.json.Decoder(list[_Envelope])

Call = tuple[str, Sequence[object]]  # method and parameters


def body_of(calls: Sequence[Call]) -> bytes:
    """The body with these requests, whose ids count from 1: an object, or a batch."""
    envelopes = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(calls, start=1)
    ]
    return msgspec.json.encode(envelopes[0] if len(envelopes) == 1 else envelopes)


Results = dict[int, Raw | RefusedAnswer]


def results(status: int, body: bytes, ids: Sequence[int]) -> Results:
    """The result or the refusal of each id; a refusal of the whole is raised.

    A single request has its response as an object, more of them as a list in any order. Where a
    response of a batch has the id of another, both are refused, and the rest is taken.
    """
    refusal = of_status(status)
    if refusal is not None:
        raise refusal
    found: Results = {}
    strange: RefusedAnswer | None = None
    for envelope in _envelopes(body, is_batch=len(ids) > 1):
        result = _result(envelope)
        if envelope.id is None and isinstance(result, RefusedAnswer):
            raise result  # of the whole
        if envelope.id is None or envelope.id not in ids or envelope.id in found:
            strange = refuse(RefusalKind.WRONG_ID, f"{envelope.id}")
            if len(ids) == 1:
                raise strange
            result = strange
        if envelope.id is not None:
            found[envelope.id] = result
    absent = strange or refuse(RefusalKind.UNANSWERED, "the batch has no answer to it")
    return {each: found.get(each, absent) for each in ids}


def _result(envelope: _Envelope) -> Raw | RefusedAnswer:
    if envelope.jsonrpc != "2.0":
        raise refuse(RefusalKind.NOT_AN_ANSWER, "not JSON-RPC 2.0")
    if envelope.error is not None:
        if envelope.result is not UNSET and not is_null(envelope.result):
            raise refuse(RefusalKind.NOT_AN_ANSWER, "both a result and an error")
        return of_error(envelope.error.code, envelope.error.message, envelope.error.data)
    if envelope.result is UNSET:
        raise refuse(RefusalKind.NOT_AN_ANSWER, "neither a result nor an error")
    return envelope.result


def is_null(result: Raw) -> bool:
    """Return True if a result is null."""
    return bytes(result).strip() == b"null"


def _envelopes(body: bytes, *, is_batch: bool) -> list[_Envelope]:
    start = body.lstrip()[:1]
    try:
        if is_batch and start != b"{":
            return _many.decode(body)
        return [_one.decode(body)]
    except msgspec.ValidationError as why:
        raise refuse(RefusalKind.NOT_AN_ANSWER, str(why)) from why
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        if start == b"<":
            raise refuse(RefusalKind.HTML, body[:200].decode("utf-8", "replace")) from why
        kind = RefusalKind.TRUNCATED if "truncated" in str(why) else RefusalKind.NOT_JSON
        raise refuse(kind, str(why)) from why
