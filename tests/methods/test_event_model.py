"""A client that applies all events has the data of the chain, for any behaviour of the chain.

A follower is driven randomly: blocks grow, are sealed from seen messages or arrive whole, compete,
are dropped and reorganised; the process is killed. Clients poll occasionally, lose their connection
inside an event, and resume from the text of their cursors. Their data at the end is compared with
the results of ordinary methods on the same chain.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock.ledger.reading.logs import LogFilter
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.block_text import BlockTexts
from foreblock.methods.events.flashblock_kinds import NewestWanted, NewFlashblocks
from foreblock.methods.events.kinds import FLASHBLOCKS, NEW_HEADS
from foreblock.methods.events.log_index import LogsWanted
from foreblock.methods.events.log_kinds import LOGS, LogKind
from support.chains.following import Following, Truth
from support.servers.asking import Asker, asker
from support.servers.long_work import scheduler
from support.servers.watching import GrowthWatcher, HeadWatcher, LogWatcher, Watcher

Json = Any
ALL = LogsWanted(LogFilter([], []), b"all")
WISHES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 3, 5, 7, 9])), max_size=3)
PLANS = st.lists(WISHES, min_size=1, max_size=3)


class Model:
    """A chain, its follower, and its clients."""

    def __init__(self, folder: Path) -> None:
        self.truth = Truth(folder / "truth")
        self.following = Following(folder / "followed")
        self.names = 0
        self.scheduler = scheduler(600_000)
        blocks = NewFlashblocks(BlockTexts(self.scheduler))
        with self.view() as view:
            self.watchers = [
                (
                    LogWatcher(LOGS, ALL, view),
                    HeadWatcher(NEW_HEADS, None, view),
                    LogWatcher(LogKind("p", FLASHBLOCKS), ALL, view),
                    Watcher(blocks, None, view),
                    GrowthWatcher(blocks, NewestWanted(1_000), view),
                )
                for _ in range(2)
            ]

    def close(self) -> None:
        self.scheduler.close()
        self.following.close()
        self.truth.close()

    @contextmanager
    def view(self) -> Iterator[LedgerView]:
        view = self.following.ledger.view()
        yield view
        view.close()

    def name(self) -> str:
        self.names += 1
        return f"job{self.names}"

    def grow(self, data: st.DataObject) -> None:
        """A job for the next height, of which some messages arrive, and perhaps its block."""
        plan = [[], *data.draw(PLANS)]
        name = self.name()
        job = self.truth.job(name, plan, salt=name.encode())
        heard = data.draw(st.integers(0, len(plan)))
        self.following.hear(*job.messages[:heard])
        if data.draw(st.booleans()):
            block = self.truth.seal(job, data.draw(st.integers(0, len(plan) - 1)))
            if data.draw(st.booleans()):
                self.following.canonical(block)

    def catch_up(self) -> None:
        """All sealed blocks arrive."""
        self.following.canonical(
            *(self.truth.blocks[at] for at in range(1, self.truth.latest.number + 1))
        )

    def reorganise(self, depth: int) -> None:
        """Other blocks replace the last ones."""
        self.truth.rewind(max(0, self.truth.latest.number - depth))
        self.truth.grow(depth + 1, self.name())
        self.catch_up()

    def poll(self, most: int, which: int) -> None:
        """A client receives new events until its connection is lost."""
        with self.view() as view:
            for watcher in self.watchers[which]:
                watcher.poll(view, most)

    def check(self) -> None:
        """All clients receive the remaining events; then they must equal the chain."""
        with self.view() as view:
            for watchers in self.watchers:
                assert all(watcher.poll(view) for watcher in watchers)
        with asker(self.following.ledger, "ethereum") as client:
            for logs, heads, pending, flashblocks, growth in self.watchers:
                latest = self.following.latest
                sealed = [client.ask("eth_getBlockByNumber", hex(n), False) for n in chain(latest)]
                assert [each["hash"] for each in heads.heard] == [each["hash"] for each in sealed]
                assert heads.heard == [header_of(each) for each in sealed]
                of_blocks = [logs_of(client, hex(n)) for n in chain(latest)]
                assert logs.heard == [each for block in of_blocks for each in block]
                self.check_pending(client, pending.heard, of_blocks)
                if self.following.pending is not None and flashblocks.heard:
                    block = client.ask("eth_getBlockByNumber", "pending", True)
                    assert flashblocks.heard[-1] == block
                    assert isinstance(growth, GrowthWatcher)
                    assert growth.transactions == [plain(each) for each in block["transactions"]]

    def check_pending(self, client: Asker, heard: list[Json], sealed: list[list[Json]]) -> None:
        """Compare logs of flashblocks with those of the blocks, except blocks that arrived
        whole.
        """
        with self.view() as view:
            whole = {
                n for n in chain(self.following.latest) if not view.partials_of(view.resolve(n))
            }
        for number, expected in enumerate(sealed, start=1):
            found = [plain(each) for each in heard if each["blockNumber"] == hex(number)]
            wanted = list(map(plain, expected))
            assert found == (wanted[: len(found)] if number in whole else wanted)
        if self.following.pending is not None:
            number, _ = self.following.pending
            found = [plain(each) for each in heard if each["blockNumber"] == hex(number)]
            assert found == list(map(plain, logs_of(client, "pending")))


def chain(latest: int) -> range:
    return range(1, latest + 1)


def logs_of(client: Asker, block: str) -> list[Json]:
    receipts = client.ask("eth_getBlockReceipts", block)
    logs = [log for receipt in receipts for log in receipt["logs"]]
    for log in logs:
        assert log.pop("removed") is False
    return logs


def plain(log: Json) -> Json:
    """A log or a transaction without the hash of its block, which changes as the block grows."""
    return {key: value for key, value in log.items() if key != "blockHash"}


def header_of(block: Json) -> Json:
    left_out = ("size", "uncles", "transactions", "withdrawals")
    return {key: value for key, value in block.items() if key not in left_out}


@settings(max_examples=10)
@given(data=st.data())
def test_who_applies_all_events_has_what_the_chain_has(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        model = Model(Path(folder))
        for _ in range(data.draw(st.integers(3, 12))):
            match data.draw(
                st.sampled_from(
                    ["grow", "grow", "grow", "catch up", "reorganise", "look", "look", "kill"]
                )
            ):
                case "grow":
                    model.grow(data)
                case "catch up":
                    model.catch_up()
                case "reorganise":
                    model.reorganise(data.draw(st.integers(0, 2)))
                case "look":
                    model.poll(data.draw(st.integers(1, 4)), data.draw(st.integers(0, 1)))
                case _:
                    model.following.reopen()
        model.check()
        model.close()


def test_flashblocks_of_a_block_that_came_whole_are_taken_back_with_it(tmp_path: Path) -> None:
    """Two of three flashblocks were received when the block arrived, and a log of them was sent."""
    model = Model(tmp_path)
    job = model.truth.job("first", [[], [(0, 1)], [(1, 3)]])
    model.following.hear(*job.messages[:2])
    model.following.canonical(model.truth.seal(job))
    with model.view() as view:
        assert view.partials_of(view.latest) == (), "it came as a whole"
    model.following.canonical(*model.truth.grow(1, "on it"))
    model.poll(9, 0)
    pending = model.watchers[0][2]
    assert len(pending.heard) == 1
    model.truth.rewind(0)
    other = model.truth.job("other", [[], [(2, 4)]], salt=b"other")
    model.following.canonical(model.truth.seal(other))
    model.following.canonical(*model.truth.grow(2, "more"))
    assert model.following.latest == 3
    model.check()
    assert pending.heard == []
    model.close()
