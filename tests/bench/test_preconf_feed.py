"""`foreblock bench preconf --feed`: its generated feed, its evaluation, and one run."""

import shutil
from pathlib import Path

import pytest

from foreblock.bench.preconf.feeder import build
from foreblock.bench.preconf.remote import (
    Followed,
    SentMessage,
    followed_figures,
    followed_remarks,
    run_followed,
)
from foreblock.bench.preconf.run import PreconfOptions
from foreblock.bench.rpc.rounds import LoadResult
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE

MS = 10**6


def test_messages_have_their_sizes_by_turns_at_the_pace_of_a_chain(tmp_path: Path) -> None:
    timed = build(tmp_path, 2, [3, 5])
    assert (tmp_path / GENESIS_FILE).is_file()
    whole = [each for each in timed if each.flashblock.block_number <= 2]
    assert [each.flashblock.index for each in whole] == [*range(11), *range(11)]
    sizes = [len(each.flashblock.diff.transactions) for each in whole]
    assert sizes == [1, *[3, 5] * 5] * 2
    assert [each.after_ns // MS for each in whole[:4]] == [0, 125, 325, 525]
    assert whole[11].after_ns == 2_000 * MS


def followed(sent: list[SentMessage], after_ms: float) -> Followed:
    seen = {each.place: each.at_ns + round(after_ms * MS) for each in sent}
    return Followed(sent, seen, {}, LoadResult(1000, 2.0, 0, 500, 900), [0.5], 0.2)


@pytest.mark.parametrize(("after_ms", "met"), [(9.0, True), (11.0, False)])
def test_figures_stand_by_size_and_small_ones_are_held_against_the_aim(
    after_ms: float, met: bool
) -> None:
    sent = [
        SentMessage(0, 1, 0, 1),
        SentMessage(200 * MS, 1, 1, 50),
        SentMessage(400 * MS, 1, 2, 200),
    ]
    seen = followed(sent, after_ms)
    found = {each.question: each for each in followed_figures(seen)}
    assert set(found) == {
        "received to readable, 50 transactions", "received to readable, 200 transactions",
        "received to readable, first of a block", "fdatasync of 4 kB",
    }  # fmt: skip
    assert found["received to readable, 50 transactions"].met is met
    assert found["received to readable, 200 transactions"].met is None
    assert found["received to readable, 200 transactions"].samples == [after_ms]
    assert "3 messages" in next(followed_remarks(seen))


def test_a_message_that_nobody_saw_is_told() -> None:
    sent = [SentMessage(0, 1, 1, 50), SentMessage(200 * MS, 1, 2, 50)]
    seen = Followed(sent, {(1, 1): 3 * MS}, {}, LoadResult(1000, 2.0, 0, 500, 900), [], 0.2)
    (readable,) = followed_figures(seen)
    assert readable.remarks == ("1 never seen",)


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_a_small_run_sees_what_was_sent(tmp_path: Path) -> None:
    wrk = Path(shutil.which("wrk") or "")
    options = PreconfOptions(wrk, seconds=3, connections=2, workers=1, folder=tmp_path, warm_up=1)
    found = run_followed(options, [2, 4])
    assert {each.transactions for each in found.sent if each.index} == {2, 4}
    places = {each.place for each in found.sent}
    assert places & set(found.polled)
    assert places & set(found.heard)
    for each in found.sent:
        assert found.polled.get(each.place, each.at_ns) >= each.at_ns
    assert found.readers.failed == 0
    assert not list(tmp_path.iterdir()), "nothing is left behind"
