"""Accounts from a file: geth's allocation, the genesis that has it, or a state dump of anvil.

    geth      {"0xADDRESS": {"balance": …, "nonce": …, "code": …, "storage": {…}}, …}
    genesis   the same under `alloc`; the rest of the file is not read
    anvil     the same under `accounts`, as anvil --dump-state writes it; blocks and transactions
              of the dump are not read

anvil_dumpState gives the last one as gzip in hex; a file may hold that, too, with or without
the hex. Reading is strict: `BadGenesis` names the place.
"""

import zlib
from typing import Final

from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.genesis_file import GenesisAccount, read_accounts
from foreblock.ledger.genesis.json_value import JsonValue

_GZIP: Final = b"\x1f\x8b"
_IN_HEX: Final = b"0x1f8b"
_WINDOW: Final = 16 + zlib.MAX_WBITS  # zlib: a gzip stream
MOST_BYTES: Final = 1 << 30  # of the JSON text


def read_allocation(data: bytes, most: int = MOST_BYTES) -> dict[bytes, GenesisAccount]:
    """The accounts in the bytes of a file, by address; `most` bytes of JSON, once unpacked."""
    root = JsonValue.parse(_text(data, most), BadGenesis)
    for key in ("alloc", "accounts"):
        member = root.get(key)
        if member is not None:
            return read_accounts(member)
    return read_accounts(root)


def _text(data: bytes, most: int) -> bytes:
    if data[: len(_IN_HEX)].lower() == _IN_HEX:
        try:
            data = bytes.fromhex(data[2:].decode("ascii"))
        except ValueError:
            raise BadGenesis("alloc", "expected gzip in hex") from None
    if not data.startswith(_GZIP):
        return data
    stream = zlib.decompressobj(_WINDOW)
    try:
        text = stream.decompress(data, most)
    except zlib.error as why:
        raise BadGenesis("alloc", f"not gzip: {why}") from None
    if not stream.eof:
        is_large = bool(stream.unconsumed_tail)
        raise BadGenesis("alloc", f"larger than {most} bytes" if is_large else "it ends too early")
    return text
