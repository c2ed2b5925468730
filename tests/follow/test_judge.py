"""The judge finds no difference between a chain and a full follower of it, and every
flipped bit.
"""

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from follow.batch_client import Answered, BatchClient, Identity
from follow.busy_load import Pair, full_pair
from follow.freshness import Freshness, share
from follow.judge import BATCH, Judge, JudgePlan, Verdict, judge, reason
from follow.proxied import weather_proxy
from follow.questions import BLOCK, Question, Questions
from support.servers.waiting import until

pytestmark = pytest.mark.heavy

HASH = "0x" + "ab" * 32
STEPS = 25


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with full_pair(tmp_path_factory.mktemp("pair"), "--block-time=1", count=4) as found:
        yield found


def judged(pair: Pair, follower: str, seed: int, steps: int = STEPS) -> Verdict:
    """The verdict of a judge after this many batches."""
    one = Judge(pair.upstream.main.url, follower, Questions(pair.senders, seed), seed=seed)
    try:
        for _ in range(steps):
            one.step()
    finally:
        one.close()
    return one.verdict


def test_a_full_follower_gives_every_answer_of_its_upstream(pair: Pair) -> None:
    found = judged(pair, pair.follower, 1)
    assert found.differences == []
    assert not found.unanswered
    assert not found.unjudged
    assert found.answers.total() + found.gone > STEPS * BATCH * 3 // 4
    assert {"pending", "latest", "number"} <= set(found.abouts)
    assert len(found.answers) > 15


def test_every_flipped_bit_is_found(pair: Pair) -> None:
    with weather_proxy(pair.follower, "flip-value=0.03", seed=5) as proxy:
        found = judged(pair, proxy.url, 2)
        flipped = proxy.tell()["struck"]["flip-value"]
    assert flipped > 3
    assert len(found.differences) == flipped
    assert not found.unjudged


@pytest.mark.parametrize(
    "fault", ["flip-header=1", "flip-code=1", "flip-node=1", "null=0.3", "another-key=1"]
)
def test_other_damage_is_found_too(pair: Pair, fault: str) -> None:
    with weather_proxy(pair.follower, fault, seed=6) as proxy:
        found = judged(pair, proxy.url, 3, 15)
    assert found.differences


@pytest.mark.parametrize("fault", ["429", "reset", "html", "wrong-id", "reordered", "5xx"])
def test_what_is_not_answered_is_counted_and_no_difference(pair: Pair, fault: str) -> None:
    with weather_proxy(pair.follower, f"{fault}=1") as proxy:
        found = judged(pair, proxy.url, 4, 3)
    assert found.unanswered.total() > 3 * BATCH // 2
    assert not found.differences
    assert not found.answers


def test_reasons_that_differ_in_numbers_are_counted_together() -> None:
    said = ("nothing of 0xab12 in 1.5 s", "nothing of 0xcd34 in 2 s")
    assert {reason({"code": -32002, "message": each}) for each in said} == {
        "-32002 nothing of # in # s"
    }


def test_an_error_that_says_not_now_is_not_an_answer() -> None:
    question = Question("call", "eth_call", [{}, BLOCK])
    one = Judge("http://127.0.0.1:1", "http://127.0.0.1:1", Questions([], 0), seed=0)
    for code in (-32002, -32005, -32000):
        error = {"error": {"code": code, "message": "state not available"}}
        one.compare("latest", question, ("eth_call", []), error, {"result": "0x"})
    assert one.verdict.unanswered.total() == 2
    assert len(one.verdict.differences) == 1


@pytest.mark.parametrize(("pinned", "gone"), [(10, 2), (50, 0)], ids=["old", "recent"])
def test_a_pin_that_the_chain_does_not_keep_is_gone_if_it_is_old(pinned: int, gone: int) -> None:
    class Chain:
        def ask(self, _: object) -> Answered:
            return Answered([{"error": {"message": "unknown block"}}, {"result": None}], "", 0.0)

    one = Judge("http://127.0.0.1:1", "http://127.0.0.1:1", Questions([], 0), seed=0)
    one.upstream = cast("BatchClient", Chain())
    one.latest = Identity(72, HASH)
    question = Question("balance", "eth_getBalance", ["0x1", BLOCK])
    answers = [{"result": "0x5"}, {"result": {}}]
    one.judge_answers("pin", [question], answers, Identity(pinned, HASH, 3))
    assert one.verdict.gone == gone
    assert len(one.verdict.differences) == 2 - gone


def test_a_question_is_asked_by_the_identity_of_its_block() -> None:
    sealed, pinned = Identity(7, HASH), Identity(7, HASH, 3)
    pin = {"blockNumber": "0x7", "flashblockIndex": "0x3"}
    block = Question("block", "eth_getBlockByNumber", [BLOCK, True])
    balance = Question("balance", "eth_getBalance", ["0x1", BLOCK])
    assert block.of(sealed) == ("eth_getBlockByHash", [HASH, True])
    assert block.of(pinned) == ("eth_getBlockByNumber", [pin, True])
    assert balance.of(sealed) == ("eth_getBalance", ["0x1", {"blockHash": HASH}])
    assert balance.of(pinned) == ("eth_getBalance", ["0x1", pin])
    assert balance.about("pending") == ("eth_getBalance", ["0x1", "pending"])


def test_the_snapshot_says_what_was_read() -> None:
    header = f"commit=5; latest=0x36:{HASH}; pending=0x37.4:{HASH}; base=0x1:{HASH}; trust=proven"
    found = Answered([], header, 0.0)
    assert found.latest == Identity(0x36, HASH)
    assert found.pending == Identity(0x37, HASH, 4)
    assert Answered([], header.partition("; pending")[0], 0.0).pending == Identity(0x36, HASH)
    assert Answered([], "", 0.0).latest is None


def test_it_is_seen_how_late_flashblocks_are_shown(pair: Pair) -> None:
    with Freshness(pair.upstream.main.feed, pair.follower) as fresh:
        until(lambda: len(fresh.lateness()) >= 5, "five flashblocks are shown")
    times = fresh.lateness()
    assert 0 <= share(times, 0.5) <= share(times, 0.99) <= times[-1]
    assert fresh.lateness(after=10**6) == []


def test_several_clients_are_one_verdict(pair: Pair) -> None:
    stop = threading.Event()
    plan = JudgePlan(pair.upstream.main.url, pair.follower, clients=2, rate=50)
    threading.Timer(0.5, stop.set).start()
    found = judge(plan, pair.senders, stop)
    assert not found.differences
    assert any("responses compared" in line for line in found.lines())
