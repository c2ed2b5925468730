"""The witness of a sealed block: the part of its parent's state that executing it needs.

The block is verified once more, above a state that records its reads. So the witness has exactly
what verification needs, siblings of deleted nodes included.

Above a partial base it needs more than was read: the ways to all of it in the trie, and that to
the contract whose storage root a header has. What is not known of them is `MissingTrieNodes`.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from foreblock._engine import Allowance, Block
from foreblock.errors import (
    BadBlock,
    DeadlineExceeded,
    IncompleteState,
    MissingNode,
    OverBudget,
    RefusedTrace,
)
from foreblock.ledger.reading.blocks import ReadableBlock, SealedBlock
from foreblock.ledger.reading.stored_block import BlockParts, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.execution import Task, WorkingState
from foreblock.ledger.rules.verification import verify
from foreblock.ledger.tracing.traces import Replay, read_replay
from foreblock.scheduling.steps import Steps, Work

UNUSED_NUMBER: Final = 1 << 63  # of lives of accounts; no commit has it


# Nodes, codes, keys, and the blocks whose hashes were read.
_Needed: TypeAlias = tuple[list[bytes], list[bytes], list[bytes], list[int]]


class ExecutionWitness(Struct, frozen=True):
    """Trie nodes, codes, keys and headers, each encoded as it is hashed."""

    nodes: Sequence[bytes]
    codes: Sequence[bytes]
    keys: Sequence[bytes]  # addresses, each followed by its slots
    headers: Sequence[bytes]  # of ancestors, oldest first; the last is the parent's

    @property
    def size(self) -> int:
        """All bytes of it."""
        parts = (self.nodes, self.codes, self.keys, self.headers)
        return sum(len(each) for part in parts for each in part)


def record_witness(view: LedgerView, block: ReadableBlock) -> Steps[ExecutionWitness]:
    """The witness of a block; raises `RefusedTrace`, and `PrunedState` for old ones.

    Above a partial base `StateMissing`, and `BeforeAnchor` where it needs headers before that.
    """
    if not isinstance(block, SealedBlock):
        raise RefusedTrace(f"block {block.number} is in progress and has no witness yet")
    replay = read_replay(view, block)
    if replay.edits:
        raise RefusedTrace(
            f"accounts were set by hand in block {block.number}, so it cannot be executed"
        )
    stored = read_stored(view, block)
    root = view.root_below(replay.parent_state)
    recorded: _Needed = yield _recording(replay, stored, root)
    nodes, codes, keys, blocks = recorded
    parent = block.number - 1
    first = min((parent, *blocks))
    headers = [view.resolve(number).header.encode() for number in range(first, parent + 1)]
    return ExecutionWitness(nodes, codes, keys, headers)


def _recording(replay: Replay, stored: BlockParts, root: bytes | None) -> Work:
    """Work for a thread: it takes as long as the block did. `root` is as in `State.record`."""

    def record(*, timeout_us: int | None = None, step_us: int | None = None) -> _Needed:
        if step_us is not None:
            raise DeadlineExceeded
        transactions = replay.transactions()
        raws = [each.raw for each in transactions]
        block = replay.block
        task = Task(
            Block(block.header, raws, stored.uncles, stored.withdrawals),
            transactions,
            block.rules,
            replay.parent_rules,
            block.profile,
        )
        recording = replay.parent_state.record(root=root, timeout_us=timeout_us)
        working = WorkingState(recording.overlay(), recording.trie())
        try:
            verify(task, working, UNUSED_NUMBER, Allowance(time_us=timeout_us))
        except OverBudget:
            raise DeadlineExceeded from None
        except MissingNode:
            raise IncompleteState("a witness") from None
        except BadBlock as wrong:
            raise RefusedTrace(f"the block cannot be executed again: {wrong}") from wrong
        return recording.recorded(timeout_us=timeout_us)

    return record
