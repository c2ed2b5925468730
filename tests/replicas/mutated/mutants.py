"""Defects of a node with a log, one each, patched into the correct classes.

The external checks of a fleet must detect them: see `replicas.mutations`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from foreblock.ledger.building.replica_writer import ReplicaWriter
from foreblock.log.held_messages import LiveMessages
from foreblock.log.message import decode_message
from foreblock.log.parts import EXPECTED_LAST, OutgoingCommit
from foreblock.log.position import LogPosition, Meaning
from foreblock.replication.logged_commits import LoggedCommits


def announce_before_the_log_has_it() -> None:
    append = LoggedCommits._append

    def announced(self: LoggedCommits, position: LogPosition, commit: OutgoingCommit) -> bool:
        message = decode_message(b"".join(commit.parts))
        after = position.after(message, commit.last)
        self._loop.call_soon_threadsafe(self._committed, after)
        return append(self, position, commit)

    LoggedCommits._append = announced  # type: ignore[method-assign,assignment]


def append_without_a_condition() -> None:
    headers = OutgoingCommit.headers

    def without(
        self: OutgoingCommit, stream: str, writer: str, batch: str
    ) -> Iterator[dict[str, str]]:
        for each in headers(self, stream, writer, batch):
            each.pop(EXPECTED_LAST, None)
            yield each

    OutgoingCommit.headers = without  # type: ignore[method-assign]


def skip_the_link() -> None:
    LogPosition._meaning_of_next = lambda *_: Meaning.APPLY  # type: ignore[method-assign]


def apply_without_a_head() -> None:
    def all_that_was_heard(self: LiveMessages, position: LogPosition, _: object) -> list[object]:
        return [each for each in self.commits.values() if each.first == position.sequence + 1]

    LiveMessages.up_to = all_that_was_heard  # type: ignore[method-assign,assignment]


def keep_the_note_of_the_writer() -> None:
    def keep(_: ReplicaWriter, batch: object, *__: object) -> None:
        if batch.writers_note is not None:  # type: ignore[attr-defined]
            batch.note(batch.writers_note)  # type: ignore[attr-defined]

    ReplicaWriter._localize = keep  # type: ignore[method-assign,assignment]
    ReplicaWriter.renew_note = lambda *_: None  # type: ignore[method-assign]


MUTANTS: Final[dict[str, Callable[[], None]]] = {
    "announced before the log has it": announce_before_the_log_has_it,
    "appended without a condition": append_without_a_condition,
    "link not compared": skip_the_link,
    "applied without a head": apply_without_a_head,
    "note of the writer kept": keep_the_note_of_the_writer,
}
