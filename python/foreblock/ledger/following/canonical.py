"""Sealed blocks of the canonical chain: what they prove, replace or add.

A block that one of our partials seals as is sealed by that, without execution. Any other is
executed and verified to the state root; then it stands in the place of ours. A block whose
parent is not known waits, and the parent is asked for.
"""

from collections.abc import Callable, Sequence
from typing import Final

from foreblock._engine import Block
from foreblock.errors import BadBlock, ExecutionError, OverBudget
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.canonical_verifier import BoundedBlocks, CanonicalVerifier
from foreblock.ledger.following.served_chain import Branches
from foreblock.ledger.following.verdict import Applied
from foreblock.ledger.following.waiting_blocks import WaitingBlocks
from foreblock.ledger.rules.verification import Verified

Learn = Callable[[int, bytes], bool]


class Canonical:
    """What the canonical source has sent of one network."""

    def __init__(
        self,
        writer: LedgerWriter,
        branches: Branches,
        blocks: BoundedBlocks,
        learn: Learn,
        wanted: Callable[[bytes], None],
        count: Callable[[str], None],
    ) -> None:
        """`learn` finds out whether a partial of a height seals as a hash."""
        self._writer: Final = writer
        self._branches: Final = branches
        self._blocks: Final = blocks
        self._learn: Final = learn
        self._wanted: Final = wanted
        self._count: Final = count
        self._waiting: Final = WaitingBlocks()

    def take_in(self, block: Block, later: Sequence[Block] = ()) -> str | None:
        """Take in a block, and those that waited for it; gives what is wrong, if anything.

        Those that come with it wait for it, and are in one commit with it where they fit.
        """
        for each in later:
            self._waiting.add(each)
        if not self._is_known(block) and not self._is_parent_sealed(block):
            self._waiting.add(block)
            self._wanted(block.header.parent_hash)
            return None
        error = None
        following: Block | None = block
        while following is not None and error is None:
            error, last = self._seal(following)
            following = None if last is None else self._waiting.take(last)
        self._waiting.forget_through(self._branches.latest.number)
        return error

    def _is_parent_sealed(self, block: Block) -> bool:
        """Whether the parent is sealed, for which the block itself may be the proof."""
        below, parent_hash = block.header.number - 1, block.header.parent_hash
        if below < 0 or self._sealed(below) == parent_hash:
            return below >= 0
        if below <= self._branches.latest.number or not self._learn(below, parent_hash):
            return False
        parent = self._branches.sealing_as(below, parent_hash)
        return parent is not None and isinstance(self._branches.seal(parent), Applied)

    def _seal(self, block: Block) -> tuple[str | None, bytes | None]:
        """Seal a block whose parent is sealed: what is wrong, and the hash of the last sealed."""
        number, branches = block.header.number, self._branches
        if self._is_known(block):
            branches.settle(number)
            return None, block.hash
        if self._learn(number, block.hash):
            ours = branches.sealing_as(number, block.hash)
            if ours is not None and isinstance(branches.seal(ours), Applied):
                self._count("SealedByCanonical")
                branches.settle(number)
                return None, block.hash
        return self._append(block)

    def _append(self, block: Block) -> tuple[str | None, bytes | None]:
        """Execute a block and those that wait for it, and seal them in one commit."""
        branches, fork = self._branches, block.header.number - 1
        if self._blocks.rests():
            return "canonical: what it sends is not executed for a while, as it was in vain", None
        branches.flush()
        with self._writer.store.view() as view:
            if fork < view.heads.earliest:
                return f"canonical: block {fork} is needed, and its state is not kept", None
        verifier = CanonicalVerifier(self._writer.store, self._writer.profile, fork)
        verified: list[Verified] = []
        following: Block | None = block
        error = None
        while following is not None and error is None:
            error = self._verify(verifier, following, verified)
            following = None if error else self._waiting.take(following.hash)
        if not verified:
            verifier.close()
            return error, None
        branches.append(verifier, verified, fork)
        self._count("SealForeign")
        last = verified[-1].block
        branches.settle(last.header.number)
        return error, last.hash

    def _verify(
        self, verifier: CanonicalVerifier, block: Block, verified: list[Verified]
    ) -> str | None:
        try:
            task = verifier.check(block)
        except BadBlock as bad:
            self._count("BadCanonical")
            return f"canonical: {bad}"
        number = self._branches.draft.next + len(verified)
        try:
            verified.append(self._blocks.verify(verifier, task, number))
        except OverBudget as over:
            self._count("CanonicalOverrun")
            return f"canonical: block {block.header.number}: {over}"
        except (BadBlock, ExecutionError) as bad:
            # The block is whole, so what this engine makes of it, and of ours, is not right.
            self._count("CanonicalDiverged")
            number = block.header.number
            if number == self._branches.latest.number + 1:
                self._branches.drop_from(number, "execution here differs from the canonical one")
            return f"canonical: {bad}"
        return None

    def _is_known(self, block: Block) -> bool:
        return self._sealed(block.header.number) == block.hash

    def _sealed(self, number: int) -> bytes | None:
        """The hash of a sealed block, as the draft has it."""
        if number > self._branches.latest.number:
            return None
        known = self._branches.sealed.get(number)
        if known is not None:
            return known
        with self._writer.store.view() as view:
            sealed = view.sealed(number)
        return None if sealed is None else sealed[0]
