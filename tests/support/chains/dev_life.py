"""A dev chain that is asked over JSON-RPC, killed and opened again, with a follower and watchers.

`ask` sends a request to the chain as its users do. After each step `names` has what was announced
on the feed and is still of the chain, by the rules of the feed alone.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from foreblock.bus.commands import CloseFlashblock
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.reading.events import (
    BlockRemoved,
    BlockSealed,
    Cursor,
    flashblock_end,
    next_flashblock,
    next_sealed,
    sealed_end,
)
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods.keys import Keys
from foreblock.types import Flashblock
from support.chains.checking import DevFollower, heads
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.chains.dev_service import InProcess, InProcessPool
from support.servers.asking import Asker, asker

KEPT = 1_000  # blocks whose flashblocks can be named


class DevLife:
    """A chain, a client of it, a follower and those who watch."""

    def __init__(self, folder: Path, genesis: Genesis) -> None:
        self.chain = DevChain(
            folder / "chain", genesis=genesis, mining="automine", keep_partials=KEPT
        )
        self.follower = DevFollower(folder / "follower", self.chain, believe_cheats=True)
        self.names = Names()
        self.open()
        with self.view() as view:
            self.watchers = Watchers(view)

    def open(self) -> None:
        """Serve the chain."""
        self._stack = ExitStack()
        self.ledger = Ledger(self.chain.store, clock=self.chain.clock)
        self.client = self._stack.enter_context(self._asker())
        self.logs = LogKeeper(self.client)

    def _asker(self) -> Any:  # noqa: ANN401, a context manager
        ways = InProcess(self.chain)
        return asker(
            self.ledger,
            submissions=ways,
            commands=ways,
            pool=InProcessPool(self.chain),
            keys=Keys({each.address: each.secret for each in ACCOUNTS}),
        )

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        """The result, or the error object."""
        return self.client.ask(method, *params)

    def settle(self) -> None:
        """Do what is due, so that all that can run is in a flashblock."""
        self.chain.settle()
        if self.chain.sequencer.state.mining != "automine":
            self.chain.execute(CloseFlashblock())

    def look(self) -> None:
        """Let everybody hear of what has happened."""
        self.names.hear(self.chain.published)
        self.follower.catch_up()
        self.logs.poll()
        with self.view() as view:
            self.watchers.watch(view)

    def kill(self) -> None:
        """Kill the writer, and go on."""
        self._stack.close()
        self.chain.kill()
        self.chain.open()
        self.open()

    def check_follower(self, *, is_cheated: bool) -> None:
        """Who heard the feed, and believes what was set by hand, has the blocks of the chain.

        A feed is not believed that goes back further than a few blocks. Who follows such a
        chain needs the blocks of its node, which say nothing of what was set by hand.
        """
        follower, sealed = self.follower.follower, self.chain.sealed()
        if not is_cheated:
            follower.canonical(sealed[0], sealed[1:])
            for block in sealed[1:]:
                follower.canonical(block)
            self.follower.settle()
        elif not {"Old", "TooFar"} & follower.counters.keys():
            assert self.follower.heads == heads(self.chain.store)
        else:
            return
        assert follower.counters.get("Failed", 0) == 0, follower.last_error
        with self.follower.store.view() as view:
            for block in sealed:
                found = view.sealed(block.header.number)
                assert found is not None
                assert found[0] == block.hash

    def close(self) -> None:
        self._stack.close()
        self.follower.close()
        self.chain.kill()

    @contextmanager
    def view(self) -> Iterator[LedgerView]:
        view = self.ledger.view()
        try:
            yield view
        finally:
            view.close()


class Names:
    """The flashblocks of a chain, as the messages on its feed say.

    A first flashblock of a height begins the height anew, and ends all above it. A second one
    for the same place of the same job contradicts the first, and is not of the chain.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[bytes, list[bytes]]] = {}  # hashes by index, by height
        self._last_loud: dict[int, int] = {}  # the last index in which something happened
        self.ever: set[bytes] = set()
        self._heard = 0

    def hear(self, published: list[Flashblock]) -> None:
        for each in published[self._heard :]:
            self._hear(each)
        self._heard = len(published)

    def _hear(self, message: Flashblock) -> None:
        number, hashed = message.block_number, message.diff.block_hash
        self.ever.add(hashed)
        job, hashes = self.jobs.get(number, (b"", []))
        if job != message.payload_id:
            assert message.index == 0, "a job begins with its first flashblock"
            self.jobs = {each: self.jobs[each] for each in self.jobs if each < number}
            self.jobs[number] = message.payload_id, [hashed]
            self._last_loud[number] = 0
        elif message.index == len(hashes):
            hashes.append(hashed)
            if message.diff.transactions or message.cheats:
                self._last_loud[number] = message.index

    def drop_tail(self, number: int) -> None:
        """The last flashblock with something in it is not in the sealed block, nor what follows."""
        _, hashes = self.jobs[number]
        del hashes[self._last_loud[number] :]

    def job(self, number: int) -> bytes:
        """The job of a height."""
        return self.jobs.get(number, (b"", []))[0]

    @property
    def live(self) -> set[bytes]:
        return {each for _, hashes in self.jobs.values() for each in hashes}

    @property
    def places(self) -> dict[tuple[int, int], bytes]:
        return {
            (number, index): hashed
            for number, (_, hashes) in self.jobs.items()
            for index, hashed in enumerate(hashes)
        }


class Watchers:
    """Two who apply every event since they began: of sealed blocks, and of flashblocks."""

    def __init__(self, view: LedgerView) -> None:
        self.sealed: list[bytes] = []
        self._sealed_at = Cursor(0, view.resolve(0).hash)
        self._flashblocks_at = flashblock_end(view)

    def watch(self, view: LedgerView) -> None:
        while (found := next_sealed(view, self._sealed_at)) is not None:
            self._sealed_at = found.then
            if isinstance(found.event, BlockSealed):
                self.sealed.append(found.event.block.hash)
            elif isinstance(found.event, BlockRemoved):
                assert self.sealed.pop() == found.event.header.hash, "the last is taken back first"
        assert self._sealed_at == sealed_end(view)
        while (following := next_flashblock(view, self._flashblocks_at)) is not None:
            self._flashblocks_at = following.then
        assert self._flashblocks_at == flashblock_end(view)


class LogKeeper:
    """A client that applies what its filter says, and so has the logs of the chain."""

    def __init__(self, client: Asker) -> None:
        self._client = client
        self._filter = client.ask("eth_newFilter", {})
        self.logs = self.of_chain()

    def of_chain(self) -> list[tuple[str, str]]:
        """The block and the index of each log of the chain."""
        found = self._client.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
        return [_named(each) for each in found]

    def poll(self) -> None:
        for each in self._client.ask("eth_getFilterChanges", self._filter):
            if each["removed"]:
                assert self.logs.pop() == _named(each), "the last is taken back first"
            else:
                self.logs.append(_named(each))
        assert self.logs == self.of_chain()


def _named(log: dict[str, Any]) -> tuple[str, str]:
    return log["blockHash"], log["logIndex"]
