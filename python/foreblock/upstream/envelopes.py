"""Bodies of JSON-RPC: requests to bytes, and the answer to the result of each. No I/O.

An answer that is not one is refused as a whole; an error of one request is a refusal of that
request. Results stay text: `answers` knows what they are.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from foreblock.errors import RefusedAnswer
from foreblock.upstream.refusals import RefusalKind, of_error, of_status, refuse


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

    A single request has its answer as an object, more of them as a list in any order. Where an
    answer of a batch has the id of another, both are refused, and the rest is taken.
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
    """Whether a result is null."""
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
