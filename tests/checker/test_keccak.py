import hashlib
import random

import pytest

from checker.keccak import SHA3, keccak256, keccak256_each


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # Keccak team, known answers of Keccak[c=512].
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"\xcc", "eead6dbfc7340a56caedc044696a168870549a6a7f6f56961e84a54bd9970b8a"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_known_answers(message: bytes, expected: str) -> None:
    assert keccak256(message).hex() == expected


def test_the_permutation_is_that_of_sha3() -> None:
    """All lengths up to three portions, in one go: only the padding is another."""
    messages = [random.Random(length).randbytes(length) for length in range(410)]
    expected = [hashlib.sha3_256(message).digest() for message in messages]
    assert keccak256_each(messages, SHA3) == expected


def test_many_at_once_are_the_same_as_each_alone() -> None:
    messages = [bytes([length]) * length for length in (0, 135, 136, 137, 5, 5)]
    assert keccak256_each(messages) == [keccak256(message) for message in messages]
    assert keccak256_each([]) == []
