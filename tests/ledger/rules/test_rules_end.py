"""Which block ends the rules that this version knows, and what it ends with."""

from foreblock.ledger.rules.profile import RulesEnd, diverged, rules_end, unknown_type
from support.each_case import each_case

LEGACY, FEES, DEPOSIT, UNKNOWN = b"\xc0", b"\x02\xc0", b"\x7e\xc0", b"\x7d\xc0"


@each_case(
    ("timestamp", "transactions", "unsupported", "why"),
    [
        (99, [LEGACY, FEES, DEPOSIT], {}, None),
        (99, [], {"lagoon": 100}, None),
        (100, [], {"lagoon": 100}, "fork lagoon"),
        (250, [], {"later": 200, "lagoon": 100}, "fork lagoon"),
        (99, [FEES, UNKNOWN, UNKNOWN], {"lagoon": 100}, "transaction 1 has the type 0x7d"),
        (100, [UNKNOWN], {"lagoon": 100}, "fork lagoon"),
    ],
)
def test_block_ends_the_rules_it_is_known_to_end(
    timestamp: int, transactions: list[bytes], unsupported: dict[str, int], why: str | None
) -> None:
    expected = None if why is None else RulesEnd(7, why)
    assert rules_end(7, timestamp, transactions, unsupported) == expected


def test_types_are_those_that_can_be_decoded() -> None:
    known = {kind for kind in range(0xC0) if unknown_type(bytes([kind])) is None}
    assert known == {1, 2, 3, 4, 0x7E}
    assert unknown_type(b"") is None  # not a transaction at all: decoding says so


def test_divergence_is_an_end() -> None:
    assert diverged(9, "gas used") == RulesEnd(9, "its execution differs: gas used")
