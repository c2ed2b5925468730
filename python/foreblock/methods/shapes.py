"""Blocks and transactions as JSON text.

A transaction is written once, by the engine, without the hash of its block and without
braces: a *fragment*. A block is put together by joining fragments, the hash being the
separator, because the hash of a block in progress changes with every flashblock while
its transactions stay. Fields of later forks and of other transaction types are absent.
"""

from binascii import hexlify
from collections.abc import Sequence

from foreblock.types import Withdrawal

DEPOSIT = 0x7E


def write_quantity(number: int) -> bytes:
    """A number, quoted."""
    return b'"0x%x"' % number


def write_data(value: bytes) -> bytes:
    """Bytes, quoted."""
    return b'"0x%b"' % hexlify(value)


def array(items: Sequence[bytes]) -> bytes:
    """An array of texts; joined, since formatting would copy long ones byte by byte."""
    return b"".join((b"[", b",".join(items), b"]"))


def _object(fields: dict[bytes, bytes]) -> bytes:
    return b"{%b}" % members(fields)


def members(fields: dict[bytes, bytes]) -> bytes:
    """The members of an object, without braces."""
    return b",".join([b'"%b":%b' % field for field in fields.items()])


def withdrawal(value: Withdrawal) -> bytes:
    index, validator, address, amount = value
    return _object(
        {
            b"index": write_quantity(index),
            b"validatorIndex": write_quantity(validator),
            b"address": write_data(address),
            b"amount": write_quantity(amount),
        }
    )


def whole_transaction(block_hash: bytes, fragment: bytes) -> bytes:
    """A transaction by itself."""
    return b'{"blockHash":"0x%b",%b}' % (hexlify(block_hash), fragment)


def join_fragments(block_hash: bytes, fragments: Sequence[bytes]) -> bytes:
    """The `transactions` member of a block with full transactions."""
    if not fragments:
        return b"[]"
    opening = b'{"blockHash":"0x%b",' % hexlify(block_hash)
    separator = b"}," + opening
    return b"".join((b"[", opening, separator.join(fragments), b"}]"))
