"""A follower of a dev chain, which hears what the chain has published as a feed carries it."""

from pathlib import Path

from foreblock._engine import Store
from foreblock.feed.messages import decode, encode
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.types import Flashblock
from support.chains.dev_chain import DevChain


class DevFollower:
    """A follower with its store; it believes cheats or not."""

    def __init__(self, folder: Path, chain: DevChain, *, believe_cheats: bool) -> None:
        self.chain = chain
        self.heard = 0
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, chain.genesis)
        self.writer = LedgerWriter(self.store, chain.clock)
        self.published: list[Flashblock] = []
        self.follower = Follower(
            self.writer,
            chain.clock,
            BufferBounds(),
            self.published.append,
            lambda _: None,
            run_bounds=RunBounds(believe_cheats=believe_cheats),
        )

    def catch_up(self) -> None:
        """Hear all that is new."""
        for each in self.chain.published[self.heard :]:
            message = decode(encode(each))
            assert isinstance(message, Flashblock)
            assert message == each, "the wire keeps all of it"
            self.follower.receive(message, "a")
            self.settle()
        self.heard = len(self.chain.published)

    def settle(self) -> None:
        """Do all that is due."""
        while self.follower.next_due_ns == 0:
            self.follower.tick()

    @property
    def heads(self) -> tuple[tuple[int, bytes] | None, tuple[int, bytes] | None]:
        """The latest block and the pending flashblock."""
        return heads(self.store)

    def close(self) -> None:
        self.follower.close()
        self.store.close()


def heads(store: Store) -> tuple[tuple[int, bytes] | None, tuple[int, bytes] | None]:
    """The latest block and the pending flashblock, each with its number and hash."""
    with store.view() as view:
        pending = None if view.heads.pending is None else view.partial(view.heads.pending)
        latest = view.heads.latest
        return latest, None if pending is None else (pending.block, pending.hash)
