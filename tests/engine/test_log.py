"""Commits of a log, as seen from Python: bodies, the last request, the log row, copies."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foreblock._engine import Batch, LogRow, Store
from foreblock.errors import (
    CommitDeclined,
    InvalidArgument,
    RefusedCommit,
    StaleBatch,
    StoreFailed,
    Undecodable,
)
from support.payloads.small_store import ALICE, append, balance, changes, word

ROW = LogRow(3, word(7), 9)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with (
        Store(str(tmp_path / "writer"), write=True) as writer,
        Store(str(tmp_path / "replica"), write=True) as replica,
    ):
        yield writer, replica


def log_row(store: Store) -> LogRow | None:
    with store.view() as view:
        return view.log_row


def test_a_decoded_batch_makes_the_same_blocks_and_rows(stores: tuple[Store, Store]) -> None:
    writer, replica = stores
    for amount in (1, 2):
        batch = writer.batch()
        batch.append(amount, word(amount), changes(writer, batch, balance(ALICE, amount)))
        batch.put(b"row", b"value")
        batch.put_local(b"local", b"of the writer")
        batch.note(b"n" * 24)
        body, before, after = batch.encode(), batch.before, batch.after
        assert (writer.commit(batch).commit, batch.FORMAT) == (after, 1)
        decoded = Batch.decode(body, before, after)
        assert (decoded.encode(), decoded.writers_note) == (body, b"n" * 24)
        decoded.note(b"own")
        decoded.put_local(b"local", b"own")
        assert replica.commit(decoded, ROW).commit == after
    with replica.view() as view:
        assert view.state(2).balance(ALICE) == 2
        assert view.state(1).balance(ALICE) == 1
        assert (view.row(b"row"), view.row(b"local")) == (b"value", b"own")
        assert (view.heads.note, view.heads.latest) == (b"own", (2, word(2)))
        assert view.log_row == ROW
    assert replica.trie().root() == writer.trie().root()


def test_a_batch_says_what_it_rewinds_to(stores: tuple[Store, Store]) -> None:
    batch = stores[0].batch()
    assert batch.rewinds_to is None
    batch.rewind(5)
    batch.rewind(4)
    assert Batch.decode(batch.encode(), 0, 1).rewinds_to == 4


@pytest.mark.parametrize("body", [b"\x00", b"\x0b\xff\xff\xff\xff", b"\x05\xff\xff\xff\xff\x00"])
def test_a_body_that_is_none_is_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable, match="commit"):
        Batch.decode(body, 0, 1)


def test_commits_of_a_log_follow_each_other(stores: tuple[Store, Store]) -> None:
    with pytest.raises(Undecodable):
        Batch.decode(b"", 3, 3)
    with pytest.raises(StaleBatch):
        stores[0].commit(Batch.decode(b"", 3, 4))
    assert stores[0].commit(Batch.decode(b"", 0, 4)).commit == 4


def test_a_commit_is_asked_about_when_it_fits_and_before_it_is_made(
    stores: tuple[Store, Store],
) -> None:
    store, _ = stores
    append(store)
    asked: list[int] = []

    def ask(*, answer: bool) -> bool:
        with store.view() as view:
            asked.append(view.heads.commit)
        return answer

    def batch() -> Batch:
        made = store.batch()
        made.put(b"k", b"v")
        return made

    with pytest.raises(CommitDeclined):
        store.commit(batch(), ROW, lambda: ask(answer=False))
    with store.view() as view:
        assert (view.row(b"k"), view.heads.commit, view.log_row) == (None, 2, None)
    assert store.commit(batch(), ROW, ask=lambda: ask(answer=True)).commit == 3
    assert asked == [2, 2]
    assert log_row(store) == ROW
    refused = store.batch()
    refused.rewind(9)
    with pytest.raises(RefusedCommit):
        store.commit(refused, ROW, lambda: pytest.fail("asked"))


def test_what_a_question_raises_is_raised(stores: tuple[Store, Store]) -> None:
    store, _ = stores

    def ask() -> bool:
        message = "deposed"
        raise LookupError(message)

    with pytest.raises(LookupError, match="deposed"):
        store.commit(store.batch(), ROW, ask)
    assert log_row(store) is None
    assert store.commit(store.batch()).commit == 1


def test_a_commit_outside_the_log_leaves_it(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    store.commit(store.batch(), ROW)
    store.maintain(100)
    store.put_rows([(b"k", b"v")], [])
    assert log_row(store) == ROW
    store.commit(store.batch())
    assert log_row(store) is None


def test_log_rows_are_values() -> None:
    assert LogRow(3, word(7), 9) == ROW != LogRow(3, word(7), 8)
    assert (ROW.epoch, ROW.link, ROW.sequence) == (3, word(7), 9)
    assert len({ROW, LogRow(3, word(7), 9)}) == 1
    with pytest.raises(InvalidArgument):
        LogRow(3, b"short", 9)


def test_a_note_is_replaced_without_a_number(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    store.commit(store.batch(), ROW)
    store.put_note(1, b"later")
    with store.view() as view:
        assert (view.heads.note, view.heads.commit, view.log_row) == (b"later", 1, ROW)
    with pytest.raises(StaleBatch):
        store.put_note(2, b"never")


def test_a_copy_goes_through_a_pipe(stores: tuple[Store, Store], tmp_path: Path) -> None:
    store, _ = stores
    append(store, balance(ALICE, 5))
    store.commit(store.batch(), ROW)
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as thread:

        def copy() -> None:
            try:
                store.copy_to(writer)
            finally:
                os.close(writer)

        copying = thread.submit(copy)
        with open(reader, "rb") as pipe:  # noqa: PTH123, a descriptor
            copied = pipe.read()
        copying.result()
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(copied)
    with Store(str(folder)) as copied_store, copied_store.view() as view:
        assert (view.state(0).balance(ALICE), view.log_row) == (5, ROW)


def test_a_copy_needs_a_descriptor(stores: tuple[Store, Store]) -> None:
    store, _ = stores
    with pytest.raises(InvalidArgument):
        store.copy_to(-1)
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.raises(StoreFailed):
        store.copy_to(writer)
    os.close(writer)
    with pytest.raises(StoreFailed):
        store.copy_to(writer)
