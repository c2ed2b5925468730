"""The simulated chain so far: its last block, and its state as one overlay above one state.

Changes of one block are visible to the next; nothing is ever written. State roots are
computed only on request, else they are zero. The trie is opened on a thread, because it may
have to be built first; roots of more than a few changes are computed there as well. All
blocks share the gas of one request.
"""

from functools import partial
from typing import Final

from foreblock._engine import Changes, Header, SealedBody, State, StateTrie
from foreblock.ledger.reading.block_context import BlockContext
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.rules.forks import PARIS, Rules
from foreblock.ledger.simulation.simulation_request import SimulationLimits, SimulationRequest
from foreblock.primitives import ZERO_HASH
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class SimulatedChain:
    """A chain of simulated blocks that begins after a block of the real one."""

    def __init__(
        self,
        base: ReadableBlock,
        state: State,
        unused: int,
        request: SimulationRequest,
        limits: SimulationLimits,
        pace: Pace = UNHURRIED,
        root: bytes | None = None,
    ) -> None:
        """Begin after `base`. The store has never used the number `unused` nor any above it.

        Where the state is known in part, `root` is that of the sealed block below it.
        """
        # Fixed.
        self.base: Final = base
        self.profile: Final = base.profile
        self.overlay: Final = state.overlay()
        # The state of a block in progress knows the hashes of those below it only.
        self.overlay.set_block_hash(base.number, base.hash)
        self.validation: Final = request.validation
        self.trace_transfers: Final = request.trace_transfers
        self.pace: Final = pace
        # Changed by every block.
        self.budget = limits.gas  # left for all calls to come
        self.output_left = limits.output  # bytes that they may return
        self.rules = base.rules  # of the parent
        # The context of the last block, if it had no overrides and there is no validation.
        self.usual: BlockContext | None = None
        self._last: SealedBody | None = None
        self._total_difficulty = base.total_difficulty
        self._state: Final = state
        self._root: Final = root
        self._trie: StateTrie | None = None  # opened with the first root
        self.has_roots: Final = request.state_roots  # whether state roots are computed
        self._unused = unused

    @property
    def is_at_base(self) -> bool:
        """Whether nothing is simulated yet."""
        return self._last is None

    @property
    def parent(self) -> Header:
        """The header of the last block."""
        return self.base.header if self._last is None else self._last.header

    def rules_of_next(self, number: int, time: int) -> Rules:
        """The rules of a child; from the first fork by time on every block is merged."""
        merged = self.profile.merged(self._total_difficulty)
        forks = self.profile.forks_by_time
        merged = merged or bool(forks and time >= forks[0][0])
        return self.profile.rules(number, time, merged=merged)

    def state_root(self) -> Steps[bytes]:
        """The root of the state as it is now."""
        if not self.has_roots:
            return ZERO_HASH
        if self._trie is None:
            # It may have to be built from deltas, or from the whole state.
            self._trie = yield partial(_open, self._state, self._root)
        # Lives of accounts that begin after this root must not be taken for those before.
        changes = self.overlay.take(self._unused)
        self._unused += 1
        if changes.entries <= THRESHOLDS.rooted_entries:
            return _root(self._trie, changes)
        root: bytes = yield partial(_root, self._trie, changes)
        return root

    def extend(self, block: SealedBody, rules: Rules) -> None:
        """Append a finished block."""
        self.rules = rules
        self._last = block
        if rules.ethereum < PARIS:
            self._total_difficulty += block.header.difficulty


def _open(state: State, root: bytes | None, **_limits: int | None) -> StateTrie:
    """The trie of a state; it cannot be interrupted, and changes nothing."""
    return state.trie(root=root)


def _root(trie: StateTrie, changes: Changes, **_limits: int | None) -> bytes:
    """The root after the changes; it cannot be interrupted, and grows with their number."""
    trie.apply(changes)
    return trie.root()
