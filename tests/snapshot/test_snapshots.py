"""Snapshots between two nodes, over real sockets: whole and verified, or not installed at all."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from foreblock._engine import LogRow, Store
from foreblock.errors import (
    ForeignLog,
    ForkedLog,
    LogBeginsLater,
    LogError,
    LogUnreachable,
    NoSnapshot,
    StoreExists,
    StoreLocked,
)
from foreblock.ledger.checking.check_store import check_store
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.open_store import Store as OpenedStore
from foreblock.snapshot import bootstrap as bootstrapping
from foreblock.snapshot.bootstrap import bootstrap, need_of
from foreblock.snapshot.fetching import Need
from foreblock.snapshot.sending import SendLimits
from foreblock.snapshot.server import SnapshotOffers, SnapshotServer
from support.chains.checked_chains import Chained, logged_chain, pay
from support.chains.dev_chain import DevChain
from support.servers.command import run
from support.servers.serving import environment
from support.servers.waiting import PATIENCE, until

NAME = "main"
Change = Callable[[bytes], bytes]


class Node:
    """A chain with a log and a store that can be fetched."""

    def __init__(self, folder: Path, limits: SendLimits | None = None) -> None:
        self.chain, self.commits = logged_chain(folder)
        self.offers = SnapshotOffers()
        self.offers.offer(NAME, self.chain.store)
        listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = SnapshotServer(listening, self.offers, limits)
        self.server.start()

    def ask(self, path: str = f"/{NAME}") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        return client

    def close(self) -> None:
        self.server.stop()
        self.offers.withdraw(NAME)
        self.chain.store.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path / "node")
    yield found
    found.close()


def all_of(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that sends these bytes on each connection, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                client, _ = listening.accept()
                with client:
                    client.recv(1 << 16)
                    client.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving.join()


def test_a_snapshot_is_the_store_at_its_place_in_the_log(node: Node, tmp_path: Path) -> None:
    to, told = tmp_path / "replica", list[tuple[int, int]]()
    taken = bootstrap(to, [node.url], NAME, report=lambda *far: told.append(far))
    assert {each.name for each in to.iterdir()} == {"data.mdb", "writer.lock"}
    assert told[-1][0] <= told[-1][1]
    assert taken.length == (to / "data.mdb").stat().st_size
    damages: list[object] = []
    check_store(str(to), damages.append, lambda *_: None)
    assert damages == []
    with OpenedStore(str(to), write=True) as copy:
        with copy.view() as view, node.chain.store.view() as theirs:
            assert view.log_row == theirs.log_row == node.commits.rows[taken.commit]
            assert (taken.epoch, taken.sequence) == (3, len(node.commits.rows))
            assert view.heads.commit == theirs.heads.commit
            assert view.heads.latest == theirs.heads.latest
            assert view.heads.pending == theirs.heads.pending
            assert theirs.heads.note != b"" == view.heads.note  # a deadline of another clock
            assert view.heads.latest is not None
            header, _ = read_header(view, view.heads.latest[0])
        assert copy.trie().root() == header.state_root


def test_snapshots_under_load_are_commits_of_the_log(node: Node, tmp_path: Path) -> None:
    """Commits continue during the transfer: each copy is exactly one of them."""
    stop = threading.Event()
    done: list[int] = []

    def load() -> None:
        while not stop.is_set():
            pay(node.chain, 1)
            done.append(1)

    loading = threading.Thread(target=load)
    loading.start()
    try:
        commits = []
        for number in range(4):
            done.clear()
            to = tmp_path / f"copy{number}"
            commits.append(bootstrap(to, [node.url], NAME).commit)
            with Store(str(to), write=True) as copy:
                with copy.view() as view:
                    assert view.log_row == node.commits.rows[view.heads.commit]
                    assert view.heads.latest is not None
                    header, _ = read_header(view, view.heads.latest[0])
                assert copy.trie().root() == header.state_root
            until(partial(len, done), "commits continue")
    finally:
        stop.set()
        loading.join()
    assert commits == sorted(set(commits))


def as_sent(node: Node) -> bytes:
    answer = all_of(node.ask())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    return answer


def places(answer: bytes) -> dict[str, int]:
    """A byte of each kind in a response, by its offset from the start."""
    head = answer.index(b"\r\n\r\n") + 4
    header = head + 4  # the length of the first chunk
    return {
        "the header's magic": header,
        "the header's commit": header + 23,
        "the header's link": header + 60,
        "the zstd frame's start": answer.index(b"\x28\xb5\x2f\xfd", header),
        "the store": len(answer) // 2,
        "the length": len(answer) - 7 - 40 + 6,
        "the hash": len(answer) - 7 - 5,
    }


PLACES = (
    "the header's magic", "the header's commit", "the header's link", "the zstd frame's start",
    "the store", "the length", "the hash",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_damaged_byte_of_any_kind_is_found_and_nothing_is_left(
    node: Node, tmp_path: Path, place: str
) -> None:
    answer = bytearray(as_sent(node))
    answer[places(bytes(answer))[place]] ^= 0x10
    with answering(bytes(answer)) as url, pytest.raises(NoSnapshot, match="damaged snapshot"):
        bootstrap(tmp_path / "replica", [url], NAME)
    assert [each.name for each in (tmp_path / "replica").iterdir()] == ["writer.lock"]


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.999])
def test_a_snapshot_that_is_cut_is_taken_from_the_next_node(
    node: Node, tmp_path: Path, part: float
) -> None:
    answer = as_sent(node)
    with answering(answer[: int(len(answer) * part)]) as cut, capture_logs() as logs:
        bootstrap(tmp_path / "replica", ["http://127.0.0.1:1", cut, node.url], NAME)
    refused = [each["source"] for each in logs if each["event"] == "snapshot_unusable"]
    assert refused == ["http://127.0.0.1:1", cut]
    with Store(str(tmp_path / "replica")) as copy, copy.view() as view:
        assert view.log_row is not None


def test_where_no_node_has_one_each_says_why(node: Node, tmp_path: Path) -> None:
    with pytest.raises(NoSnapshot) as found:
        bootstrap(tmp_path / "replica", ["ftp://x", "http://127.0.0.1:1", node.url], "other")
    text = str(found.value)
    assert "expected http://HOST:PORT" in text
    assert "refused" in text
    assert "404 there is no such network here" in text
    with pytest.raises(NoSnapshot, match="names no node"):
        bootstrap(tmp_path / "replica", [], NAME)


def large_row(chain: DevChain, commits: Chained) -> None:
    """Make a store larger than all buffers between two processes."""
    batch = chain.store.batch()
    batch.put(b"\xfflarge", os.urandom(32 << 20))
    commits.commit(chain.store, batch)


def test_two_at_once_are_not_sent(node: Node) -> None:
    large_row(node.chain, node.commits)
    first = node.ask()
    assert first.recv(12) == b"HTTP/1.1 200"  # it has started: the rest is not read
    refused = all_of(node.ask())
    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nRetry-After: 5\r\n" in refused
    assert refused.endswith(b"another snapshot is being sent\n")
    all_of(first)

    def is_free() -> bool:
        return all_of(node.ask()).startswith(b"HTTP/1.1 200")

    until(is_free, "the next is sent")


def test_a_client_that_does_not_read_is_cut_and_holds_up_no_commit(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", SendLimits(stall=0.2))
    try:
        large_row(node.chain, node.commits)
        with capture_logs() as logs, node.ask():
            before = len(node.commits.rows)
            pay(node.chain, 2)
            assert len(node.commits.rows) > before
            until(lambda: "snapshot_not_sent" in {each["event"] for each in logs}, "it is cut")
        answer = all_of(node.ask())
        assert answer.endswith(b"0\r\n\r\n")  # the next one is sent completely
    finally:
        node.close()


def test_a_client_that_reads_too_slowly_is_cut_by_the_deadline(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", SendLimits(stall=PATIENCE, start=0.3, rate=1 << 40))
    try:
        large_row(node.chain, node.commits)
        with capture_logs() as logs, node.ask() as client:
            while client.recv(1 << 16) and len(logs) < 2:
                threading.Event().wait(0.01)
            until(lambda: len(logs) > 1, "it is cut")
        assert logs[-1]["event"] == "snapshot_not_sent"
        assert "not done within" in logs[-1]["why"]
    finally:
        node.close()


def test_a_store_can_be_closed_while_it_is_sent(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", SendLimits(stall=PATIENCE))
    large_row(node.chain, node.commits)
    with node.ask() as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        node.offers.withdraw(NAME)  # returns when the copy has ended
        node.chain.store.close()
        rest = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert not rest.endswith(b"0\r\n\r\n")
    assert all_of(node.ask()).startswith(b"HTTP/1.1 404")
    node.server.stop()


def test_a_store_that_somebody_has_closed_is_not_sent(node: Node) -> None:
    node.chain.store.close()
    assert all_of(node.ask()).startswith(b"HTTP/1.1 503 ")


def test_a_store_of_no_log_is_not_sent(tmp_path: Path) -> None:
    with Store(str(tmp_path / "alone"), write=True) as store:
        offers = SnapshotOffers()
        offers.offer(NAME, store)
        listening = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = SnapshotServer(listening, offers)
        server.start()
        with pytest.raises(NoSnapshot, match=r"409.*part of no log"):
            bootstrap(tmp_path / "replica", [url], NAME)
        server.stop()


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /main HTTP/1.1\r\n\r\n",
        b"GET main HTTP/1.1\r\n\r\n",
        b"\r\n\r\n",
        b"GET /main\r\n\r\n",
    ],
)
def test_only_a_get_of_a_name_is_answered(node: Node, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", node.port), PATIENCE) as client:
        client.sendall(request_ + b"\r\n\r\n")
        assert all_of(client).startswith(b"HTTP/1.1 405 ")
    with socket.create_connection(("127.0.0.1", node.port), PATIENCE) as client:
        client.sendall(b"GET /" + b"x" * 9_000)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""


def test_a_store_is_replaced_where_it_is_too_old_or_has_diverged_only(
    node: Node, tmp_path: Path
) -> None:
    to = tmp_path / "replica"
    older = bootstrap(to, [node.url], NAME)
    before = (to / "data.mdb").stat().st_ino
    with pytest.raises(StoreExists):
        bootstrap(to, [node.url], NAME)
    with Store(str(to), write=True), pytest.raises(StoreLocked):
        bootstrap(to, [node.url], NAME, Need.BEHIND)
    pay(node.chain, 2)
    with pytest.raises(NoSnapshot, match="the log begins after"):
        bootstrap(to, [node.url], NAME, Need.BEHIND, needed=10**9)
    assert (to / "data.mdb").stat().st_ino == before
    newer = bootstrap(to, [node.url], NAME, Need.BEHIND, needed=older.commit + 1)
    assert newer.commit > older.commit
    assert not (to / "diverged").exists()
    again = bootstrap(to, [node.url], NAME, Need.DIVERGED)
    assert again.commit == newer.commit
    with Store(str(to / "diverged")) as kept, kept.view() as view:
        assert view.heads.commit == newer.commit
    bootstrap(to, [node.url], NAME, Need.DIVERGED)  # the last one is kept


READER = """
import sys
from foreblock._engine import Store
with Store(sys.argv[1]) as old, old.view() as view:
    print("reads", flush=True)
    sys.stdin.readline()
    print(view.row(bytes.fromhex("ff6b6579")).hex(), flush=True)
