"""Compare a dev chain with its plain model, by every name of a block.

After each step (`dev_trial`) the chain must equal `dev_world`: accounts at pending, at latest and
at sealed blocks; flashblocks by position and hash; dropped names, which must not resolve; logs from
a filter, and blocks from a cursor, both followed from the start. At the end all state roots are
computed from scratch, blocks are checked by the import rules up to the first state edit, and a
follower of the feed must have the same blocks.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foreblock.bus.commands import CloseFlashblock
from foreblock.errors import NotHere
from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount
from foreblock.ledger.reading.blocks import ByIndex
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
from foreblock.methods.sequencing import Keys
from foreblock.types import Flashblock, decode_transactions
from support.chains.checking import DevFollower, check_blocks_by_import, check_unknown, heads
from support.chains.dev_chain import ACCOUNTS, DevChain, genesis_of
from support.chains.dev_service import InProcess, InProcessPool
from support.chains.dev_world import DevWorld, Person, Set, World, world_of
from support.chains.whole_state import check_roots
from support.servers.asking import Asker, asker

KEPT = 1_000  # blocks whose flashblocks have names


class DevLife:
    """A chain, a client of it, a follower, and subscribers."""

    def __init__(self, folder: Path, genesis: Genesis) -> None:
        self.chain = DevChain(
            folder / "chain", genesis=genesis, mining="automine", keep_partials=KEPT
        )
        self.follower = DevFollower(folder / "follower", self.chain, accept_state_edits=True)
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

    def run_until_idle(self) -> None:
        """Do due work, so that every executable transaction is in a flashblock."""
        self.chain.run_until_idle()
        if self.chain.sequencer.mining.state.mining != "automine":
            self.chain.execute(CloseFlashblock())

    def poll_subscribers(self) -> None:
        """Let every subscriber catch up."""
        self.names.apply(self.chain.published)
        self.follower.catch_up()
        self.logs.poll()
        with self.view() as view:
            self.watchers.watch(view)

    def kill(self) -> None:
        """Kill the writer, and start it again."""
        self._stack.close()
        self.chain.kill()
        self.chain.open()
        self.open()

    def check_follower(self, *, is_edited: bool) -> None:
        """Check that a follower of the feed that trusts state edits has the blocks of the chain.

        A feed that goes back further than a few blocks is not trusted. A follower of such a chain
        needs the blocks from its node, which do not mention state edits.
        """
        follower, sealed = self.follower.follower, self.chain.sealed()
        if not is_edited:
            follower.canonical(sealed[0], sealed[1:])
            for block in sealed[1:]:
                follower.canonical(block)
            self.follower.run_until_idle()
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
    """The flashblocks of a chain, according to the messages on its feed.

    A first flashblock of a height restarts the height and removes all above it. A second one for
    the same position of the same job contradicts the first and is not part of the chain.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[bytes, list[bytes]]] = {}  # hashes by index, by height
        self._last_loud: dict[int, int] = {}  # the last index with a change
        self.ever: set[bytes] = set()
        self._heard = 0

    def apply(self, published: list[Flashblock]) -> None:
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
            if message.diff.transactions or message.edits:
                self._last_loud[number] = message.index

    def drop_tail(self, number: int) -> None:
        """Remove the last flashblock with a change, and its successors."""
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
    """Two clients that apply all events from the start: of sealed blocks, and of flashblocks."""

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
    """A client that applies its filter's events, and so holds the logs of the chain."""

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


SENDERS = ACCOUNTS[:3]
PEOPLE = tuple(bytes([0xD0 + each]) * 20 for each in range(3))
ACTORS = tuple(bytes([0xE0 + each]) * 20 for each in range(2))  # senders without a signature
LOGGER = bytes.fromhex("600160006000a100")  # emits a log with one topic
LOUD = PEOPLE[-1]  # a contract from the start
FIRST = {each: Person() for each in PEOPLE} | {LOUD: Person(nonce=1, code=LOGGER)}


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


def genesis(rules: str) -> Genesis:
    """A genesis with senders that can pay for gas, if gas is paid, and accounts as in the model."""
    found = genesis_of(rules)
    some = {each: GenesisAccount(balance=10**24) for each in ACTORS}
    some[LOUD] = GenesisAccount(nonce=FIRST[LOUD].nonce, code=FIRST[LOUD].code)
    return replace(found, accounts=dict(found.accounts) | some)


