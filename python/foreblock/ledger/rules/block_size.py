"""How long the encoding of a block is, from the lengths of its parts.

What is encoded is the RLP list of the header, the list of transactions, that of uncles, and
from Shanghai on that of withdrawals. A transaction of a type stands in it as a string, a
legacy one as the list that it is.
"""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Header, Withdrawal

FIRST_LIST: Final = 0xC0  # bytes from here on begin a list
SHORT: Final = 55  # payloads up to this length have a prefix of one byte


def transaction_size(raw: bytes) -> int:
    """The length of a transaction in a block; `raw` is it as in its trie."""
    return len(raw) if raw[0] >= FIRST_LIST else _with_prefix(len(raw))


def block_size(
    header: Header,
    transactions: int,
    uncles: Sequence[Header],
    withdrawals: Sequence[Withdrawal] | None,
) -> int:
    """The length of a block's encoding, given that of its transactions together."""
    size = header.size + _with_prefix(transactions)
    size += _with_prefix(sum(uncle.size for uncle in uncles))
    if withdrawals is not None:
        size += _with_prefix(sum(map(_withdrawal_size, withdrawals)))
    return _with_prefix(size)


def list_prefix(length: int) -> bytes:
    """What a list begins with whose items together are so long."""
    if length <= SHORT:
        return bytes((FIRST_LIST + length,))
    size = (length.bit_length() + 7) // 8
    return bytes((FIRST_LIST + SHORT + size,)) + length.to_bytes(size)


def _withdrawal_size(withdrawal: Withdrawal) -> int:
    numbers = (withdrawal.index, withdrawal.validator_index, withdrawal.amount)
    return _with_prefix(sum(map(_number_size, numbers)) + _with_prefix(len(withdrawal.address)))


def _number_size(number: int) -> int:
    """Numbers below 128 stand for themselves; none here needs a longer prefix."""
    return 1 if number < 0x80 else 1 + (number.bit_length() + 7) // 8


def _with_prefix(length: int) -> int:
    """The length of a list, or of a string that is no single small byte, with its prefix."""
    if length <= SHORT:
        return 1 + length
    return 1 + (length.bit_length() + 7) // 8 + length
