"""What is gathered for the next commit, and what is to be done once it is durable."""

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


class NextCommit:
    """A draft with what belongs to it; empty again after each commit."""

    def __init__(self, writer: LedgerWriter, publish: Callable[[Flashblock], None]) -> None:
        self._writer: Final = writer
        self._publish: Final = publish
        self._draft: CommitBuilder | None = None
        self.applied: list[Received] = []  # to be published, in order
        self.computed: list[SealsAs] = []
        self.sealed: list[BlockInProgress] = []  # whose tries others may still go on with
        self._foreign: CanonicalVerifier | None = None

    @property
    def draft(self) -> CommitBuilder:
        """The steps."""
        if self._draft is None:
            self._draft = CommitBuilder(self._writer.store)
        return self._draft

    @property
    def is_empty(self) -> bool:
        """Whether there is no reason for a commit."""
        return self._draft is None or self._draft.is_empty

    def end_with(self, run: CanonicalVerifier) -> None:
        """The latest block is the last of this run, which is not committed yet."""
        self._foreign = run

    def take_foreign(self) -> CanonicalVerifier | None:
        """The run whose last block is the latest; for whoever goes on with its state."""
        run, self._foreign = self._foreign, None
        return run

    def flush(self, latest: Header, served: Sequence[Job]) -> None:
        """Commit, if there is a reason to, and publish what is new.

        `served` are the jobs above the latest block, the lowest first.
        """
        if self._draft is None or self._draft.is_empty:
            self._discard_draft()  # another may have committed when it is needed
            return
        draft, applied, computed = self._draft, self.applied, self.computed
        self._draft, self.applied, self.computed = None, [], []
        draft.seals_as(computed)
        pending = served[-1].steps[-1].partial if served else None
        heard = max((each.at_ns for each in applied), default=None)
        moved = self._writer.latest != latest
        self._writer.commit(draft, latest, pending, heard)
        if moved:
            self._restart_roots(served)
        self._let_go()
        for each in applied:
            self._publish(each.message)

    def close(self) -> None:
        """Throw away what was gathered."""
        self._discard_draft()
        self._let_go()

    def _discard_draft(self) -> None:
        if self._draft is not None:
            self._draft.close()
            self._draft = None

    def _restart_roots(self, served: Sequence[Job]) -> None:
        """Let tries begin at the latest block, whose nodes the store keeps."""
        open_trie: OpenTrie = self._writer.store.trie
        for job in served:
            if job.progress is None:
                return
            job.progress.roots.restart(open_trie)
            open_trie = job.progress.roots.hand_over

    def _let_go(self) -> None:
        for block in self.sealed:
            block.close()
        self.sealed.clear()
        run = self.take_foreign()
        if run is not None:
            run.close()
