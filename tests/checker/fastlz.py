"""The length of a transaction after FastLZ, level 1: the basis of L1 fees from Fjord on.

Computes only the length, by the procedure of the OP stack's specification (Fjord, L1 cost fees):
matches of three bytes or more within 8,191 bytes, found by a table of hashes.
"""

TABLE = 8192
WINDOW = 8192
LONGEST = 262
TAIL = 13  # bytes at the end that are never compared


def compressed_length(data: bytes) -> int:
    """The length in bytes."""
    table: dict[int, int] = {}
    limit = max(len(data) - TAIL, 0)
    anchor, at, size = 0, 2, 0
    while at < limit:
        key = _key(data, at)
        before, table[key] = table.get(key, 0), at
        if at - before >= WINDOW or data[before : before + 3] != data[at : at + 3]:
            at += 1
            continue
        if at + 1 >= limit:
            break  # the reference advances before it checks for the end of the data
        size += _literals(at - anchor)
        length = _compared(data, before + 3, at + 3, limit + 9)
        size += _match(length)
        at += length
        for _ in range(2):
            table[_key(data, at)] = at
            at += 1
        anchor = at
    return size + _literals(len(data) - anchor)


def _key(data: bytes, at: int) -> int:
    value = int.from_bytes(data[at : at + 3], "little")
    return (value * 2654435769 >> 19) & (TABLE - 1)


def _compared(data: bytes, before: int, at: int, bound: int) -> int:
    """The number of compared bytes, including the first difference."""
    count = 0
    while at < bound:
        count += 1
        if data[before] != data[at]:
            break
        before += 1
        at += 1
    return count


def _literals(count: int) -> int:
    whole, rest = divmod(count, 32)
    return 33 * whole + (rest + 1 if rest else 0)


def _match(length: int) -> int:
    whole, rest = divmod(length - 1, LONGEST)
    return 3 * whole + (3 if rest >= 6 else 2)
