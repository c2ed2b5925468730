"""A chain that is sequenced on one store and followed on another, for tests of following.

`Truth` builds jobs in memory, any number per height, and seals a chosen one by a strict import.
`Following` is a follower with its store; a test delivers any messages in any order.
"""

import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreblock._engine import (
    Block,
    FetchedState,
    Header,
    Message,
    Store,
    Transaction,
    deposit_transaction,
    keccak256,
    sign_transaction,
)
from foreblock.clock import DrivenClock
from foreblock.errors import NotHere
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds, Buffered, Received
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.reading.blocks import ByHash, ByIndex, PreconfirmedBlock, SealedBlock
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.header_rules import base_fee_after
from foreblock.ledger.rules.l1 import ATTRIBUTES_DEPOSITOR, L1_BLOCK
from foreblock.ledger.storage.chain_head import read_header, stored_profile
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.ledger.storage.rows import transaction_index_key
from foreblock.types import Base, Content, Flashblock, FlashblockId
from support.chains.profiles import JOVIAN
from support.chains.writing import (
    CHAIN_ID,
    KEYS,
    NOBODY,
    PRICE,
    SCRIBE,
    SENDERS,
    SEQUENCER_VAULT,
    extra_data,
    genesis,
)

# Parameters of a transaction: its sender, and a number that makes it unique.
Wish = tuple[int, int]
Plan = Sequence[Sequence[Wish]]


@dataclass(frozen=True)
class Built:
    """A job: its messages, and the resulting block for each possible last message."""

    messages: tuple[Flashblock, ...]
    blocks: tuple[Block, ...]

    @property
    def number(self) -> int:
        return self.messages[0].block_number

    @property
    def payload_id(self) -> bytes:
        return self.messages[0].payload_id


class Truth:
    """The chain as known to its sequencer."""

    def __init__(
        self, folder: Path, *, linked: bool = True, config: dict[str, Any] = JOVIAN
    ) -> None:
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, read_genesis(genesis(config)))
        self.linked = linked
        with self.store.view() as view:
            self.profile = stored_profile(view)
            self.headers: list[Header] = [read_header(view, 0)[0]]
        self.blocks: dict[int, Block] = {}
        self.ends: dict[int, int] = {}  # the last index of each sealed block

    @property
    def latest(self) -> Header:
        return self.headers[-1]

    def close(self) -> None:
        self.store.close()

    def base(self, number: int, salt: bytes = b"") -> Base:
        """The first transactions of the block of this number."""
        parent = self.headers[number - 1]
        time = parent.timestamp + self.profile.time_step
        rules = self.profile.rules(number, time, merged=True)
        parent_rules = self.profile.rules(number - 1, parent.timestamp, merged=True)
        return Base(
            parent_hash=parent.hash,
            parent_beacon_block_root=keccak256(b"beacon" + parent.hash + salt),
            prev_randao=keccak256(b"randao" + parent.hash + salt),
            fee_recipient=SEQUENCER_VAULT,
            block_number=number,
            gas_limit=30_000_000,
            timestamp=time,
            extra_data=extra_data(rules),
            base_fee_per_gas=base_fee_after(parent, rules, parent_rules, self.profile),
        )

    def job(
        self,
        name: str,
        plan: Plan,
        number: int | None = None,
        salt: bytes = b"",
        upgrades: Sequence[Transaction] = (),
    ) -> Built:
        """Build a job for the next height, or for another one on its sealed parent.

        `upgrades` are deposits that follow the first one.
        """
        number = self.latest.number + 1 if number is None else number
        base = self.base(number, salt)
        parent_state = on_sealed(self.store, self.profile, number - 1)
        block = BlockInProgress.begin(parent_state, base, keccak256(name.encode())[:8])
        block.run([first_deposit(base), *upgrades])
        messages, blocks = [], []
        raws: tuple[bytes, ...] = ()
        for index, wishes in enumerate(plan):
            for who, what in wishes:
                block.run([signed_wish(block, who, what)])
            closed = block.close_index(1_000_000 + index)
            raws += closed.transactions
            sealed = closed.header.replace(state_root=block.roots.root())
            blocks.append(Block(sealed, raws, (), ()))
            messages.append(self._message(closed.flashblock()))
        block.close()
        return Built(tuple(messages), tuple(blocks))

    def seal(self, built: Built, index: int = -1) -> Block:
        """Seal a job as the block of its height, up to an index; discard the others."""
        assert built.number == self.latest.number + 1
        block = built.blocks[index]
        chain = Chain(self.store, self.profile)
        chain.add(block)
        chain.commit()
        chain.close()
        self.headers.append(block.header)
        self.blocks[built.number] = block
        self.ends[built.number] = index % len(built.blocks)
        return block

    def grow(self, count: int, name: str) -> list[Block]:
        """Seal this many blocks, each with a transfer and a slot write."""
        blocks = []
        for at in range(count):
            wishes = [(at % 3, 2 * at + 2 * len(name)), (0, 2 * at + 1)]
            job = self.job(f"{name}{at}", [wishes], salt=name.encode())
            blocks.append(self.seal(job))
        return blocks

    def rewind(self, number: int) -> None:
        """Drop the blocks above this one."""
        batch = self.store.batch()
        batch.rewind(number)
        batch.fold_all()
        self.store.commit(batch)
        del self.headers[number + 1 :]

    def _message(self, message: Flashblock) -> Flashblock:
        if not self.linked:
            return replace(message, previous=None)
        below = message.block_number - 1
        if message.index == 0 and below in self.ends:
            return replace(message, previous=FlashblockId(below, self.ends[below]))
        return message


