"""The next commit of a followed chain, and what is to be done once it is durable."""

from collections.abc import Callable, Sequence
from typing import Final

from foreblock._engine import Header
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.state_roots import OpenTrie, SealsAs
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.canonical_verifier import CanonicalVerifier
from foreblock.ledger.following.jobs import Job
from foreblock.types import Flashblock


class PendingCommit:
    """Steps with what belongs to them; empty again after each commit."""

    def __init__(self, writer: LedgerWriter, publish: Callable[[Flashblock], None]) -> None:
        self._writer: Final = writer
        self._publish: Final = publish
        self._builder: CommitBuilder | None = None
        self._verifier: CanonicalVerifier | None = None
        self.applied: list[Received] = []  # to be published, in order
        self.computed: list[SealsAs] = []
        self.sealed: list[BlockInProgress] = []  # whose tries later blocks may go on with

    @property
    def builder(self) -> CommitBuilder:
        """The steps."""
        if self._builder is None:
            self._builder = CommitBuilder(self._writer.store)
        return self._builder

    @property
    def is_empty(self) -> bool:
        """Whether there is no reason for a commit."""
        return self._builder is None or self._builder.is_empty

    def end_with(self, verifier: CanonicalVerifier) -> None:
        """Note that the latest block is the last of this verifier, not committed yet."""
        self._verifier = verifier

    def take_verifier(self) -> CanonicalVerifier | None:
        """The verifier whose last block is the latest; the caller goes on with its state."""
        verifier, self._verifier = self._verifier, None
        return verifier

    def flush(self, latest: Header, served: Sequence[Job]) -> None:
        """Commit, if there is a reason to, and publish what is new.

        `served` are the jobs above the latest block, the lowest first.
        """
        if self._builder is None or self._builder.is_empty:
            self._discard_builder()  # another commit may come before it is needed
            return
        builder, applied, computed = self._builder, self.applied, self.computed
        self._builder, self.applied, self.computed = None, [], []
        builder.seals_as(computed)
        pending = served[-1].steps[-1].partial if served else None
        heard = max((each.at_ns for each in applied), default=None)
        moved = self._writer.latest != latest
        self._writer.commit(builder, latest, pending, heard)
        if moved:
            self._restart_roots(served)
        self._close_finished()
        for each in applied:
            self._writer.metrics.readable(self._writer.committed_at_ns - each.at_ns)
            self._publish(each.message)

    def close(self) -> None:
        """Throw away what was gathered."""
        self._discard_builder()
        self._close_finished()

    def _discard_builder(self) -> None:
        if self._builder is not None:
            self._builder.close()
            self._builder = None

    def _restart_roots(self, served: Sequence[Job]) -> None:
        """Restart tries at the latest block, whose nodes the store keeps."""
        open_trie: OpenTrie = self._writer.store.trie
        for job in served:
            if job.progress is None:
                return
            job.progress.roots.restart(open_trie)
            open_trie = job.progress.roots.hand_over

    def _close_finished(self) -> None:
        for block in self.sealed:
            block.close()
        self.sealed.clear()
        verifier = self.take_verifier()
        if verifier is not None:
            verifier.close()
