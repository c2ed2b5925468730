"""RLP decoding of transactions. Encoding is in `rlp`."""

Item = bytes | list["Item"]


def decode(data: bytes) -> Item:
    """Decode one item; `ValueError` if malformed."""
    item, end = _item(data, 0)
    if end != len(data):
        raise ValueError("bytes after the RLP item")
    return item


def fields(data: bytes, count: int) -> list[Item]:
    """The items of a list of this length."""
    item = decode(data)
    if not isinstance(item, list) or len(item) != count:
        raise ValueError(f"no RLP list of {count} items")
    return item


def text(item: Item) -> bytes:
    """Require an item to be bytes."""
    if isinstance(item, list):
        raise ValueError("an RLP list where bytes belong")  # noqa: TRY004, the data is wrong
    return item


def number(item: Item) -> int:
    """Require an item to be a number without leading zeros."""
    found = text(item)
    if found[:1] == b"\0":
        raise ValueError("an RLP number with leading zeros")
    return int.from_bytes(found)


def _item(data: bytes, at: int) -> tuple[Item, int]:
    if at >= len(data):
        raise ValueError("an RLP item is cut short")
    first = data[at]
    if first < 0x80:
        return data[at : at + 1], at + 1
    start, end = _payload(data, at, first, 0x80 if first < 0xC0 else 0xC0)
    if first < 0xC0:
        return data[start:end], end
    items: list[Item] = []
    while start < end:
        item, start = _item(data, start)
        items.append(item)
    if start != end:
        raise ValueError("an RLP item reaches beyond its list")
    return items, end


def _payload(data: bytes, at: int, first: int, base: int) -> tuple[int, int]:
    """The start and end of the payload."""
    length, start = first - base, at + 1
    if length > 55:
        start += length - 55
        length = int.from_bytes(data[at + 1 : start])
    if start + length > len(data):
        raise ValueError("an RLP item is cut short")
    return start, start + length
