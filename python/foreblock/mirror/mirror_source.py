"""The source of a mirror: a dev chain that takes over the blocks of the real chain.

`real_changed` says that there may be more of them; the next ticks take them over, one step each, so
that local transactions come in between. If the real chain begins again at another block, so does
the mirror: its local state stays, its blocks do not.
"""

from typing import Final

import structlog
from msgspec import structs

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import EndpointError, NotHere, PoolRefusal, StoreClosed
from foreblock.follow.learned_state import KnownValues
from foreblock.ledger.building.real_index import (
    RealBlock,
    RealIndex,
    hash_of,
    read_blocks,
    read_real_index,
)
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.storage.mirror_rows import REAL
from foreblock.ledger.storage.open_store import View
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.mirror.mirrored_state import MirroredState, RealChain
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.mirroring import Mirroring
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import NO_WATCHERS, DevChainSource, ForkedBase, Watchers
from foreblock.types import Account, Allowance, Transaction

RETRY_NS: Final = SECOND_NS  # after a step that could not be made

log = structlog.get_logger()


class MirrorSource(DevChainSource):
    """A sequencer with its store that mirrors the chain in another store."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        real: RealChain,
        seen: SeenCommit | None = None,
        watchers: Watchers = NO_WATCHERS,
    ) -> None:
        """Start the mirror, or continue it. Raises `ForeblockError`."""
        self._real: Final = real
        self.mirrored: Final = MirroredState(network, real)
        self._step_due_ns: int | None = 0
        super().__init__(network, clock, _NO_FEED, seen, watchers, fork=self.mirrored)

    def _first_state(self, fork: ForkedBase | None) -> DevState:
        return structs.replace(super()._first_state(fork), mining="mirror", also_clock=False)

    @property
    def _mirroring(self) -> Mirroring:
        return self._sequencer.mirroring

    def real_changed(self) -> None:
        """Take over what is new on the real chain; on any thread."""
        self._step_due_ns = 0

    @property
    def next_due_ns(self) -> int:
        """When `tick` has something to do, in monotonic time."""
        step_due_ns, due_ns = self._step_due_ns, super().next_due_ns
        return due_ns if step_due_ns is None else min(step_due_ns, due_ns)

    def take(self, transaction: Transaction, *, may_replace: bool) -> None:
        """Submit a decoded transaction; real blocks do not wait while its state is fetched."""
        while missing := self._sequencer.builder.block.unknown([transaction], Allowance()):
            self.mirrored.find(missing)
            self._take_over()
        self._sequencer.submit(transaction, may_replace=may_replace)

    def tick(self) -> None:
        """Take over a part of the real chain, or do what else is due."""
        if not self._take_over():
            super().tick()

    def _take_over(self) -> bool:
        """Make a step if one is due; returns False if none is."""
        step_due_ns = self._step_due_ns
        if step_due_ns is None or step_due_ns > self._clock.monotonic_ns():
            return False
        self._step_due_ns = None  # a change from now on sets it again
        try:
            if self._step():
                self._step_due_ns = 0
        except (EndpointError, NotHere, StoreClosed) as why:
            log.warning("mirror_waits", why=str(why))
            self._sequencer.discard_uncommitted()
            self._step_due_ns = self._clock.monotonic_ns() + RETRY_NS
        self._notify_printer()
        return True

    # --- Steps -------------------------------------------------------------------------

    def _step(self) -> bool:
        """Take over the next part of the real chain; returns False if there is none."""
        mirror = self._mirroring
        with self._real.store.view() as real:
            if self._waits_for_next(real):
                return False
            why = self._why_apart(real)
            if why:
                self._restart(why)
                return True
            fork = self._fork_with(real)
            first = mirror.block if fork is None else fork + 1
            blocks = read_blocks(real, first)
            if not blocks:
                return False
            block, *later = blocks
            if fork is not None:
                log.info("mirror_reorganized", block=first)
                mirror.roll_back(fork, block.base, self._read(real, block, None))
            elif not block.follows(mirror.taken):
                mirror.restart(block.base, self._read(real, block, None))
            elif mirror.taken != block.end:
                mirror.extend(self._read(real, block, block.since(mirror.taken)))
            elif later:
                base = later[0].base
                mirror.seal(base.parent_hash, base, self._read(real, later[0], None))
            else:
                return False
            return True

    def _read(self, real: View, block: RealBlock, since: int | None) -> RealIndex:
        """Read the part of a block after this partial, and learn the state before it."""
        optimism = self._writer.profile.optimism is not None
        index = read_real_index(real, block, since, optimism=optimism)
        self.mirrored.know(index)
        return index

    def _fork_with(self, real: View) -> int | None:
        """The last block in common, if the mirror has others above it; None if it has not."""
        assert real.heads.latest is not None, "a followed chain has its anchor"
        number, base = min(self._mirroring.block - 1, real.heads.latest[0]), self._writer.first
        fork = number
        while fork > base and self._mirroring.real_hash(fork) != hash_of(real, fork):
            fork -= 1
        if fork < number:
            return fork
        if number == self._mirroring.block - 1:
            return None
        # The mirror has sealed blocks that are not sealed there.
        above = read_blocks(real, number + 1)
        for each in above[1:]:
            below = each.base.block_number - 1
            known = self._mirroring.real_hash(below)
            if known not in {None, each.base.parent_hash}:
                return below - 1
        return None

    def _waits_for_next(self, real: View) -> bool:
        """Return True if the real chain began again elsewhere, and has no block after that."""
        latest, base = real.heads.latest, real.heads.base
        assert latest is not None, "a followed chain has its anchor"
        if base.is_complete or latest[0] > base.number:
            return False
        return self._mirroring.real_hash(base.number) != base.hash

    def _why_apart(self, real: View) -> str:
        """Why the mirror cannot go on from its blocks; empty if it can."""
        assert real.heads.latest is not None, "a followed chain has its anchor"
        with self.store.view() as view:
            if view.row(REAL) != real.heads.store_id:
                return "the store of the real chain is another one"
        latest, kept = self._writer.latest.number, self._network.keep.partials
        lowest = max(self._writer.first, latest - kept + 1)
        at = min(latest, real.heads.latest[0])
        if at < lowest or at < real.heads.base.number:
            return "the real chain continues elsewhere"
        while at > lowest and self._mirroring.real_hash(at) != hash_of(real, at):
            at -= 1
        if self._mirroring.real_hash(at) != hash_of(real, at):
            return "the real chain replaced more blocks than are kept"
        return ""

    # --- Beginning again ---------------------------------------------------------------

    def _restart(self, why: str) -> None:
        """Begin again below the latest real block, with all that was written locally."""
        sequencer = self._sequencer
        sequencer.changes.flush()
        waiting = list(sequencer.builder.pooled())
        self.mirrored.prepare_restart(self._local_values())
        sequencer.mining.begin_branch()
        self._writer.refresh()
        self._writer.close()
        self.mirrored.restart(self.store)
        try:
            self._begin()
        except EndpointError as failed:  # there is no way back: the network has to restart
            raise RuntimeError(f"the mirror cannot continue: {failed}") from failed
        for each in waiting:
            try:
                self._sequencer.submit(each)
            except PoolRefusal as refusal:
                self._sequencer.builder.note_dropped(each, str(refusal))
        log.warning("mirror_restarted", block=self._writer.first, why=why)
        self._print()

    def _local_values(self) -> KnownValues:
        """The accounts and slots that were written locally, as they are."""
        overlay = self._sequencer.builder.block.overlay
        accounts: dict[bytes, Account | None] = {}
        slots: dict[bytes, dict[int, int]] = {}
        codes = []
        for address, slot in self._mirroring.written():
            if slot is None:
                accounts[address] = overlay.account(address)
                codes.append(overlay.code(address))
            else:
                slots.setdefault(address, {})[slot] = overlay.storage(address, slot)
        return KnownValues(accounts, slots, [each for each in codes if each])


def _ignore(_: object) -> None:
    pass


# A mirror has no feed: who follows it could not execute the real transactions.
_NO_FEED: Final = FeedSink(_ignore, _ignore)
