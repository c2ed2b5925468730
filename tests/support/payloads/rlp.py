"""RLP in a few lines, for comparison with other encoders."""


def encode(value: bytes | int | list[bytes]) -> bytes:
    """Encode bytes or a number as a string, and a list of encoded items as a list."""
    if isinstance(value, list):
        return _with_length(b"".join(value), 0xC0)
    if isinstance(value, int):
        value = value.to_bytes((value.bit_length() + 7) // 8)
    if len(value) == 1 and value[0] < 0x80:
        return value
    return _with_length(value, 0x80)


def _with_length(payload: bytes, base: int) -> bytes:
    if len(payload) < 56:
        return bytes([base + len(payload)]) + payload
    length = len(payload).to_bytes((len(payload).bit_length() + 7) // 8)
    return bytes([base + 55 + len(length)]) + length + payload
