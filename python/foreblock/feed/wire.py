"""The outer format of a feed: its URL, and messages of JSON or brotli. No I/O.

    /ws                        text frames of JSON
    /ws?compression=brotli     binary frames of brotli
    /ws?from=<block>-<index>   first what is kept of the current job, from that flashblock on

Parameters may be combined; unknown ones are ignored. `from` is an extension of foreblock:
clients send it only to a server whose `Server` header names foreblock.

A payload is a JSON object or a brotli stream of one; the opcode of its frame does not matter.
Unknown keys are skipped at every level without being built, so that neither old metadata nor
a hostile message costs more than its size. The sender decides how far a stream expands, so it
is expanded in pieces up to a limit. `messages` reads the meaning of the fields.
"""

import re
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import brotli  # type: ignore[import-untyped]
import msgspec
from msgspec import Struct

from foreblock.errors import InvalidArgument, MalformedFlashblock
from foreblock.primitives import parse_number
from foreblock.types import FlashblockId

NOTHING: Final = msgspec.Raw()

# The library grows its output from this size on, so one step may be twice as large.
_PIECE_BYTES: Final = 64 * 1024
# How msgspec ends a message about a value inside a document.
_PATH: Final = re.compile(r" - at `\$\.?([^`]+)`$")


class MessageLimits(Struct, frozen=True):
    """The largest messages to read, in bytes; real ones have about ten thousand."""

    compressed: int = 4 * 1024 * 1024
    message: int = 16 * 1024 * 1024
    # Quotation marks, two for each text: decoded texts take many times their size.
    quotes: int = 1_000_000


class WireBase(msgspec.Struct):
    """The inputs of a header."""

    parent_hash: str | None = None
    parent_beacon_block_root: str | None = None
    prev_randao: str | None = None
    fee_recipient: str | None = None
    block_number: str | None = None
    gas_limit: str | None = None
    timestamp: str | None = None
    extra_data: str | None = None
    base_fee_per_gas: str | None = None


class WireDiff(msgspec.Struct):
    """The changes of a flashblock."""

    state_root: str | None = None
    receipts_root: str | None = None
    logs_bloom: str | None = None
    gas_used: str | None = None
    block_hash: str | None = None
    transactions: list[str] | None = None
    withdrawals_root: str | None = None
    blob_gas_used: str | None = None
    post_exec_tx: msgspec.Raw = NOTHING  # no feed sends it yet; read if it is bytes


class WireMetadata(msgspec.Struct):
    """Reliable metadata, and the unreliable part as raw JSON (`claims`)."""

    block_number: int | None = None
    prev_flashblock_id: str | None = None
    receipts: msgspec.Raw = NOTHING
    new_account_balances: msgspec.Raw = NOTHING
    foreblock: msgspec.Raw = NOTHING  # an extension of dev chains (`claims`)


class WireMessage(msgspec.Struct):
    """A message."""

    payload_id: str | None = None
    index: int | None = None
    base: WireBase | None = None
    diff: WireDiff | None = None
    metadata: WireMetadata | None = None


_decoder: Final = msgspec.json.Decoder(WireMessage)


def read_message(data: bytes, limits: MessageLimits) -> WireMessage:
    """Decode the payload of one frame. Raises `MalformedFlashblock`."""
    text = text_of(data, limits)
    if text.count(b'"') > limits.quotes:
        raise MalformedFlashblock("message", f"has more than {limits.quotes // 2} texts")
    return _parse(text)


def text_of(data: bytes, limits: MessageLimits) -> bytes:
    """The JSON in the payload of one frame, decompressed if necessary."""
    if _is_json_object(data):
        if len(data) > limits.message:
            raise MalformedFlashblock("message", f"has more than {limits.message} bytes")
        return data
    if len(data) > limits.compressed:
        raise MalformedFlashblock("message", f"has more than {limits.compressed} bytes")
    try:
        return decompress(data, limits.message)
    except ValueError as why:
        raise MalformedFlashblock("message", str(why)) from why


