from collections.abc import Sequence

import pytest

from foreblock._engine import Header
from foreblock.errors import BadBlock
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import Ancestor, check_uncles, next_difficulty
from support.chains.profiles import profile
from support.each_case import each_case
from support.payloads.headers import MINED, header

CHAIN = profile({"chainId": 1}, homesteadBlock=0)


def child(parent: Header, **changes: object) -> Header:
    time = parent.timestamp + 10
    valid = {
        "parent_hash": parent.hash,
        "number": parent.number + 1,
        "timestamp": time,
        "difficulty": next_difficulty(parent, time, EthereumFork.HOMESTEAD),
    }
    return header(MINED, **(valid | changes))


def chain(length: int) -> list[Ancestor]:
    headers = [header(MINED)]
    while len(headers) < length:
        headers.append(child(headers[-1]))
    return [Ancestor(each, ()) for each in headers]


ANCESTORS = chain(9)  # blocks 0 to 8; the block under check is 9


def check(uncles: Sequence[Header], ancestors: Sequence[Ancestor] = ANCESTORS) -> None:
    check_uncles(9, uncles, ancestors, CHAIN)


def uncle_at(number: int, extra_data: bytes = b"uncle", **changes: object) -> Header:
    return child(ANCESTORS[number - 1].header, extra_data=extra_data, **changes)


@each_case("number", range(3, 9))
def test_uncle_may_be_up_to_six_generations_old(number: int) -> None:
    check([uncle_at(number)])


def test_no_uncles_are_fine_and_so_are_two() -> None:
    check([])
    check([uncle_at(8), uncle_at(8, b"another")])


@each_case(
    ("uncles", "what"),
    [
        ([uncle_at(8, bytes([index])) for index in range(3)], "number of uncles"),
        ([uncle_at(2)], "number of uncle 0"),
        ([child(ANCESTORS[8].header, extra_data=b"sibling")], "number of uncle 0"),
        ([ANCESTORS[8].header], "uncle 0"),
        ([uncle_at(8), uncle_at(8)], "uncle 1"),
        ([uncle_at(8, parent_hash=b"\1" * 32)], "parent hash of uncle 0"),
        ([uncle_at(8, difficulty=1)], "difficulty of uncle 0"),
        ([uncle_at(8, gas_limit=1)], "gas limit of uncle 0"),
        ([uncle_at(8, timestamp=0)], "time of uncle 0"),
        ([uncle_at(8, extra_data=bytes(33))], "length of extra data of uncle 0"),
        ([uncle_at(8, base_fee_per_gas=1)], "base fee of uncle 0"),
    ],
)
def test_wrong_uncles_are_named(uncles: list[Header], what: str) -> None:
    with pytest.raises(BadBlock) as caught:
        check(uncles)
    assert (caught.value.number, caught.value.what) == (9, what)


def test_uncle_named_by_an_ancestor_is_refused() -> None:
    uncle = uncle_at(6)
    named = [*ANCESTORS[:7], Ancestor(ANCESTORS[7].header, (uncle.hash,)), ANCESTORS[8]]
    with pytest.raises(BadBlock, match="uncle 0: expected a block not named before"):
        check([uncle], named)
