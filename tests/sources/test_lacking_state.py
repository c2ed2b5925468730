"""A block with unavailable state: it is tried again, then the chain is restarted.

Checks the errors for readers meanwhile, and the requests to upstreams.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from foreblock.bus.messages import BusCall, BusRequest, Failed, GetState, Result, ToWorker, failed
from foreblock.chains.chain_file import followed_chain
from foreblock.clock import DrivenClock
from foreblock.errors import DisputedBlock, NewEpoch, NoUpstream, Unreachable
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.learned_state import unpack_values
from foreblock.follow.network import FollowNetwork
from foreblock.follow.requests import BlockAt
from foreblock.follow.sealed_blocks import ANCHOR_AGAIN, STUCK
from foreblock.follow.state_fetcher import StateFetcher
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.storage.open_store import Anchor
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.settings import FollowSettings
from foreblock.settings.networks import Network
from foreblock.types import Header
from foreblock.upstream.budget import Purpose, UnitBudget
from support.chains.following import Truth
from support.chains.state_fetcher import FakeFetcher
from support.chains.writing import NOBODY, SENDERS, genesis

ANCHOR, LATEST = 3, 8
SECOND_NS = 10**9
READ = StateKeys(frozenset({SENDERS[1]}))


class LackingFetcher(FakeFetcher):
    """Has the state of the newest requested block, except while it lacks everything."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth, ANCHOR)
        self.upstreams = [SimpleNamespace(budget=UnitBudget())]
        self.proves_tip_only = False
        self.lacks = True
        self.asked: list[tuple[StateKeys, Purpose]] = []

    async def fetch(
        self,
        wanted: StateKeys,
        places: Sequence[BlockAt],
        purpose: Purpose,
        seconds: float,
        epoch: int = 0,
    ) -> FetchResult:
        self.asked.append((wanted, purpose))
        if self.lacks:
            raise NoUpstream("nobody has it", 1)
        self.at = places[0].number
        return await super().fetch(wanted, places, purpose, seconds, epoch)

    def close(self) -> None:
        pass


class Headers:
    """The blocks of the chain as headers only."""

    shown = "upstream"

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.disputed = False
        self.confirming = 1  # number of upstreams that have a block

    async def agreed_header(self, name: str) -> Header:
        assert name == "latest"
        if self.disputed:
            raise DisputedBlock(LATEST, "one has 0x01, another has 0x02")
        return self._truth.latest

    async def is_confirmed(self, header: Header, least: int) -> bool:
        assert header in self._truth.headers
        return self.confirming >= least

    async def whole(self, _: bytes) -> None:
        """No bodies."""


class Lacking:
    """A network and its parts."""

    def __init__(self, folder: Path, truth: Truth) -> None:
        self.truth = truth
        self.fetcher = LackingFetcher(truth)
        self.clock = DrivenClock()
        chain = folder / "genesis.json"
        chain.write_bytes(genesis())
        follow = FollowSettings(chain=str(chain), upstream=("http://nobody",), feed=("off",))
        network = Network(name="main", data=str(folder / "store"), source="follow", follow=follow)
        fetcher: Any = self.fetcher
        self.blocks = Headers(truth)
        blocks: Any = self.blocks
        self.network = FollowNetwork(
            network,
            followed_chain(str(chain)),
            fetcher,
            blocks,
            StateFetcher(fetcher, proven=True, behind=0),
            Anchor(truth.headers[ANCHOR]),
            self.clock,
            lambda _: None,
            lambda _: None,
            FeedClientOptions(),
        )

    @property
    def base(self) -> int:
        return self.network.executed().anchor.number

    async def add(self, number: int) -> None:
        await self.network.add([self.truth.blocks[number]])

    async def lack(self, number: int) -> str:
        """Add a block that fails; return the reason."""
        with pytest.raises(Unreachable) as why:
            await self.add(number)
        return str(why.value)

    async def read(self, epoch: int) -> ToWorker:
        """Return the response to a worker that requests an account."""
        told: asyncio.Future[ToWorker] = asyncio.get_running_loop().create_future()
        until = self.clock.monotonic_ns() + SECOND_NS
        call = BusCall(1, "main", GetState(epoch, READ.pack()), until)
        self.network.on_call(BusRequest(call, told.set_result))
        return await told


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    made.grow(LATEST, "chain")
    yield made
    made.close()


def tried(folder: Path, truth: Truth, body: Callable[[Lacking], Awaitable[None]]) -> None:
    async def run() -> None:
        lacking = Lacking(folder, truth)
        await lacking.network.open()
        try:
            await body(lacking)
        finally:
            await lacking.network.close()

    asyncio.run(run())


def test_it_is_tried_again_and_then_the_chain_begins_anew(tmp_path: Path, truth: Truth) -> None:
    async def body(lacking: Lacking) -> None:
        for _ in range(STUCK - 1):
            why = await lacking.lack(ANCHOR + 1)
            assert f"keys of the state of block {ANCHOR} cannot be had: " in why
            assert "nobody has it" in why
            assert lacking.base == ANCHOR
        asked = [wanted for wanted, purpose in lacking.fetcher.asked]
        assert {purpose for _, purpose in lacking.fetcher.asked} == {Purpose.FLASHBLOCK}
        assert SENDERS[0] in StateKeys.union(asked).accounts, "who sends in that block"
        await lacking.add(ANCHOR + 1)
        assert (lacking.base, lacking.network.anchorings) == (LATEST, 1)
        assert "cannot be had" in lacking.network.last_anchoring

    tried(tmp_path, truth, body)


