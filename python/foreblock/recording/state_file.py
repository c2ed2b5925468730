"""The file of recorded state: blocks, trie nodes and codes, one line of JSON each.

The first line identifies the format and names the anchor: the block before the first that was
recorded. Each further line has one of these members:

    header    a block without whole transactions, as a node answers: the anchor, or one before it
    block     a block with whole transactions: those of the recording, in order
    nodes     trie nodes in hex, of proofs against the state root of the anchor
    codes     codes in hex

Nodes and codes are found by their hashes, and blocks by the hashes of their headers, so nothing
in the file has to be believed but the hash of the anchor.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, Final

import msgspec

from foreblock.errors import BadRecording
from foreblock.primitives import format_data, parse_data, parse_hash
from foreblock.types import Header, keccak256
from foreblock.upstream.block_json import rebuild_header

FORMAT: Final = "foreblock state recording"
VERSION: Final = 1
PORTION: Final = 256  # nodes or codes of a line
_LONGEST_LINE: Final = 256 << 20

JsonBlock = dict[str, Any]


class _Head(msgspec.Struct):
    format: str
    version: int
    chain_id: int
    anchor: str
    began: str = ""  # the date, for people


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    header: JsonBlock | None = None
    block: JsonBlock | None = None
    nodes: list[str] | None = None
    codes: list[str] | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode


@dataclass(slots=True)
class RecordedState:
    """The state that executing some blocks after an anchor needs."""

    chain_id: int
    anchor: bytes  # its hash
    headers: dict[bytes, JsonBlock] = field(default_factory=dict)  # the anchor and before, by hash
    blocks: dict[bytes, JsonBlock] = field(default_factory=dict)  # by hash, in order
    nodes: dict[bytes, bytes] = field(default_factory=dict)  # by hash
    codes: dict[bytes, bytes] = field(default_factory=dict)  # by hash

    def add_nodes(self, nodes: Iterable[bytes]) -> None:
        """Take trie nodes."""
        self.nodes |= {keccak256(node): node for node in nodes}

    def add_codes(self, codes: Iterable[bytes]) -> None:
        """Take codes."""
        self.codes |= {keccak256(code): code for code in codes}

    @property
    def anchor_header(self) -> Header:
        """The header of the anchor."""
        return rebuild_header(self.headers[self.anchor])


def write_state(state: RecordedState, file: BinaryIO, began: str = "") -> None:
    """Write all of it; equal states give equal files."""
    head = _Head(FORMAT, VERSION, state.chain_id, format_data(state.anchor), began)
    file.write(_encode(head) + b"\n")
    lines = [_Line(header=each) for each in state.headers.values()]
    lines += [_Line(block=each) for each in state.blocks.values()]
    lines += [_Line(nodes=some) for some in _portions(state.nodes)]
    lines += [_Line(codes=some) for some in _portions(state.codes)]
    file.writelines(_encode(line) + b"\n" for line in lines)


def read_state(name: str, file: BinaryIO) -> RecordedState:
    """Read a file. Raises `BadRecording`."""
    state = _read_head(name, file.readline(_LONGEST_LINE))
    number = 1
    while text := file.readline(_LONGEST_LINE):
        number += 1
        try:
            _apply_line(state, _decode(text))
        except (ValueError, msgspec.DecodeError) as why:
            raise BadRecording(name, number, str(why)) from why
    if state.anchor not in state.headers:
        raise BadRecording(name, number, "there is no header of the anchor")
    return state


def _read_head(name: str, text: bytes) -> RecordedState:
    try:
        head = _decode_head(text)
        if head.format == FORMAT and head.version == VERSION:
            return RecordedState(head.chain_id, parse_hash(head.anchor))
    except (ValueError, msgspec.DecodeError):
        pass
    raise BadRecording(name, 1, "not a recording of state")


def _apply_line(state: RecordedState, line: _Line) -> None:
    if line.header is not None:
        state.headers[_hash_of(line.header)] = line.header
    if line.block is not None:
        state.blocks[_hash_of(line.block)] = line.block
    state.add_nodes(map(parse_data, line.nodes or ()))
    state.add_codes(map(parse_data, line.codes or ()))


def _hash_of(block: JsonBlock) -> bytes:
    """The hash of a block, computed from its header."""
    return rebuild_header(block).hash


def _portions(values: Mapping[bytes, bytes]) -> Iterator[list[str]]:
    """The values in the order of their hashes, some at a time."""
    ordered = iter(sorted(values.items()))
    while some := [format_data(value) for _, value in islice(ordered, PORTION)]:
        yield some
