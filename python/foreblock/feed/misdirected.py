"""Answers to those who speak JSON-RPC to a feed: an error that names the right address. No I/O.

8546 is the usual port of JSON-RPC over WebSocket, and here that of a feed. Without an answer a
client waits for its timeout, or for ever.
"""

from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

RPC_PATHS: Final = frozenset({"", "/", "/eth"})  # where JSON-RPC is served elsewhere
_POST: Final = b"POST "
_NO_METHOD: Final = -32601
_NULL: Final = Raw(b"null")


class _Request(Struct):
    """A request, as far as it has to be known."""

    method: str | UnsetType = UNSET
    id: Raw = _NULL


class _Fault(Struct):
    code: int
    message: str


class _Reply(Struct):
    id: Raw
    error: _Fault
    jsonrpc: str = "2.0"


_decode = msgspec.json.Decoder(_Request | list[_Request]).decode
_encode = msgspec.json.Encoder().encode


def reason(address: str) -> str:
    """Where JSON-RPC is; `address` is HOST:PORT, or empty where there is none."""
    if not address:
        return "this is a feed of flashblocks; it has no JSON-RPC"
    return f"this is a feed of flashblocks; JSON-RPC is at http://{address} and ws://{address}"


def answer(message: bytes | str, address: str) -> bytes | None:
    """The answer to a request or a batch; none if the message is neither."""
    try:
        asked = _decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    fault = _Fault(_NO_METHOD, reason(address))
    if isinstance(asked, _Request):
        return None if asked.method is UNSET else _encode(_Reply(asked.id, fault))
    return _encode([_Reply(each.id, fault) for each in asked]) if asked else None


def http_answer(data: bytes, address: str) -> bytes | None:
    """The answer to the first bytes of a POST; none if they are not of one.

    Its status is 200, as for every error of JSON-RPC: clients show what the text says.
    """
    if not data.startswith(_POST):
        return None
    body = answer(data.partition(b"\r\n\r\n")[2] or b"{}", address)
    if body is None:
        body = _encode(_Reply(_NULL, _Fault(_NO_METHOD, reason(address))))
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b"
    ) % (len(body), body)
