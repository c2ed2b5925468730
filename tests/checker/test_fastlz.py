import random

from checker.fastlz import compressed_length
from foreblock._engine import estimated_compressed_size
from support.each_case import each_case

# A call recorded in the tests of op-geth and op-revm.
CALL = bytes.fromhex(
    "02f901550a758302df1483be21b88304743f94f80e51afb613d764fa61751affd3313c190a86bb870151bd62fd12ad"
    "b8e41ef24f3f000000000000000000000000000000000000000000000000000000000000006e000000000000000000"
    "000000af88d065e77c8cc2239327c5edb3a432268e5831000000000000000000000000000000000000000000000000"
    "000000000003c1e5000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000a000000000000000000000000000000000000000"
    "000000000000000000000000148c89ed219d02f1a5be012c689b4f5b731827bebe000000000000000000000000c001"
    "a033fd89cb37c31b2cba46b6466e040c61fc9b2a3675a7f5f493ebd5ad77c497f8a07cdf65680e238392693019b409"
    "2f610222e71b7cec06449cb922b93b6a12744e"
)


@each_case(
    ("data", "expected"),
    [
        (b"", 0),
        (b"\x2a" * 1000, 21),
        (bytes.fromhex("facade"), 4),
        (bytes(100), 12),
        (bytes(range(256)), 264),
        (CALL, 202),
    ],
)
def test_published_lengths(data: bytes, expected: int) -> None:
    assert compressed_length(data) == expected


def test_lengths_are_those_of_op_revm() -> None:
    source = random.Random(1)
    for _ in range(300):
        data = bytes(source.choices(range(source.choice([2, 5, 256])), k=source.randrange(700)))
        expected = max(100_000_000, 836_500 * compressed_length(data) - 42_585_600)
        assert estimated_compressed_size(data) == expected, data.hex()
