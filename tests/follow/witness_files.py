"""Real blocks with their witnesses from `../shared/real-blocks`.

A file has the header of the block's parent, the block's transactions, its expected hash, and trie
nodes and codes by hash. The header of a block is in the file of the next one; those of the last
blocks are in `real_headers.json`, computed once, and verified by their hashes.
"""

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from follow.transaction_json import transaction_json
from foreblock._engine import keccak256
from support.payloads import rlp
from support.payloads.headers import FIELDS, NUMBERS

CHECKOUT = Path(__file__).resolve().parents[2]
HEADERS = Path(__file__).with_name("real_headers.json")


def real_blocks() -> Path:
    """The folder; tests are skipped without it."""
    named = os.environ.get("FOREBLOCK_REAL_BLOCKS")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "real-blocks"
    if not list(folder.glob("*.json.gz")):
        pytest.skip(f"no real blocks at {folder}; FOREBLOCK_REAL_BLOCKS names another folder")
    return folder


class Body(NamedTuple):
    """The transactions of a block."""

    raws: list[bytes]
    hashes: list[bytes]


class Witnesses:
    """The contents of the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.preimages: dict[bytes, bytes] = {}
        self.headers: dict[bytes, dict[str, Any]] = {}  # by block hash
        self.bodies: dict[bytes, Body] = {}
        self.own: dict[bytes, list[bytes]] = {}  # preimages of one block, by its hash
        self.chain: dict[str, Any] = {}
        for path in sorted(folder.glob("*.json.gz")):
            self._read(json.loads(gzip.decompress(path.read_bytes())))
        for name, header in json.loads(HEADERS.read_text("utf-8")).items():
            if data(name) in self.bodies:
                self._add_header(data(name), header)
        self.numbers = {int(each["number"], 16): key for key, each in self.headers.items()}

    def _read(self, file: dict[str, Any]) -> None:
        found = {data(key): data(value) for key, value in file["preimages"].items()}
        self.preimages |= found
        self.chain = file["chain"]
        parent = file["parent_header"]
        self._add_header(header_hash(parent), parent)
        expected = data(file["expected_block_hash"])
        raws = [data(each) for each in file["executing_payload"]["transactions"]]
        self.bodies[expected] = Body(raws, list(map(keccak256, raws)))
        self.own[expected] = list(found.values())

    def _add_header(self, hash: bytes, header: dict[str, Any]) -> None:
        if header_hash(header) != hash:
            raise ValueError(f"the header of block {header['number']} has another hash")
        self.headers[hash] = header

    def block(self, hash: bytes, *, full: bool) -> dict[str, Any] | None:
        """The object of a block; without transactions if no file has them."""
        header = self.headers.get(hash)
        if header is None:
            return None
        block: dict[str, Any] = {**header, "hash": "0x" + hash.hex(), "uncles": [],
                                 "withdrawals": [], "transactions": []}  # fmt: skip
        body = self.bodies.get(hash)
        if body is None:
            return block
        shown: list[Any] = ["0x" + each.hex() for each in body.hashes]
        if full:
            pairs = enumerate(zip(body.raws, body.hashes, strict=True))
            shown = [transaction_json(raw, digest, block, at) for at, (raw, digest) in pairs]
        return block | {"transactions": shown}


@cache
def witnesses(folder: Path) -> Witnesses:
    """The contents of a folder, read once."""
    return Witnesses(folder)


def header_hash(header: dict[str, Any]) -> bytes:
    """The hash of a block with this header."""
    items = [
        rlp.encode(int(header[name], 16) if name in NUMBERS else data(header[name]))
        for name in FIELDS
        if name in header
    ]
    return keccak256(rlp.encode(items))


def data(text: str) -> bytes:
    """Bytes of hex."""
    return bytes.fromhex(text[2:])
