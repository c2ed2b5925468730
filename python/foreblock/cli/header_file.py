"""The file of a header, for `foreblock import --state`: JSON as nodes answer, or RLP.

JSON is a block or header as `eth_getBlockByNumber` gives it, the answer around it, or a list of
these. RLP is one header or block after the other, as bytes or as hex digits. Several are those
of consecutive blocks; the last is the one that is meant.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.errors import BadState, Undecodable
from foreblock.ledger.importing.chain_files import read_items
from foreblock.primitives import format_data, parse_hash, parse_quantity
from foreblock.types import Header, decode_block, decode_header
from foreblock.upstream.block_json import rebuild_header

LONGEST: Final = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class GivenHeaders:
    """Headers of consecutive blocks, and the total difficulty of the last if it is stated."""

    headers: Sequence[Header]
    total_difficulty: int | None = None


def read_header_file(path: Path) -> GivenHeaders:
    """The headers in a file. Raises `BadState`, `OSError`."""
    with path.open("rb") as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise BadState(0, f"{path} is longer than {LONGEST} bytes")
    text = content.strip()
    try:
        if text.startswith((b"{", b"[")):
            found = _of_json(json.loads(text))
        else:
            found = _of_rlp(_bytes(content, text))
    except (ValueError, Undecodable) as why:
        raise BadState(0, f"{path}: {why}") from why
    if not found.headers:
        raise BadState(0, f"{path} has no header")
    return found


def _of_json(value: object) -> GivenHeaders:
    blocks = [_result(each) for each in (value if isinstance(value, list) else [value])]
    headers = [_header(each) for each in blocks]
    stated = blocks[-1].get("totalDifficulty") if blocks else None
    return GivenHeaders(headers, None if stated is None else parse_quantity(stated))


def _result(value: object) -> dict[str, object]:
    """The block, without the answer around it."""
    if isinstance(value, dict) and "result" in value and "number" not in value:
        value = value["result"]
    if not isinstance(value, dict):
        raise ValueError("expected a block or a header as an object")  # noqa: TRY004, as below
    return value


def _header(block: dict[str, object]) -> Header:
    header = rebuild_header(block)
    stated = block.get("hash")
    if stated is not None and parse_hash(stated) != header.hash:
        found = format_data(header.hash)
        raise ValueError(f"block {header.number} has the hash {found}, the file says {stated}")
    return header


def _bytes(content: bytes, text: bytes) -> bytes:
    return bytes.fromhex(text[2:].decode("ascii")) if text.startswith(b"0x") else content


def _of_rlp(data: bytes) -> GivenHeaders:
    return GivenHeaders([_decoded(item.data) for item in read_items(io.BytesIO(data))])


def _decoded(item: bytes) -> Header:
    """A header; a block is a list whose first item is a list, and has one in it."""
    try:
        return decode_header(item)
    except Undecodable as why:
        try:
            return decode_block(item, 0)[0].header
        except Undecodable:
            raise why from None
