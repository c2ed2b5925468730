"""eth_sendRawTransactionSync: the receipt comes with the commit that has it, or a timeout."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import RejectedTransaction, StoreClosed
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods.events.commit_watch import CommitWatch, last_commit
from foreblock.methods.sequencing import Sequencing
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, Shared, make_scheduler
from foreblock.types import Transaction
from support.chains.preconfirming import PreconfirmingChain
from support.servers.asking import ANYBODY, body_of, request, settings_with
from support.servers.in_loop import turns, until
from support.servers.long_work import thresholds
from support.servers.waiting import PATIENCE

UNHURRIED = float(PATIENCE)


class Sequencer:
    """Accepts transactions, and includes them in the chain on a test's command."""

    def __init__(self, chain: PreconfirmingChain) -> None:
        self.chain = chain
        self.taken = asyncio.Event()
        self.refusal = ""

    async def submit(self, raw: bytes, sender: bytes) -> None:
        assert raw
        assert sender
        if self.refusal:
            raise RejectedTransaction(self.refusal)
        self.taken.set()

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as declared
        return False

    def next_nonce(self, _sender: bytes) -> int:
        return 0


class RecordingLedger(Ledger):
    """Records all its views."""

    def __init__(self, *args: Any, **names: Any) -> None:  # noqa: ANN401, of a ledger
        super().__init__(*args, **names)
        self.views: list[LedgerView] = []

    def view(self, *args: Any, **names: Any) -> LedgerView:  # noqa: ANN401, of a ledger
        self.views.append(super().view(*args, **names))
        return self.views[-1]


class Scene:
    """A chain, and a service that sends to it."""

    def __init__(self, chain: PreconfirmingChain, **options: Any) -> None:  # noqa: ANN401, of methods
        waits = {"sync_timeout": UNHURRIED, "sync_longest_timeout": UNHURRIED}
        chosen = settings_with(**(waits | options))
        self.chain = chain
        self.ledger = RecordingLedger(chain.store, clock=chain.clock)
        self.sequencer = Sequencer(chain)
        self.scheduler = make_scheduler(chosen)
        self.hints: list[Callable[[], None]] = []
        commits = CommitWatch(partial(last_commit, self.ledger.view), self.follow)
        shared = Shared(commits=commits)
        sequencing = Sequencing(self.sequencer)
        self.service = Service(self.ledger, chosen, self.scheduler, sequencing, shared)

    @contextmanager
    def follow(self, hint: Callable[[], None]) -> Iterator[None]:
        self.hints.append(hint)
        yield
        self.hints.remove(hint)

    async def reply(self, body: bytes) -> Reply:
        answer = self.service.answer(body, ANYBODY)
        return answer if isinstance(answer, Reply) else await answer

    async def send(self, transaction: Transaction, *timeout: object) -> Any:  # noqa: ANN401
        return json.loads(body_of(await self.reply(sync(transaction, *timeout))))


def sync(transaction: Transaction, *timeout: object) -> bytes:
    return request("eth_sendRawTransactionSync", "0x" + transaction.raw.hex(), *timeout)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    yield found
    found.close()


def play(
    chain: PreconfirmingChain,
    act: Callable[[Scene], Awaitable[None]],
    **options: Any,  # noqa: ANN401, of methods
) -> None:
    async def bounded() -> None:
        scene = Scene(chain, **options)
        async with asyncio.timeout(PATIENCE):
            await act(scene)
        scene.scheduler.close()

    asyncio.run(bounded())


