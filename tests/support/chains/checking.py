"""Check a dev chain by the import rules, and with a follower that trusts its feed."""

from collections.abc import Sequence
from pathlib import Path

from foreblock._engine import Block, Store
from foreblock.feed.messages import decode, encode
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.types import Flashblock
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.servers.asking import Asker

SOMEBODY = "0x" + ACCOUNTS[0].address.hex()


def check_by_import(chain: DevChain, folder: Path) -> None:
    """Check every sealed block by all import rules, on a separate store."""
    check_blocks_by_import(chain, chain.sealed(), folder)


def check_blocks_by_import(chain: DevChain, blocks: Sequence[Block], folder: Path) -> None:
    """Check the first blocks of a chain in this way."""
    with Store(str(folder), write=True) as store:
        begin_chain(store, chain.genesis)
        importing = Chain(store, chain.writer.profile)
        for block in blocks:
            importing.add(block)
        importing.commit()
        importing.close()


def check_unknown(client: Asker, blocks: set[str], transactions: set[str]) -> None:
    """Check that none of these names resolves."""
    for block in blocks:
        for named in (block, {"blockHash": block}):
            refusal = client.ask("eth_getBalance", SOMEBODY, named)
            assert "not found" in refusal["message"], refusal
            refusal = client.ask("eth_call", {"to": SOMEBODY, "from": SOMEBODY}, named)
            assert "not found" in refusal["message"], refusal
            refusal = client.ask("debug_traceBlockByHash", block)
            assert "not found" in refusal["message"], refusal
        assert client.ask("eth_getBlockByHash", block, False) is None
        assert client.ask("eth_getBlockTransactionCountByHash", block) is None
        assert client.ask("eth_getTransactionByBlockHashAndIndex", block, "0x0") is None
        answer = client.ask("eth_getBlockReceipts", block)
        assert answer is None or "not found" in answer["message"]
        refusal = client.ask("eth_getLogs", {"blockHash": block})
        assert "unknown block" in refusal["message"] or "not found" in refusal["message"], refusal
    for transaction in transactions:
        assert client.ask("eth_getTransactionByHash", transaction) is None, transaction
        assert client.ask("eth_getTransactionReceipt", transaction) is None
        assert "code" in client.ask("debug_traceTransaction", transaction)


class DevFollower:
    """A follower with its store, with or without trust in state edits."""

    def __init__(self, folder: Path, chain: DevChain, *, accept_state_edits: bool) -> None:
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
            run_bounds=RunBounds(accept_state_edits=accept_state_edits),
        )

    def catch_up(self) -> None:
        """Process all new messages."""
        for each in self.chain.published[self.heard :]:
            message = decode(encode(each))
            assert isinstance(message, Flashblock)
            assert message == each, "the wire keeps all of it"
            self.follower.receive(message, "a")
            self.run_until_idle()
        self.heard = len(self.chain.published)

    def run_until_idle(self) -> None:
        """Do all due work."""
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