def first_deposit(base: Base) -> Transaction:
    return deposit_transaction(
        source_hash=keccak256(b"deposit" + base.parent_hash),
        sender=ATTRIBUTES_DEPOSITOR,
        to=L1_BLOCK,
        mint=0,
        value=0,
        gas_limit=200_000,
        input=b"",
    )


def signed_wish(block: BlockInProgress, who: int, what: int) -> Transaction:
    """Build a transfer, or a call that writes a slot and logs it."""
    account = block.account(SENDERS[who])
    nonce = 0 if account is None else account.nonce
    to, value, data = NOBODY, what, b""
    if what % 2:
        to, value, data = SCRIBE, 0, (what % 7).to_bytes(32) + what.to_bytes(32)
    message = Message(
        sender=SENDERS[who],
        to=to,
        value=value,
        data=data,
        gas=200_000,
        max_fee_per_gas=PRICE,
        max_priority_fee_per_gas=10**9,
    )
    return sign_transaction(message, 2, CHAIN_ID, nonce, KEYS[who])


class Following:
    """A follower with its store; records everything it publishes and requests."""

    def __init__(
        self,
        folder: Path,
        bounds: BufferBounds | None = None,
        config: dict[str, Any] = JOVIAN,
        run_bounds: RunBounds | None = None,
        kept: Mapping[str, Any] | None = None,
        clock: DrivenClock | None = None,
    ) -> None:
        """`kept` overrides the default retention of the store."""
        self.folder = folder
        self.run_bounds = run_bounds or RunBounds()
        self.config = config
        self.kept = kept or {}
        self.bounds = bounds or BufferBounds()
        self.clock = clock or DrivenClock()
        self.published: list[Flashblock] = []
        self.wanted: list[bytes] = []
        self.open()

    def open(self) -> None:
        """Start, as a process does."""
        self.store = Store(str(self.folder), write=True, **self.kept)
        self.writer = LedgerWriter(self.store, self.clock, learned=self.begin())
        self.follower = Follower(
            self.writer,
            self.clock,
            self.bounds,
            self.published.append,
            self.wanted.append,
            run_bounds=self.run_bounds,
        )
        self.ledger = Ledger(self.store, clock=self.clock)
        self.commits = 0
        commit = self.writer.commit

        def counted(
            builder: CommitBuilder, latest: Header, pending: int | None, heard_at_ns: int | None
        ) -> None:
            commit(builder, latest, pending, heard_at_ns)
            self.commits += 1

        self.writer.commit = counted  # type: ignore[method-assign]

    def begin(self) -> FetchedState | None:
        """Begin the chain in an empty store; return the fetched state, if partial."""
        begin_chain(self.store, read_genesis(genesis(self.config)))
        return None

    def reopen(self) -> None:
        """Leave all files as they are, as a killed process does, and start again."""
        self.close()
        del self.writer, self.follower, self.ledger
        gc.collect()  # objects that still refer to the store
        self.open()

    def close(self) -> None:
        self.follower.close()
        self.store.close()

    def receive(self, *messages: Flashblock, feed: str = "a") -> None:
        """Receive messages without working in between."""
        for message in messages:
            self.follower.receive(message, feed)
        assert self.follower.counters.get("Failed", 0) == 0, self.follower.last_error

    def run_until_idle(self) -> None:
        """Do all the work behind the head."""
        while self.follower.next_due_ns == 0 or self.store.maintain(1000):
            self.follower.tick()
        assert self.follower.counters.get("Failed", 0) == 0, self.follower.last_error

    def hear(self, *messages: Flashblock, feed: str = "a") -> None:
        """Receive messages one by one, and do the work behind the head after each."""
        for message in messages:
            self.receive(message, feed=feed)
            self.run_until_idle()

    def canonical(self, *blocks: Block) -> None:
        """Receive sealed blocks, and do the work behind the head."""
        for block in blocks:
            self.follower.canonical(block)
            self.run_until_idle()

    @property
    def latest(self) -> int:
        """The number of the latest block."""
        with self.store.view() as view:
            assert view.heads.latest is not None
            return view.heads.latest[0]

    @property
    def pending(self) -> tuple[int, int] | None:
        """Block and index of the current pending flashblock."""
        view = self.ledger.view()
        pending = view.pending
        view.close()
        return None if pending is None else (pending.number, pending.index)

    @property
    def commit(self) -> int:
        """The last commit number used."""
        with self.store.view() as view:
            return view.heads.commit

    def sealed(self, number: int) -> bytes | None:
        """The hash of a sealed block."""
        with self.store.view() as view:
            found = view.sealed(number)
            return None if found is None else found[0]

    def partial(self, message: Flashblock) -> int | None:
        """The number of the partial block that has this message's hash."""
        return self._partial(ByHash(message.diff.block_hash))

    def partial_at(self, number: int, index: int) -> int | None:
        """The number of the partial block at this position."""
        return self._partial(ByIndex(number, index))

    def _partial(self, name: ByHash | ByIndex) -> int | None:
        view = self.ledger.view()
        try:
            block = view.resolve(name)
            view.state(block)
            return block.partial if isinstance(block, PreconfirmedBlock) else None
        except NotHere:
            return None
        finally:
            view.close()

    def finds(self, raw: bytes) -> bool:
        """Return whether a transaction can be found by its hash."""
        view = self.ledger.view()
        state = view.state(view.pending or view.latest)
        found = state.index(transaction_index_key(keccak256(raw)))
        view.close()
        return found is not None

    def finds_block(self, block_hash: bytes) -> bool:
        """Return whether a sealed block can be found by its hash."""
        view = self.ledger.view()
        try:
            return isinstance(view.resolve(ByHash(block_hash)), SealedBlock)
        except NotHere:
            return False
        finally:
            view.close()

    def expire(self) -> None:
        """Advance time by two block times."""
        self.clock.advance(2 * self.writer.profile.time_step * 10**9)

    def counted(self, what: str) -> int:
        """The count of this event."""
        return self.follower.counters.get(what, 0)


def flat(jobs: Iterable[Built]) -> list[Flashblock]:
    """All messages, in order."""
    return [message for built in jobs for message in built.messages]


def add(buffered: Buffered, feed: str, message: Flashblock, size: int) -> None:
    """Keep a message that takes this many bytes of memory."""
    buffered.keep(Received(feed, size, message))


def take(buffered: Buffered, block: int, payload_id: bytes, index: int) -> list[Flashblock]:
    """Remove and return the messages of one position; several if they differ."""
    taken = buffered.at(block, payload_id, index)
    for each in taken:
        buffered.remove(each)
    return [each.message for each in taken]


def held(buffered: Buffered, block: int, payload_id: bytes) -> tuple[Content, ...]:
    """The messages kept of a job."""
    return buffered.held_by_job(lambda _: False).get((block, payload_id), ())


def forget_through(buffered: Buffered, block: int) -> None:
    """Discard the messages of this height and of lower ones."""
    for each in buffered:
        if each.message.block_number <= block:
            buffered.remove(each)
