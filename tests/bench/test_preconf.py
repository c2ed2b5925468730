"""`foreblock bench preconf`: its evaluation of observations, and one small complete run."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from foreblock.bench.preconf.client_process import pending_position, request
from foreblock.bench.preconf.report import (
    Closed,
    PreconfRun,
    closed,
    figures,
    first_seen,
    included_a_second,
    missed,
    remarks,
)
from foreblock.bench.preconf.run import PreconfOptions, run
from foreblock.bench.rpc.rounds import LoadResult

MS = 10**6
SECOND = 10**9


def flashblock(block: int, index: int, due_ms: int, took_ms: int = 4, count: int = 200) -> Closed:
    return Closed(
        block=block,
        index=index,
        transactions=count,
        waiting=7,
        due_ns=due_ms * MS,
        begun_ns=(due_ms + 1) * MS,
        committed_ns=(due_ms + took_ms) * MS,
        commit_ns=2 * MS,
    )


def seen(
    flashblocks: list[Closed], polled: Mapping[tuple[int, int], int], tps: int = 1_000
) -> PreconfRun:
    return PreconfRun(
        closed=flashblocks,
        polled=polled,
        heard={},
        paid=[(0, 5 * MS, 150 * MS)],
        sent=(10, 10, 0),
        readers=LoadResult(1000, 2.0, 0, 500, 900),
        probes=[0.5],
        writer_cpu=0.2,
        tps=tps,
    )


def test_a_log_tells_of_flashblocks_among_other_things() -> None:
    event = {
        "event": "flashblock", "level": "debug", "block": 3, "index": 2, "transactions": 1,
        "waiting": 0, "due_ns": 1, "begun_ns": 2, "committed_ns": 3, "commit_ns": 1,
    }  # fmt: skip
    log = ["main  http://127.0.0.1:1", '{"event": "else"}', json.dumps(event)]
    (found,) = closed(log)
    assert found.place == (3, 2)


def test_an_answer_names_the_flashblock_it_was_made_from() -> None:
    head = b"HTTP/1.1 200 OK\r\nForeblock-Snapshot: commit=9; latest=0x10:0xab; pending=0x11.12:0xc"
    assert pending_position(head) == (17, 12)
    assert pending_position(b"Foreblock-Snapshot: commit=9; latest=0x10:0xab") is None


def test_a_request_says_how_long_it_is() -> None:
    head, _, body = request("http://127.0.0.1:7/", "eth_chainId", []).partition(b"\r\n\r\n")
    assert b"Host: 127.0.0.1:7\r\n" in head
    assert head.endswith(b"Content-Length: %d" % len(body))
    assert json.loads(body)["method"] == "eth_chainId"


def test_only_the_first_sight_counts() -> None:
    assert first_seen([[5, 1, 0], [6, 1, 1], [9, 1, 0]]) == {(1, 0): 5, (1, 1): 6}


@pytest.mark.parametrize(
    ("after_ms", "met"), [((3, 9, 9), True), ((3, 10, 11), False), ((3, 4, 50), False)]
)
def test_what_is_seen_late_misses_its_bound(after_ms: tuple[int, ...], met: bool) -> None:
    flashblocks = [flashblock(1, index, 200 * index) for index in range(3)]
    polled = {it.place: it.due_ns + ms * MS for it, ms in zip(flashblocks, after_ms, strict=True)}
    readable, without_commit, *_, sent = figures(seen(flashblocks, polled))
    assert readable.samples == list(after_ms)
    assert without_commit.samples == [ms - 2 for ms in after_ms]
    assert readable.met is met
    assert (sent.median, sent.met) == (150, True)


def test_a_flashblock_that_nobody_saw_is_told() -> None:
    flashblocks = [flashblock(1, 0, 0), flashblock(1, 1, 200)]
    readable, *_ = figures(seen(flashblocks, {(1, 0): 3 * MS}))
    assert readable.remarks == ("1 never seen",)


def test_deposits_do_not_count_as_load() -> None:
    flashblocks = [flashblock(1, 10, 0), flashblock(2, 0, 75, count=1), flashblock(2, 1, 200)]
    assert included_a_second(flashblocks) == 1_000
    assert "kept up: 1,000 of 1,000" in next(remarks(seen(flashblocks, {})))
    assert "did not keep up" in next(remarks(seen(flashblocks, {}, tps=1_100)))


def test_missed_slots_are_those_that_other_blocks_have() -> None:
    def block(number: int, count: int) -> list[Closed]:
        return [flashblock(number, index, 0) for index in range(count)]

    assert missed([*block(1, 2), *block(2, 11), *block(3, 9), *block(4, 11), *block(5, 1)]) == 2


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_a_small_run_sees_what_was_sent(tmp_path: Path) -> None:
    wrk = Path(shutil.which("wrk") or "")
    options = PreconfOptions(
        wrk, tps=50, seconds=1, connections=2, workers=1, folder=tmp_path, warm_up=1
    )
    found = run(options)
    sent, answered, refused = found.sent
    assert 0 < answered <= sent, "a machine that is busy may leave some unanswered"
    assert refused == 0
    assert sum(each.transactions for each in found.closed) > 0
    places = {each.place for each in found.closed}
    assert places & set(found.polled)
    assert places & set(found.heard)
    for each in found.closed:
        assert found.polled.get(each.place, each.committed_ns) > each.begun_ns
        assert found.heard.get(each.place, each.committed_ns) >= each.committed_ns
    assert found.paid
    assert found.readers.failed == 0
    assert not list(tmp_path.iterdir()), "nothing is left behind"
