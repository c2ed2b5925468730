"""Call data and return data of Solidity functions, by the shape of the values.

A number is a word (also addresses and booleans), `bytes` are bytes or a string, a list is an array,
a tuple a struct. For decoding, the shapes have types instead of values: `int`, `bytes`, `[shape]`,
`(shape, …)`.
"""

from typing import Any

from foreblock._engine import keccak256

WORD = 32


def call_data(signature: str, *values: Any) -> bytes:  # noqa: ANN401, any shape
    return keccak256(signature.encode())[:4] + encode(values)


def decode(shape: Any, data: bytes) -> Any:  # noqa: ANN401, as above
    """Decode `data` to one value, or to a tuple of values."""
    if isinstance(shape, tuple):
        return _tuple(shape, data, 0)
    return _tuple((shape,), data, 0)[0]


def encode(values: tuple[Any, ...]) -> bytes:
    size = sum(WORD if _dynamic(value) else len(_encoded(value)) for value in values)
    heads, tails = b"", b""
    for value in values:
        if _dynamic(value):
            heads += (size + len(tails)).to_bytes(WORD)
            tails += _encoded(value)
        else:
            heads += _encoded(value)
    return heads + tails


def _encoded(value: Any) -> bytes:  # noqa: ANN401, as above
    match value:
        case int():
            return value.to_bytes(WORD)
        case bytes():
            return len(value).to_bytes(WORD) + value + bytes(-len(value) % WORD)
        case list():
            return len(value).to_bytes(WORD) + encode(tuple(value))
        case tuple():
            return encode(value)
        case _:
            raise AssertionError(value)


def _dynamic(value: Any) -> bool:  # noqa: ANN401, as above
    return isinstance(value, bytes | list) or (
        isinstance(value, tuple) and any(map(_dynamic, value))
    )


def _dynamic_shape(shape: Any) -> bool:  # noqa: ANN401, as above
    # all structs here have a dynamic member
    return shape is bytes or isinstance(shape, list | tuple)


def _tuple(shapes: tuple[Any, ...], data: bytes, start: int) -> tuple[Any, ...]:
    return tuple(
        _value(shape, data, start + _word(data, start + at * WORD))
        if _dynamic_shape(shape)
        else _word(data, start + at * WORD)
        for at, shape in enumerate(shapes)
    )


def _value(shape: Any, data: bytes, start: int) -> Any:  # noqa: ANN401, as above
    if isinstance(shape, tuple):
        return _tuple(shape, data, start)
    length = _word(data, start)
    if shape is bytes:
        content = data[start + WORD : start + WORD + length]
        assert len(content) == length
        return content
    return list(_tuple((shape[0],) * length, data, start + WORD))


def _word(data: bytes, at: int) -> int:
    word = data[at : at + WORD]
    assert len(word) == WORD, f"{len(data)} bytes, none at {at}"
    return int.from_bytes(word)