def test_receipt_comes_with_the_flashblock(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        transaction = chain.pay()
        sending = asyncio.create_task(scene.reply(sync(transaction)))
        await scene.sequencer.taken.wait()
        flashblock = chain.extend([transaction])
        reply = await sending
        receipt = json.loads(reply.body)["result"]
        assert receipt["transactionHash"] == "0x" + transaction.hash.hex()
        assert receipt["blockHash"] == "0x" + flashblock.diff.block_hash.hex()
        asked = await scene.reply(request("eth_getTransactionReceipt", receipt["transactionHash"]))
        assert json.loads(asked.body)["result"] == receipt
        assert reply.headers == asked.headers, "the snapshot that has it is named"

    play(chain, act)


def test_receipt_comes_when_the_commit_is_announced(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        for _ in range(2):
            transaction = chain.pay()
            sending = asyncio.create_task(scene.send(transaction))
            await until(lambda: bool(scene.hints))
            looks = len(scene.ledger.views)
            await turns()
            assert len(scene.ledger.views) <= looks + 2, "it does not look without a hint"
            chain.extend([transaction])
            await turns()
            assert not sending.done()
            scene.hints[0]()
            assert (await sending)["result"]["status"] == "0x1"

    with thresholds(commit_poll_seconds=3_600, hinted_poll_seconds=3_600):
        play(chain, act)


def test_receipt_of_a_sealed_view_comes_with_the_block(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        transaction = chain.pay()
        sending = asyncio.create_task(scene.send(transaction))
        await scene.sequencer.taken.wait()
        chain.extend([transaction])
        timed_out = await scene.send(chain.pay(), 1)
        assert timed_out["error"]["code"] == 4, "all that waited has been looked for since"
        assert not sending.done()
        chain.begin()
        assert (await sending)["result"]["blockNumber"] == "0x1"

    play(chain, act, dialect="ethereum", view="sealed")


def test_transaction_that_is_in_a_block_already_is_answered_at_once(
    chain: PreconfirmingChain,
) -> None:
    async def act(scene: Scene) -> None:
        transaction = chain.pay()
        chain.extend([transaction])
        assert (await scene.send(transaction))["result"]["status"] == "0x1"

    play(chain, act)


@pytest.mark.parametrize(
    ("given", "words"),
    [((1,), "1ms"), (("0x2",), "2ms"), (("3",), "3ms"), ((), "5ms"), ((0,), "5ms")],
)
def test_timeout_says_that_the_pool_has_it(
    chain: PreconfirmingChain, given: tuple[object, ...], words: str
) -> None:
    async def act(scene: Scene) -> None:
        transaction = chain.pay()
        assert (await scene.send(transaction, *given))["error"] == {
            "code": 4,
            "message": "The transaction was added to the transaction pool but wasn't processed in "
            + words,
            "data": "0x" + transaction.hash.hex(),
        }

    play(chain, act, sync_timeout=0.005)


def test_longer_timeouts_than_the_longest_are_lowered(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        found = await scene.send(chain.pay(), 10**12)
        assert found["error"]["message"].endswith("processed in 7ms")

    play(chain, act, sync_longest_timeout=0.007)


def test_refusals_are_those_of_sending(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        scene.sequencer.refusal = "replacement transaction underpriced"
        refused = (await scene.send(chain.pay()))["error"]
        assert refused == {"code": -32000, "message": scene.sequencer.refusal}
        for timeout in ("soon", -1, 1 << 64, True):
            assert (await scene.send(chain.pay(), timeout))["error"]["code"] == -32602
        undecodable = await scene.reply(request("eth_sendRawTransactionSync", "0x05c0"))
        assert b"transaction cannot be decoded" in undecodable.body

    play(chain, act)


def test_waiting_holds_no_view(chain: PreconfirmingChain) -> None:
    """Otherwise the store could not reuse the pages of the view."""

    async def act(scene: Scene) -> None:
        transaction = chain.pay()
        sending = asyncio.create_task(scene.send(transaction))
        await scene.sequencer.taken.wait()
        await scene.send(chain.pay(), 1)
        assert len(scene.ledger.views) > 2
        for view in scene.ledger.views:
            with pytest.raises(StoreClosed):
                view.stored.row(b"any")
        chain.extend([transaction])
        await sending

    play(chain, act)


def test_batch_is_answered_in_order_and_waits_as_long_as_a_view_may_be_held(
    chain: PreconfirmingChain,
) -> None:
    async def act(scene: Scene) -> None:
        first, second = chain.pay(), chain.pay()
        bodies = (sync(first), request("eth_blockNumber"), sync(second))
        with thresholds(batch_wait_seconds=0.001):
            reply = await scene.reply(b"[%b]" % b",".join(bodies))
        answers = json.loads(body_of(reply))
        assert [each.get("error", {}).get("code") for each in answers] == [4, None, 4]
        chain.extend([first])
        reply = await scene.reply(b"[%b]" % b",".join(bodies[:2]))
        receipt, number = (each["result"] for each in json.loads(body_of(reply)))
        assert (receipt["status"], number) == ("0x1", "0x0")

    play(chain, act)


def test_many_who_wait_share_one_watch(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        sent = [chain.pay() for _ in range(50)]
        before = len(asyncio.all_tasks())
        sending = [asyncio.create_task(scene.send(each)) for each in sent]
        await scene.send(chain.pay(), 1)
        assert len(asyncio.all_tasks()) == before + len(sent)
        chain.extend(sent)
        receipts = [(await each)["result"] for each in sending]
        assert [each["transactionHash"] for each in receipts] == [
            "0x" + each.hash.hex() for each in sent
        ]
        await all_tasks_ended()
        assert len(asyncio.all_tasks()) == before

    play(chain, act)


async def all_tasks_ended() -> None:
    """Wait until all requests have ended."""
    while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110, tasks have no event
        await asyncio.sleep(0)


def test_who_goes_away_is_not_looked_for(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        sending = asyncio.create_task(scene.send(chain.pay()))
        await scene.sequencer.taken.wait()
        sending.cancel()
        await all_tasks_ended()

    play(chain, act)


def test_waits_take_a_fourth_of_the_places_and_leave_the_others(chain: PreconfirmingChain) -> None:
    async def act(scene: Scene) -> None:
        budget = scene.scheduler.budget
        sent = [chain.pay() for _ in range(budget.long_waits.total)]
        sending = [asyncio.create_task(scene.send(each)) for each in sent]
        await scene.sequencer.taken.wait()
        scene.sequencer.taken.clear()
        refused = (await scene.send(chain.pay()))["error"]
        assert refused["code"] == -32005
        assert not scene.sequencer.taken.is_set(), "it was not sent"
        assert budget.waits.left == budget.waits.total - len(sent)
        chain.extend(sent)
        assert {(await each)["result"]["status"] for each in sending} == {"0x1"}
        assert budget.long_waits.left == budget.long_waits.total

    play(chain, act)