def test_a_reader_is_told_so_and_that_the_base_has_moved(tmp_path: Path, truth: Truth) -> None:
    async def body(lacking: Lacking) -> None:
        epoch = lacking.network.executed().epoch
        await lacking.lack(ANCHOR + 1)
        told = await lacking.read(epoch)
        assert isinstance(told, Failed)
        assert (told.error, told.facts[0]) == ("NoUpstream", "nobody has it")
        for _ in range(STUCK - 2):
            await lacking.lack(ANCHOR + 1)
        await lacking.add(ANCHOR + 1)
        told = await lacking.read(epoch)
        assert told == failed(1, NewEpoch())
        lacking.fetcher.lacks = False
        told = await lacking.read(lacking.network.executed().epoch)
        assert isinstance(told, Result)
        assert unpack_values(told.value).accounts.keys() == READ.accounts
        assert lacking.fetcher.asked[-1] == (READ, Purpose.CLIENT)

    tried(tmp_path, truth, body)


def test_a_block_whose_state_came_ends_the_count(tmp_path: Path, truth: Truth) -> None:
    async def body(lacking: Lacking) -> None:
        for number in (ANCHOR + 1, ANCHOR + 2):
            for _ in range(STUCK - 1):
                await lacking.lack(number)
            lacking.fetcher.lacks = False
            await lacking.add(number)
            lacking.fetcher.lacks = True
        assert (lacking.base, lacking.network.anchorings) == (ANCHOR, 0)
        assert lacking.network.following.latest.number == ANCHOR + 2

    tried(tmp_path, truth, body)


def test_what_proves_its_tip_only_is_not_asked_twice(tmp_path: Path, truth: Truth) -> None:
    """Missing state is requested immediately at the new anchor, with the priority of a message."""

    async def body(lacking: Lacking) -> None:
        lacking.fetcher.proves_tip_only = True
        lacking.network.want(MissingState({NOBODY}))
        await lacking.add(ANCHOR + 1)
        assert (lacking.base, lacking.network.anchorings) == (LATEST, 1)
        needed = StateKeys.union([wanted for wanted, _ in lacking.fetcher.asked]).accounts
        lacking.fetcher.lacks = False
        before = len(lacking.fetcher.asked)
        fetching = asyncio.create_task(lacking.network.working_set.fetch())
        while lacking.network.unknown(StateKeys(frozenset({SENDERS[0]}))):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        fetching.cancel()
        again, purpose = lacking.fetcher.asked[before]
        assert purpose is Purpose.FLASHBLOCK
        assert {SENDERS[0], NOBODY} <= again.accounts <= needed | {NOBODY}

    tried(tmp_path, truth, body)


def test_anchors_are_not_chosen_one_right_after_the_other(tmp_path: Path, truth: Truth) -> None:
    async def body(lacking: Lacking) -> None:
        lacking.clock.advance(1)
        lacking.fetcher.proves_tip_only = True
        await lacking.add(ANCHOR + 1)
        assert lacking.base == LATEST
        truth.grow(2, "after")
        await lacking.lack(LATEST + 1)
        assert lacking.base == LATEST
        lacking.clock.advance(int(ANCHOR_AGAIN * SECOND_NS))
        await lacking.add(LATEST + 1)
        assert (lacking.base, lacking.network.anchorings) == (LATEST + 2, 2)

    tried(tmp_path, truth, body)


@pytest.mark.parametrize(
    ("upstreams", "confirming", "ends"), [(1, 1, False), (2, 1, False), (2, 2, True)]
)
def test_a_root_that_differs_ends_the_rules_only_if_two_upstreams_have_the_block(
    tmp_path: Path, truth: Truth, upstreams: int, confirming: int, ends: bool
) -> None:
    async def body(lacking: Lacking) -> None:
        network, header = lacking.network, truth.headers[LATEST]
        lacking.fetcher.upstreams *= upstreams
        lacking.blocks.confirming = confirming
        for anchorings in (1, 2, 3):
            lacking.clock.advance(int(ANCHOR_AGAIN * SECOND_NS))
            await network.roots.differs(header, "the root is another one")
            assert network.anchorings == anchorings
            assert (network.following.rules_end() is not None) == (ends and anchorings > 1)

    tried(tmp_path, truth, body)


def test_no_anchor_is_taken_on_which_upstreams_disagree(tmp_path: Path, truth: Truth) -> None:
    async def body(lacking: Lacking) -> None:
        lacking.blocks.disputed = True
        assert not await lacking.network.reanchor("it was time")
        assert lacking.base == ANCHOR
        lacking.blocks.disputed = False
        assert await lacking.network.reanchor("it was time")
        assert lacking.base == LATEST

    tried(tmp_path, truth, body)
