import pytest

from checker.keccak import keccak256


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
