"""Sealed blocks of the canonical chain: what they prove, replace or add.

A block that one of our partials seals as is sealed by that, without execution. Any other is
executed and verified to the state root; then it replaces ours. A block whose
parent is not known waits, and the parent is requested.

Where the state is known in part, a block that needs more of it is not taken in; what it needs is
collected, and the caller repeats the block when that is learned.
"""

from collections.abc import Callable, Sequence
from typing import Final

from foreblock._engine import Block
from foreblock.errors import BadBlock, ExecutionError, OverBudget
from foreblock.ledger.following.canonical_verifier import BoundedBlocks, CanonicalVerifier
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.following.sealing import Sealing
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Applied
from foreblock.ledger.rules.profile import rules_end
from foreblock.ledger.rules.verification import Verified

MOST_BLOCKS: Final = 1024
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_FILLED: Final = 64  # blocks that wait for trie nodes
WAITS: Final = "canonical: a block waits for state"

Find = Callable[[int, bytes], bool]


class WaitingBlocks:
    """Sealed blocks that came before their parents, by the hash of the parent.

    A missing parent is requested, then its parent, and so on down to a known block.
    Beyond the bounds the highest is dropped; it can be requested again once those below are
    sealed.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, Block] = {}
        self._size = 0

    def add(self, block: Block) -> None:
        """Keep a block; of two with one parent the later one."""
        self.take(block.header.parent_hash)
        self._blocks[block.header.parent_hash] = block
        self._size += block.size
        while len(self._blocks) > MOST_BLOCKS or self._size > MOST_BYTES:
            highest = max(self._blocks.values(), key=lambda each: each.header.number)
            self.take(highest.header.parent_hash)

    def take(self, parent_hash: bytes) -> Block | None:
        """The block that waited for this parent, which is no longer kept."""
        block = self._blocks.pop(parent_hash, None)
        if block is not None:
            self._size -= block.size
        return block

    def forget_through(self, number: int) -> None:
        """Keep nothing of this height and those below."""
        for block in list(self._blocks.values()):
            if block.header.number <= number:
                self.take(block.header.parent_hash)


class Canonical:
    """Takes in the blocks of a network's canonical source."""

    def __init__(
        self,
        chain: ServedChain,
        sealing: Sealing,
        blocks: BoundedBlocks,
        find_job_sealing_as: Find,
        wanted: Callable[[bytes], None],
    ) -> None:
        """`wanted` asks the source for a block by its hash."""
        self._chain: Final = chain
        self._sealing: Final = sealing
        self._blocks: Final = blocks
        self._find_job_sealing_as: Final = find_job_sealing_as
        self._wanted: Final = wanted
        self._waiting: Final = WaitingBlocks()
        self._nodes: dict[bytes, list[bytes]] = {}  # fetched for the roots of blocks, by their hash

    def take_in(self, block: Block, later: Sequence[Block] = ()) -> str | None:
        """Take in a block, and those that waited for it; returns what is wrong, if anything.

        Those that come with it wait for it, and are in one commit with it where they fit.
        """
        for each in later:
            self._waiting.add(each)
            self._chain.announce(each.header)
        self._chain.announce(block.header)
        if not self._is_known(block) and not self._is_parent_sealed(block):
            self._waiting.add(block)
            self._wanted(block.header.parent_hash)
            return None
        error = None
        following: Block | None = block
        while following is not None and error is None:
            error, last = self._seal(following)
            following = None if last is None else self._waiting.take(last)
        self._waiting.forget_through(self._chain.latest.number)
        return error

    def fill(self, block_hash: bytes, nodes: Sequence[bytes]) -> None:
        """Take trie nodes that the root of a block needs, for when it is taken in again."""
        if len(self._nodes) >= MOST_FILLED:
            self._nodes.clear()
        self._nodes.setdefault(block_hash, []).extend(nodes)

    def _is_parent_sealed(self, block: Block) -> bool:
        """True if the parent is sealed; the block itself may be the proof."""
        below, parent_hash = block.header.number - 1, block.header.parent_hash
        if below < 0 or self._sealed(below) == parent_hash:
            return below >= 0
        if below <= self._chain.latest.number or not self._find_job_sealing_as(below, parent_hash):
            return False
        parent = self._chain.step_sealing_as(below, parent_hash)
        return parent is not None and isinstance(self._sealing.seal(parent), Applied)

    def _seal(self, block: Block) -> tuple[str | None, bytes | None]:
        """Seal a block whose parent is sealed: what is wrong, and the hash of the last sealed."""
        number, chain = block.header.number, self._chain
        if self._is_known(block):
            chain.confirm(number)
            return None, block.hash
        if self._find_job_sealing_as(number, block.hash):
            ours = chain.step_sealing_as(number, block.hash)
            if ours is not None and isinstance(self._sealing.seal(ours), Applied):
                self._chain.count("SealedByCanonical")
                chain.confirm(number)
                return None, block.hash
        return self._append(block)

    def _append(self, block: Block) -> tuple[str | None, bytes | None]:
        """Execute a block and those that wait for it, and seal them in one commit."""
        chain, fork = self._chain, block.header.number - 1
        end = rules_end(fork + 1, block.header.timestamp, block.transactions, {}, chain.profile)
        if end is not None:
            chain.count("Unsupported")
            return f"canonical: unknown rules: block {end.block}: {end.why}", None
        if self._blocks.rests():
            return "canonical: execution is paused after failed blocks", None
        chain.flush()
        with self._chain.store.view() as view:
            if fork < view.heads.earliest:
                return f"canonical: block {fork} is needed, and its state is not kept", None
        verifier = CanonicalVerifier(
            self._chain.store,
            self._chain.profile,
            fork,
            computes=self._chain.computes,
            nodes=self._nodes.get(block.hash, ()),
            after=block.header.state_root,
            templates=self._chain.runs.templates,
        )
        verified: list[Verified] = []
        following: Block | None = block
        error = None
        while following is not None and error is None:
            error = self._verify(verifier, following, verified)
            following = None if error else self._waiting.take(following.hash)
        if not verified:
            verifier.close()
            return error, None
        self._sealing.append(verifier, verified, fork)
        self._chain.count("SealForeign")
        last = verified[-1].block
        chain.confirm(last.header.number)
        if error is not None:
            chain.flush()  # the verifier has seen parts of another block
        return error, last.hash

    def _verify(
        self, verifier: CanonicalVerifier, block: Block, verified: list[Verified]
    ) -> str | None:
        try:
            task = verifier.check(block)
        except BadBlock as bad:
            self._chain.count("BadCanonical")
            return f"canonical: {bad}"
        number = self._chain.builder.next + len(verified)
        try:
            result = self._blocks.verify(verifier, task, number)
            if isinstance(result, MissingState):
                self._chain.runs.want(result)
                return WAITS
            verified.append(result)
            if self._chain.is_partial:
                self._chain.count("RootComputed" if verifier.computes else "SealedByName")
            self._nodes.pop(block.hash, None)
        except OverBudget as over:
            self._chain.count("CanonicalOverrun")
            return f"canonical: block {block.header.number}: {over}"
        except (BadBlock, ExecutionError) as bad:
            # The block is whole, so what this engine makes of it, and of ours, is not right.
            self._chain.count("CanonicalDiverged")
            number = block.header.number
            if number == self._chain.latest.number + 1:
                self._chain.drop_from(number, "execution here differs from the canonical one")
            return f"canonical: {bad}"
        return None

    def _is_known(self, block: Block) -> bool:
        return self._sealed(block.header.number) == block.hash

    def _sealed(self, number: int) -> bytes | None:
        """The hash of a sealed block, as the next commit will leave it."""
        if number > self._chain.latest.number:
            return None
        known = self._chain.sealed.get(number)
        if known is not None:
            return known
        with self._chain.store.view() as view:
            sealed = view.sealed(number)
        return None if sealed is None else sealed[0]
