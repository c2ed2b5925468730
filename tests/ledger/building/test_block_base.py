"""A base becomes a header and comes back, with the fields that its fork has."""

from foreblock.ledger.building.closed_index import base_of, header_of
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, OptimismFork, Rules
from foreblock.types import Base
from support.each_case import each_case

BASE = Base(
    parent_hash=b"\1" * 32,
    parent_beacon_block_root=b"\2" * 32,
    prev_randao=b"\3" * 32,
    fee_recipient=b"\4" * 20,
    block_number=5,
    gas_limit=6_000_000,
    timestamp=7,
    extra_data=b"\x08" * 9,
    base_fee_per_gas=9,
)


def rules(fork: OptimismFork) -> Rules:
    return Rules(ETHEREUM_RULES_OF[fork], fork)


@each_case("fork", [fork for fork in OptimismFork if fork >= OptimismFork.ECOTONE])
def test_base_comes_back_from_its_header(fork: OptimismFork) -> None:
    assert base_of(header_of(BASE, rules(fork))) == BASE


def test_beacon_root_is_not_in_headers_before_ecotone() -> None:
    header = header_of(BASE, rules(OptimismFork.CANYON))
    assert header.parent_beacon_block_root is None
    assert base_of(header).parent_beacon_block_root == bytes(32)


@each_case(
    ("fork", "fields"),
    [
        (OptimismFork.REGOLITH, (False, False, False)),
        (OptimismFork.CANYON, (True, False, False)),
        (OptimismFork.HOLOCENE, (True, True, False)),
        (OptimismFork.ISTHMUS, (True, True, True)),
        (OptimismFork.JOVIAN, (True, True, True)),
    ],
)
def test_fields_come_with_their_forks(fork: OptimismFork, fields: tuple[bool, ...]) -> None:
    header = header_of(BASE, rules(fork))
    found = (header.withdrawals_root, header.excess_blob_gas, header.requests_hash)
    assert tuple(each is not None for each in found) == fields