class HeldChain:
    """A chain and its model."""

    def __init__(self, folder: Path, rules: str) -> None:
        self.folder = folder
        self.rules = rules
        self.life = DevLife(folder, genesis(rules))
        self.model = DevWorld(FIRST)
        self.snapshots: dict[int, DevWorld] = {}
        self.known: set[bytes] = set()  # transactions
        self.highest = 0
        self.commit = 0
        self.used: set[str] = set()  # methods
        self.finish()

    def finish(self) -> None:
        """Apply sealed blocks to the model, and check everything."""
        self.life.run_until_idle()
        self.take_sealed()
        self.model.run()
        self.life.poll_subscribers()
        self.check()

    def take_sealed(self, most: int | None = None) -> None:
        blocks = self.life.chain.sealed()[self.model.height :]
        for block in blocks[:most]:
            ran = decode_transactions(list(block.transactions), unsigned=True)
            self.model.seal([each.hash for each in ran if each.hash in self.known])

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        self.used.add(method)
        return self.life.ask(method, *params)

    def done(self, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        """Return the result of a request that must succeed."""
        found = self.ask(method, *params)
        assert not (isinstance(found, dict) and "code" in found), (method, found)
        return found

    def refused(self, method: str, *params: object) -> str:
        """Return the reason for which a request is rejected."""
        found = self.ask(method, *params)
        assert isinstance(found, dict), (method, found)
        assert found["code"] in {-32602, -32000}, found
        return str(found["message"])

    def timestamps(self) -> list[int]:
        genesis = self.life.chain.genesis.timestamp
        return [genesis, *(each.header.timestamp for each in self.life.chain.sealed())]

    # --- Checks ------------------------------------------------------------------------

    def check(self) -> None:
        model = self.model
        self.highest = max(self.highest, model.height)
        sealed = self.life.chain.sealed()
        assert len(sealed) == model.height
        assert self.life.watchers.sealed == [each.hash for each in sealed]
        times = self.timestamps()
        assert all(one < other for one, other in pairwise(times))
        assert {each.hash for each in self.life.chain.sequencer.builder.pooled()} == {
            each.hash for each in model.waiting.values()
        }
        with self.life.view() as view:
            assert view.commit >= self.commit
            self.commit = view.commit
            assert self.read(view, "latest") == (model.latest(), model.nonces(model.height))
            for height in {0, model.height // 2, model.height}:
                assert self.read(view, height) == (model.world(height), model.nonces(height))
            assert self.read(view, "pending") == (model.world(), model.nonces())
            self.check_places(view)
        self.check_given_up({each.hash for each in sealed})

    def read(self, view: Any, block: Any) -> tuple[World, dict[bytes, int]]:  # noqa: ANN401, any name
        state = view.state(view.resolve(block))
        people = world_of(state, PEOPLE)
        senders = (*(each.address for each in SENDERS), *ACTORS)
        nonces = {each: state.nonce(each) for each in senders}
        return people, {each: nonce for each, nonce in nonces.items() if nonce}

    def check_places(self, view: Any) -> None:  # noqa: ANN401, a view
        places = self.life.names.places
        for (number, index), hashed in places.items():
            assert view.resolve(ByIndex(number, index)).hash == hashed, (number, index)
            if (number, index + 1) not in places:
                with pytest.raises(NotHere):
                    view.resolve(ByIndex(number, index + 1))
        pending = view.resolve("pending")
        assert places[pending.number, pending.index] == pending.hash
        with pytest.raises(NotHere):
            view.resolve(ByIndex(pending.number + 1, 0))

    def check_given_up(self, sealed: set[bytes]) -> None:
        """Check that dropped names do not resolve; a sample of all names, with a fixed seed."""
        gone = self.life.names.ever - self.life.names.live - sealed
        chance = random.Random(len(gone))
        lost = self.known - self.model.hashes()
        check_unknown(
            self.life.client,
            {hexed(each) for each in chance.sample(sorted(gone), min(len(gone), 3))},
            {hexed(each) for each in chance.sample(sorted(lost), min(len(lost), 3))},
        )

    def end(self) -> None:
        """Extend the chain above its maximum height, and check it by independent rules."""
        self.done("anvil_mine", hex(self.highest - self.model.height + 1))
        self.finish()
        check_roots(self.life.chain)
        edited = [
            number
            for number, block in enumerate(self.model.blocks, 1)
            if any(isinstance(each, Set) for each in block)
        ]
        sealed = self.life.chain.sealed()
        honest = sealed[: edited[0] - 1] if edited else sealed
        check_blocks_by_import(self.life.chain, honest, self.folder / "check")
        self.life.check_follower(is_edited=bool(edited))
