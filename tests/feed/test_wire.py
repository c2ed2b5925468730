import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.wire import compress, decompress

MIB = 1024 * 1024


@given(st.binary(max_size=5_000), st.integers(0, 11))
def test_what_was_compressed_comes_back(data: bytes, quality: int) -> None:
    assert decompress(compress(data, quality), 5_000) == data


def test_data_of_many_pieces_comes_back() -> None:
    data = random.Random(1).randbytes(3 * MIB)
    assert decompress(compress(data, 1), len(data)) == data


def test_one_byte_above_the_limit_is_too_much() -> None:
    stream = compress(bytes(1_000), 5)
    assert decompress(stream, 1_000) == bytes(1_000)
    with pytest.raises(ValueError, match="expands to more than 999 bytes"):
        decompress(stream, 999)


def test_a_bomb_takes_no_more_memory_than_the_limit_allows() -> None:
    bomb = compress(bytes(256 * MIB), 1)
    assert len(bomb) < MIB
    tracemalloc.start()
    with pytest.raises(ValueError, match="expands to more than"):
        decompress(bomb, MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * MIB


@pytest.mark.parametrize("cut", [1, 2, 10])
def test_a_stream_that_ends_too_early_is_refused(cut: int) -> None:
    stream = compress(random.Random(2).randbytes(1_000), 5)
    with pytest.raises(ValueError, match="ends too early"):
        decompress(stream[:-cut], MIB)


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="ends too early"):
        decompress(b"", MIB)


def test_bytes_after_the_stream_are_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        decompress(compress(b"text", 5) + b"more", MIB)