def _is_json_object(data: bytes) -> bool:
    """Return whether this is JSON; a brotli stream may begin with a brace too."""
    if not data.lstrip(b" \t\r\n").startswith(b"{"):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse(text: bytes) -> WireMessage:
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError as why:
        place = _PATH.search(str(why))
        field = place[1] if place else "message"
        raise MalformedFlashblock(field, _PATH.sub("", str(why))) from why
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as why:
        raise MalformedFlashblock("message", f"not JSON: {why}") from why


def compress(data: bytes, quality: int) -> bytes:
    compressed: bytes = brotli.compress(data, quality=quality)
    return compressed


def decompress(data: bytes, limit: int) -> bytes:
    """Expand a brotli stream. Raises `ValueError` if it is invalid or exceeds `limit`."""
    decompressor = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    while not decompressor.is_finished():
        piece = _next_piece(decompressor, b"" if pieces else data)
        size += len(piece)
        if size > limit:
            raise ValueError(f"expands to more than {limit} bytes")
        if not piece and not decompressor.is_finished():
            raise ValueError("the brotli stream ends too early")
        pieces.append(piece)
    return b"".join(pieces)


def _next_piece(decompressor: "brotli.Decompressor", data: bytes) -> bytes:
    try:
        piece: bytes = decompressor.process(data, output_buffer_limit=_PIECE_BYTES)
    except brotli.error as why:
        raise ValueError("neither a JSON object nor a brotli stream") from why
    return piece


OURS: Final = "foreblock"  # in the header `Server` of our feeds
PATH: Final = "/ws"
_FROM: Final = "from"
_MOST_PARAMETERS: Final = 16
_ID: Final = re.compile(r"(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})", re.ASCII)


def check_url(url: str) -> None:
    """Raise `InvalidArgument` unless this is the URL of a WebSocket."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
        if usable:
            assert parts.hostname is not None
            parts.hostname.encode("idna")
    except ValueError as why:
        raise InvalidArgument(f"{url!r} is not a URL: {why}") from why
    if not usable or parts.fragment:
        raise InvalidArgument(f"{url!r} is not a URL of the form ws://HOST:PORT/PATH")


def has_start(url: str) -> bool:
    """Return whether a URL already has a `from`."""
    return any(name == _FROM for name, _ in parse_qsl(urlsplit(url).query))


def resume_after(url: str, after: FlashblockId | None) -> str:
    """The URL that asks for the flashblocks after this one, or for all that are kept."""
    if has_start(url):
        return url
    wanted = format_flashblock_id(start_after(after))
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), (_FROM, wanted)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def start_after(after: FlashblockId | None) -> FlashblockId:
    """The first flashblock to ask for: the one after this one, or all that are kept."""
    return FlashblockId(0, 0) if after is None else replace(after, index=after.index + 1)


class Subscription(Struct, frozen=True):
    """The encoding that a client wants, and the flashblock to start at."""

    brotli: bool
    since: FlashblockId | None


class Refusal(Struct, frozen=True):
    """An HTTP answer instead of a connection."""

    status: HTTPStatus
    text: str


def parse_target(target: str) -> Subscription | Refusal:
    """Read the target of a request."""
    try:
        parts = urlsplit(target)
        parameters = dict(
            parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
        )
    except ValueError as why:
        return Refusal(HTTPStatus.BAD_REQUEST, f"bad request target: {why}")
    if parts.path != PATH:
        return Refusal(HTTPStatus.NOT_FOUND, f"the feed is at {PATH}")
    compression = parameters.get("compression", "none")
    if compression not in {"none", "brotli"}:
        return Refusal(HTTPStatus.BAD_REQUEST, "compression is brotli or none")
    try:
        since = parse_flashblock_id(parameters["from"]) if "from" in parameters else None
    except ValueError as why:
        return Refusal(HTTPStatus.BAD_REQUEST, f"from: {why}")
    return Subscription(compression == "brotli", since)


def parse_flashblock_id(text: str) -> FlashblockId:
    """Read `<block>-<index>`, both decimal, as in ``7-3``. Raises `ValueError`."""
    found = _ID.fullmatch(text)
    if not found:
        raise ValueError("expected <block>-<index>")
    return FlashblockId(parse_number(found[1], 64), parse_number(found[2], 64))


def format_flashblock_id(flashblock: FlashblockId) -> str:
    return f"{flashblock.block_number}-{flashblock.index}"
