"""A fetcher over toy nodes, and its expected results."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from foreblock.clock import Clock, SystemClock
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.requests import BlockAt
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import keccak256
from foreblock.upstream.budget import Purpose, UnitBudget
from support.servers.waiting import PATIENCE
from support.upstreams.plain_state import ADDRESSES, AT, CODES, balance, header, value
from support.upstreams.toy_node import ToyNode, toy_node

A, B, C = ADDRESSES[:3]
PLACES = (AT, BlockAt(90, header(90).hash), BlockAt(80, header(80).hash))
RICH = 1_000_000.0
ALL = StateKeys(
    frozenset({A, B}),
    {A: frozenset({0, 2, 5}), C: frozenset({0, 3, 4, 5})},
    {keccak256(CODES[A]): A},
    frozenset({B}),
    frozenset({3}),
)
CALL = ("eth_getBalance", ["0x" + "11" * 20, "latest"])
TRUSTED = FetchOptions(proven=False, first_slots=False)
PROVEN = FetchOptions(proven=True, first_slots=False)

Test = Callable[[Fetcher, list[ToyNode]], Awaitable[None]]


@contextmanager
def nodes(*made: ToyNode, path: str = "") -> Iterator[list[ToyNode]]:
    if not made:
        yield []
        return
    with toy_node(made[0], path) as first, nodes(*made[1:], path=path) as rest:
        yield [first, *rest]


def fetching(
    test: Test,
    *made: ToyNode,
    options: FetchOptions = TRUSTED,
    clock: Clock | None = None,
    units: float = RICH,
    path: str = "",
) -> None:
    """Run a test with a fetcher of these nodes."""
    ticking = clock or SystemClock()

    async def run(running: Sequence[ToyNode]) -> None:
        upstreams = [StateUpstream(each.url, ticking, UnitBudget(units)) for each in running]
        fetcher = Fetcher(upstreams, ticking, options)
        try:
            async with asyncio.timeout(PATIENCE):
                await test(fetcher, list(running))
        finally:
            fetcher.close()

    with nodes(*made, path=path) as running:
        asyncio.run(run(running))


async def fetch(
    fetcher: Fetcher,
    wanted: StateKeys = ALL,
    purpose: Purpose = Purpose.CLIENT,
    seconds: float = PATIENCE,
    epoch: int = 0,
) -> FetchResult:
    return await fetcher.fetch(wanted, PLACES, purpose, seconds, epoch)


def check(found: FetchResult, wanted: StateKeys = ALL) -> None:
    """Check that every requested value is present and correct."""
    assert not found.missing(wanted)
    right(found)


def right(found: FetchResult) -> None:
    for address, account in found.accounts.items():
        assert (account.nonce, account.balance) == (address[1], balance(address))
        assert account.code_hash == keccak256(CODES.get(address, b""))
    for address, values in found.slots.items():
        assert values == {slot: value(address, slot) for slot in values}
    assert all(keccak256(code) == name for name, code in found.codes.items())
    assert all(each.hash == header(number).hash for number, each in found.headers.items())