"""


# LMDB has two meta pages and chooses by transaction number
@pytest.mark.parametrize("commits", [5, 6])
def test_readers_of_the_old_store_go_on_and_the_new_one_is_whole_for_them(
    node: Node, tmp_path: Path, commits: int
) -> None:
    """LMDB's lock file is shared with readers of the old file."""
    to = tmp_path / "replica"
    bootstrap(to, [node.url], NAME)
    with Store(str(to), write=True) as store:
        for number in range(commits):  # its transactions are far ahead of those of a copy
            batch = store.batch()
            batch.put(b"\xffkey", bytes([number]))
            store.commit(batch, LogRow(3, bytes(32), 1_000 + number))
    command = [sys.executable, "-c", READER, str(to)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reads\n"
        bootstrap(to, [node.url], NAME, Need.DIVERGED)
        with Store(str(to), write=True) as new, new.view() as view:
            assert view.row(b"\xffkey") is None
            assert view.log_row == node.commits.rows[view.heads.commit]
            assert view.heads.note == b""
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{commits - 1:02x}\n"


def test_an_interruption_leaves_the_old_store(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "replica"
    taken = bootstrap(to, [node.url], NAME)
    pay(node.chain, 1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("fetch", "adopt_store", "put_in_place"):
        with monkeypatch.context() as patched:
            patched.setattr(bootstrapping, step, killed)
            with pytest.raises(KeyboardInterrupt):
                bootstrap(to, [node.url], NAME, Need.BEHIND)
        with Store(str(to)) as store, store.view() as view:
            assert view.heads.commit == taken.commit
        assert not (to / bootstrapping.PART).exists()


def test_leftovers_are_removed_unless_somebody_fetches(tmp_path: Path) -> None:
    part = tmp_path / bootstrapping.PART
    bootstrapping.remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
    part.mkdir()
    (part / "data.mdb").write_bytes(b"half")
    with Store(str(tmp_path), write=True):  # holds the writer lock
        bootstrapping.remove_leftovers(tmp_path)
        assert part.exists()
    bootstrapping.remove_leftovers(tmp_path)
    assert not part.exists()


@pytest.mark.parametrize(
    ("why", "need"),
    [
        (LogBeginsLater(7, 90), (Need.BEHIND, 90)),
        (ForkedLog(7, "words"), (Need.DIVERGED, 0)),
        (ForeignLog(b"a", b"b"), (Need.DIVERGED, 0)),
        (LogUnreachable("words"), None),
    ],
)
def test_what_a_failure_to_follow_asks_for(why: LogError, need: tuple[Need, int] | None) -> None:
    assert need_of(why) == need


def test_the_command_fetches_a_store_and_says_where_it_is(node: Node, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    fetch = ("store", "fetch", f"{node.url}/main")
    done = run(*fetch, to, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    with Store(str(to)) as copy, copy.view() as view:
        assert view.log_row == node.commits.rows[said["commit"]]
    assert (said["epoch"], said["length"]) == (3, (to / "data.mdb").stat().st_size)
    again = run(*fetch, to)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"foreblock: {to / 'data.mdb'} already exists\n"
    lines = run(*fetch, tmp_path / "second").stdout.splitlines()
    assert lines[0].startswith("fetched    ")
    assert lines[1] == f"commit     {said['commit']}, sequence {said['sequence']}, epoch 3"
