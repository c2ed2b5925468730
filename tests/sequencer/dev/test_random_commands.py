"""Dev chains under random commands, transactions and kills, compared with a plain model.

After every step nonces and balances equal the model's: at pending, at latest and below. At the end
every sealed block passes the rules of the import, and a follower that received every message of the
feed has the same blocks once it gets those of the chain.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock._engine import Store
from foreblock.bus.commands import (
    CloseFlashblock,
    Command,
    DropTail,
    Equivocate,
    IncreaseTime,
    Mine,
    Reorganize,
    Reset,
    RestartBlock,
    Revert,
    Rollback,
    SetFaults,
    SetFlashblockInterval,
    SetMining,
    SetNextTimestamp,
    SetTimestampInterval,
    TakeSnapshot,
)
from foreblock.errors import RefusedCommand
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.storage.open_store import begin_chain
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, DevChain, send

Sent = tuple[int, int, bytes]  # the account, its nonce, the raw transaction


@dataclass
class DevModel:
    """The transactions of a chain: by block, and waiting ones.

    The model has no flashblocks, jobs or rows. A transaction transfers one wei from an account to a
    recipient of its own, so nonces and balances follow from the list. `seal` takes the chain's
    sealed block, and rejects an impossible one.
    """

    blocks: list[list[Sent]] = field(default_factory=list)  # sealed, block 1 first
    open: list[Sent] = field(default_factory=list)  # in the block in progress
    waiting: dict[tuple[int, int], Sent] = field(default_factory=dict)  # by account and nonce

    def copy(self) -> "DevModel":
        return deepcopy(self)

    @property
    def height(self) -> int:
        return len(self.blocks)

    def nonces(self, height: int | None = None) -> Counter[int]:
        """The number of transactions of each account up to a block, or of all executed ones."""
        some = self.blocks if height is None else self.blocks[:height]
        counted = Counter(who for block in some for who, _, _ in block)
        if height is None:
            counted.update(who for who, _, _ in self.open)
        return counted

    def next_nonce(self, who: int) -> int:
        """The nonce after all executed and executable transactions."""
        nonce = self.nonces()[who]
        while (who, nonce) in self.waiting:
            nonce += 1
        return nonce

    def send(self, sent: Sent) -> None:
        self.waiting[sent[:2]] = sent

    def run(self) -> None:
        """Include every executable transaction in the block in progress."""
        nonces, found = self.nonces(), True
        while found:
            found = False
            for key in sorted(self.waiting):
                who, nonce = key
                if nonce == nonces[who]:
                    self.open.append(self.waiting.pop(key))
                    nonces[who] += 1
                    found = True

    def requeue(self, some: Sequence[Sent]) -> None:
        for each in some:
            self.waiting[each[:2]] = each

    def go_back(self, height: int, *, lost: bool) -> None:
        """Keep only blocks up to this one; transactions of others wait again or are lost."""
        given_up = [each for block in self.blocks[height:] for each in block]
        del self.blocks[height:]
        self.requeue(self.open)
        self.open = []
        if not lost:
            self.requeue(given_up)
        self.run()

    def seal(self, blocks: Sequence[Sequence[bytes]]) -> None:
        """Seal these blocks, from executed transactions."""
        for raws in blocks:
            ran = {each[2]: each for each in self.open}
            assert set(raws) <= set(ran), "a block has what ran, and nothing else"
            nonces = self.nonces(self.height)
            for raw in raws:
                who, nonce, _ = ran[raw]
                assert nonce == nonces[who], "in the order of the nonces"
                nonces[who] += 1
            self.blocks.append([ran[raw] for raw in raws])
            self.open = [each for each in self.open if each[2] not in set(raws)]


SENDERS = ACCOUNTS[:3]
PAID = [bytes([0xD0 + each]) * 20 for each in range(len(SENDERS))]
DEPOSIT = 0x7E

small = st.integers(0, 4)
action = st.one_of(
    st.tuples(st.just("send"), st.integers(0, len(SENDERS) - 1), st.sampled_from([0, 0, 0, 1])),
    st.tuples(st.just("send"), st.integers(0, len(SENDERS) - 1), st.just(0)),
    st.tuples(st.just("pass"), st.sampled_from([50, 250, 1_000, 5_000])),
    st.tuples(st.just("mode"), st.sampled_from(["clock", "automine", "manual"]), st.booleans()),
    st.tuples(st.just("interval"), st.sampled_from([0, 200])),
    st.tuples(st.just("mine"), st.integers(1, 3), st.sampled_from([None, 5])),
    st.tuples(st.just("time"), st.sampled_from(["later", "next", "apart", "clock"])),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("revert"), small),
    st.tuples(st.just("reset")),
    st.tuples(st.just("rollback"), small),
    st.tuples(st.just("reorg"), small, st.booleans()),
    st.tuples(st.just("restart")),
    st.tuples(st.just("tail")),
    st.tuples(st.just("equivocate")),
    st.tuples(st.just("faults"), st.sampled_from(["", "restart", "tail", "equivocate", "reorg"])),
    st.tuples(st.just("kill")),
)


class Follow:
    """A follower of the chain, which receives its messages as they are published."""

    def __init__(self, folder: Path, chain: DevChain) -> None:
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, chain.genesis)
        writer = LedgerWriter(self.store, chain.clock)
        publish, wanted = (lambda _: None), (lambda _: None)
        self.follower = Follower(writer, chain.clock, BufferBounds(), publish, wanted)
        self.chain = chain
        self.heard = 0

    def hear(self) -> None:
        for message in self.chain.published[self.heard :]:
            self.follower.receive(message, "feed")
        self.heard = len(self.chain.published)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        while self.follower.next_due_ns == 0:
            self.follower.tick()
        assert self.follower.counters.get("Failed", 0) == 0, self.follower.last_error

    def end_with(self, chain: DevChain) -> None:
        """Receive the blocks of the chain, as from its upstream node."""
        first, *later = chain.sealed()
        self.follower.canonical(first, later)
        for block in later:
            self.follower.canonical(block)
        self.run_until_idle()
        with self.store.view() as view:
            for block in (first, *later):
                sealed = view.sealed(block.header.number)
                assert sealed is not None
                assert sealed[0] == block.hash
        self.follower.close()
        self.store.close()


class Trial:
    """A chain, its model, and a follower."""

    def __init__(self, folder: Path) -> None:
        self.chain = DevChain(folder / "store", mining="automine")
        self.model = DevModel()
        self.follow = Follow(folder / "followed", self.chain)
        self.snapshots: dict[int, DevModel] = {}
        self.hashes: list[bytes] = []  # of the sealed blocks, at the last check
        self.highest = 0
        self.commit = 0
        self.sent = 0

    # --- Actions -----------------------------------------------------------------------

    def do(self, name: str, *arguments: object) -> None:
        getattr(self, f"do_{name}")(*arguments)
        if self.chain.sequencer.mining.state.mining != "automine":
            self.chain.execute(CloseFlashblock())
        self.check()

    def execute(self, command: Command) -> bool:
        """Execute a command; return whether it succeeded."""
        try:
            self.chain.execute(command)
        except RefusedCommand:
            return False
        return True

    def do_send(self, who: int, gap: int) -> None:
        nonce = self.model.next_nonce(who) + gap
        if (who, nonce) in self.model.waiting:
            return
        self.sent += 1
        # All transactions differ, even with the nonce of a dropped one.
        transaction = send(SENDERS[who], nonce, PAID[who], gas=21_000 + self.sent)
        self.model.send((who, nonce, transaction.raw))
        self.model.run()
        self.chain.submit(transaction)

    def do_pass(self, milliseconds: int) -> None:
        self.chain.run(milliseconds)

    def do_mode(self, mining: str, also_clock: bool) -> None:
        self.execute(SetMining(mining, None, mining == "automine" and also_clock))  # type: ignore[arg-type]
        self.chain.run_until_idle()

    def do_interval(self, milliseconds: int) -> None:
        self.execute(SetFlashblockInterval(milliseconds))

    def do_mine(self, blocks: int, interval: int | None) -> None:
        self.execute(Mine(blocks, interval))

    def do_time(self, what: str) -> None:
        sequencer = self.chain.sequencer
        match what:
            case "later":
                self.execute(IncreaseTime(100))
            case "next":
                self.execute(SetNextTimestamp(sequencer.builder.parent.timestamp + 7))
            case "apart":
                self.execute(SetTimestampInterval(3))
            case _:
                self.execute(SetTimestampInterval(None))

    def do_snapshot(self) -> None:
        taken = self.chain.execute(TakeSnapshot())
        assert taken not in self.snapshots
        self.snapshots[taken] = self.model.copy()

    def do_revert(self, back: int) -> None:
        ids = sorted(self.snapshots)
        wanted = ids[-1 - back] if back < len(ids) else 1_000
        assert self.chain.execute(Revert(wanted)) is (wanted in ids)
        if wanted in ids:
            self.model = self.snapshots[wanted]
            self.snapshots = {each: self.snapshots[each] for each in ids if each < wanted}

    def do_reset(self) -> None:
        self.execute(Reset())
        self.model, self.snapshots = DevModel(), {}

    def do_rollback(self, depth: int) -> None:
        if self.execute(Rollback(depth)):
            self.gone_back(depth, lost=True)

    def do_reorg(self, depth: int, put_back: bool) -> None:
        if self.execute(Reorganize(depth, put_back=put_back)) and depth:
            self.gone_back(depth, lost=not put_back)

    def gone_back(self, depth: int, *, lost: bool) -> None:
        height = self.model.height - depth
        self.model.go_back(height, lost=lost)
        self.snapshots = {k: each for k, each in self.snapshots.items() if each.height <= height}

    def do_restart(self) -> None:
        self.execute(RestartBlock())

    def do_tail(self) -> None:
        self.execute(DropTail())

    def do_equivocate(self) -> None:
        self.execute(Equivocate())

    def do_faults(self, kind: str) -> None:
        self.execute(SetFaults((f"{kind}=0.5",) if kind else ()))

    def do_kill(self) -> None:
        self.chain.kill()
        self.chain.open()
        self.model.waiting.clear()

    # --- Checks ------------------------------------------------------------------------

    def check(self) -> None:
        model, chain = self.model, self.chain
        with chain.store.view() as view:
            heads = view.heads
            assert heads.latest is not None
            assert heads.commit >= self.commit
            self.commit = heads.commit
            sealed = chain.sealed()
            self.see_replaced([block.hash for block in sealed])
            new = [
                [raw for raw in block.transactions if raw[0] != DEPOSIT]
                for block in sealed[model.height :]
            ]
            model.seal(new)
            assert len(sealed) == model.height
            self.highest = max(self.highest, model.height)
            for height in {0, model.height // 2, model.height}:
                state, nonces = view.state(height), model.nonces(height)
                self.compare([state.balance(each) for each in PAID], nonces)
                self.compare([state.nonce(each.address) for each in SENDERS], nonces)
            assert heads.pending is not None
            state, nonces = view.state_of_partial(heads.pending), model.nonces()
            self.compare([state.balance(each) for each in PAID], nonces)
            self.compare([state.nonce(each.address) for each in SENDERS], nonces)
        waiting = {each.raw for each in chain.sequencer.builder.pooled()}
        assert waiting == {each[2] for each in model.waiting.values()}
        self.follow.hear()

    def see_replaced(self, hashes: list[bytes]) -> None:
        """Update the model for blocks replaced by a fault, in which all transactions have new
        positions.
        """
        pairs = zip(self.hashes[: self.model.height], hashes, strict=False)
        same = sum(1 for _ in takewhile(lambda each: each[0] == each[1], pairs))
        if same < self.model.height:
            assert "reorg=0.5" in self.chain.sequencer.mining.state.faults
            self.gone_back(self.model.height - same, lost=False)
        self.hashes = hashes

    @staticmethod
    def compare(found: list[int], nonces: dict[int, int]) -> None:
        assert found == [nonces[each] for each in range(len(SENDERS))]

    def end(self, folder: Path) -> None:
        self.chain.execute(Mine(self.highest - self.model.height + 1))
        self.check()
        check_by_import(self.chain, folder / "check")
        self.follow.end_with(self.chain)
        self.chain.kill()


@given(st.lists(action, max_size=40))
@settings(max_examples=10)
def test_any_commands_leave_a_chain_as_the_model_says(actions: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trial = Trial(folder)
        for each in actions:
            trial.do(*each)  # type: ignore[arg-type]
        trial.end(folder)


def test_a_long_life(tmp_path: Path) -> None:
    chance = random.Random(7)
    trial = Trial(tmp_path)
    kinds: list[tuple[Any, ...]] = [
        *[("send",)] * 8,
        *[("mine", 1, None), ("snapshot",), ("revert", 0), ("revert", 1), ("pass", 1_000)] * 2,
        *[("rollback", 1), ("reorg", 2, True), ("restart",), ("tail",), ("kill",)],
        *[("mode", each, False) for each in ("clock", "automine", "manual")],
    ]
    for _ in range(300):
        name, *arguments = chance.choice(kinds)
        if name == "send":
            arguments = [chance.randrange(len(SENDERS)), chance.choice([0, 0, 0, 1])]
        trial.do(name, *arguments)
    assert trial.highest > 20
    trial.end(tmp_path)
