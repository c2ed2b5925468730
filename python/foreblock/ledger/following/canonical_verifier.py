"""Sealed blocks from a canonical source: executed here, and verified to the state root.

Block after block on the state in memory, as an import does; nothing is stored. A block that
follows the last one may be executed on the same state before anything is committed. After a
`BadBlock` or `OverBudget` the verifier must be discarded.

A block that took too much may still be the chain's: it is tried again with twice the
allowance, up to a limit. In between nothing of the source is executed for many times as long
as the failed try took, so that a source that lies takes a small share of its network's time.
The tries of a block that waits for state share one allowance, and their time counts as well
until the block proves true.
Blocks that are known here already need no execution and are sealed meanwhile.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from foreblock._engine import Allowance, Block, Header, MissingKeys, Store
from foreblock.clock import Clock
from foreblock.errors import BadBlock, ExecutionError, OverBudget, StateMissing
from foreblock.ledger.building.parent_state import NamedRoots, ParentState, StateRoots, on_sealed
from foreblock.ledger.following.bounds import (
    GAS,
    MOST_GROWTH_SEALED,
    MOST_WAITING_NS,
    PART_IN_VAIN,
    PRICE_OF_BLOCK,
    Debt,
    RunBounds,
    Tried,
)
from foreblock.ledger.following.call_templates import CallTemplates, want_predicted
from foreblock.ledger.following.missing_state import (
    MissingNodes,
    MissingState,
    unknown_at_start,
    unknown_in_envelopes,
)
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Task, WorkingState, environment, execute
from foreblock.ledger.rules.post_exec import stated_refunds
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import (
    Verified,
    check_and_finish,
    check_before_execution,
)

MOST_REMEMBERED: Final = 64  # blocks that overran or wait; on overflow all are forgotten
MOST_FAILURES: Final = 32

T = TypeVar("T")


class CanonicalVerifier:
    """Blocks that follow a sealed one, none of them stored yet."""

    def __init__(
        self,
        store: Store,
        profile: ChainProfile,
        fork: int,
        *,
        computes: bool = False,
        nodes: Sequence[bytes] = (),
        after: bytes | None = None,
        templates: CallTemplates | None = None,
    ) -> None:
        """`fork` is the sealed block that the first follows.

        Where the state is known in part, roots are computed on request, with `nodes`
        that were fetched for it and the announced root `after` the first block; otherwise blocks
        are sealed by name. `templates` say what calls will read.
        """
        self._templates: Final = templates
        parent_state = on_sealed(store, profile, fork)
        self._view: Final = parent_state.view
        self._profile: Final = profile
        self.parent: Header = parent_state.parent  # of the next block
        self._parent_rules = parent_state.parent_rules
        self._is_partial: Final = isinstance(parent_state.roots, NamedRoots)
        trie = None if self._is_partial else parent_state.roots.hand_over()
        if self._is_partial and computes:
            with store.view() as view:
                is_latest = view.heads.latest == (fork, parent_state.parent.hash)
            if is_latest:  # a branch that begins lower is sealed by name
                trie = store.trie(root=parent_state.parent.state_root)
                trie.fill(list(nodes), after)
        self._state: Final = WorkingState(parent_state.overlay, trie)

    @property
    def computes(self) -> bool:
        """True if roots are computed here and not taken from headers."""
        return self._state.trie is not None

    def check(self, block: Block) -> Task:
        """The task to execute, if the block is whole and may follow the last."""
        profile, header = self._profile, block.header
        most = MOST_GROWTH_SEALED * self.parent.gas_limit
        Check(header.number).at_most("gas used", most, header.gas_used)
        # Followers begin after the merge, but for those that begin at any block of a chain.
        merged = not self._is_partial or self._parent_rules.merged or header.difficulty == 0
        rules = profile.rules(header.number, header.timestamp, merged=merged)
        ancestors = None if self._is_partial else ()  # some are before the anchor
        return check_before_execution(
            block, rules, self.parent, self._parent_rules, profile, ancestors
        )

    def verify(self, task: Task, number: int, allowance: Allowance) -> Verified | MissingState:
        """Execute a block, which will be stored as `number`, and verify its header.

        If the state is known in part, return the missing keys instead: the verifier must be
        discarded then.
        """
        try:
            self._state.number = number
            execution = execute(task, self._state, allowance)
            unproven = self._nodes(task)
            if unproven:
                return unproven
            verified = check_and_finish(task, execution, self._state)
        except StateMissing as missing:
            return self._unknown(task, missing.misses, allowance)
        except OverBudget as over:
            if over.what == GAS:
                task.check.fail("gas used", task.block.header.gas_used, "more")
            raise
        self.parent, self._parent_rules = task.block.header, task.rules
        return verified

    def _unknown(self, task: Task, missed: MissingKeys, allowance: Allowance) -> MissingState:
        """The unknown state that a block needs: what it missed, and predicted reads."""
        overlay, header = self._state.overlay, task.block.header
        wanted = unknown_at_start(overlay, header, task.rules)
        if wanted:  # none of its transactions has run
            wanted.need(missed)
            env = environment(header, task.rules, task.profile)
            missed = overlay.probe(env, task.transactions, allowance)
        wanted.need(missed)
        wanted.merge(unknown_in_envelopes(overlay, task.transactions, task.rules))
        if self._templates is not None:
            want_predicted(self._templates, overlay, task.transactions, missed, wanted)
        return wanted

    def _nodes(self, task: Task) -> MissingState:
        """The trie nodes that the root of an executed block needs and that are not known.

        A key that is deleted needs a node beside it: it is in the proof of its absence, after.
        """
        wanted, trie = MissingState(), self._state.trie
        if self._is_partial and trie is not None:
            needed = trie.needs(self._state.collect())
            header = task.block.header
            if needed.before:
                wanted.nodes.append(MissingNodes.at(self.parent, needed.before))
            if needed.after:
                wanted.nodes.append(MissingNodes.at(header, needed.after))
        return wanted

    def as_parent(self) -> ParentState:
        """The state that a block after the last one begins on; nothing can be verified then."""
        trie = self._state.trie
        return ParentState(
            profile=self._profile,
            parent=self.parent,
            parent_rules=self._parent_rules,
            previous=None,
            view=self._view,
            overlay=self._state.overlay,
            roots=NamedRoots() if trie is None else StateRoots(lambda: trie),
        )

    def close(self) -> None:
        self._view.close()


class BoundedBlocks:
    """The allowances of blocks that the canonical source sends, and its rests."""

    def __init__(self, clock: Clock, bounds: RunBounds) -> None:
        self._clock: Final = clock
        self._bounds: Final = bounds
        self._failures: dict[bytes, int] = {}  # how often a block overran, by hash
        self._tried: dict[bytes, Tried] = {}  # that wait for state, by hash
        self._waiting = Debt()
        self._rests_until_ns = 0

    def rests(self) -> bool:
        """True while nothing is executed."""
        return self._clock.monotonic_ns() < self._rests_until_ns

    def verify(
        self, verifier: CanonicalVerifier, task: Task, number: int
    ) -> Verified | MissingState:
        """Verify a block within its allowance; `BadBlock`, `ExecutionError`, `OverBudget`."""
        header, bounds = task.block.header, self._bounds
        failures = self._failures.get(header.hash, 0)
        tried = self._tried.pop(header.hash, None)
        if tried is None:
            gas_limit = verifier.parent.gas_limit
            last = task.block.transactions[-1] if task.block.transactions else None
            gas_used = header.gas_used + sum(gas for _, gas in stated_refunds(last))
            tried = Tried(bounds.of_block(gas_used, gas_limit, failures), 0)
        begun = self._clock.monotonic_ns()
        try:
            result = verifier.verify(task, number, tried.allowance)
        except (BadBlock, ExecutionError) as failed:
            now = self._clock.monotonic_ns()
            self._rests_until_ns = now + (now - begun + tried.took_ns) * PRICE_OF_BLOCK
            if isinstance(failed, OverBudget):
                _remember(self._failures, header.hash, min(failures + 1, MOST_FAILURES))
            raise
        now = self._clock.monotonic_ns()
        if isinstance(result, MissingState):
            self._wait(header.hash, tried, now, now - begun)
        elif tried.took_ns:
            self._waiting.add(now, -tried.took_ns)
        return result

    def _wait(self, block_hash: bytes, tried: Tried, now_ns: int, took_ns: int) -> None:
        """Keep what is left to a block that waits for state."""
        tried.allowance.pause()
        _remember(self._tried, block_hash, Tried(tried.allowance, tried.took_ns + took_ns))
        debt = self._waiting.add(now_ns, took_ns)
        if debt > MOST_WAITING_NS:
            self._waiting = Debt()
            self._rests_until_ns = now_ns + debt * PART_IN_VAIN


def _remember(known: dict[bytes, T], block_hash: bytes, what: T) -> None:
    if len(known) >= MOST_REMEMBERED:
        known.clear()
    known[block_hash] = what
