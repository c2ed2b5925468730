"""Transactions forwarded to another endpoint: responses to workers, and leaks."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from structlog.testing import capture_logs

from foreblock.bus.messages import BusCall, BusRequest, Result, Started, Submit, ToWorker, failed
from foreblock.clock import DrivenClock
from foreblock.errors import RefusedAnswer, RejectedTransaction, SequencerBusy, SequencerUnavailable
from foreblock.follow.forwarding import BLOBS_STAY, MOST, TransactionForwarding
from foreblock.secret_urls import redact, secrets_of
from foreblock.types import keccak256
from foreblock.upstream.http import HttpReply
from support.each_case import each_case
from support.servers.toy_endpoint import ToyError, toy_endpoint
from support.servers.waiting import poll_until

RAW = b"\x02transaction"
HASH = f"0x{keccak256(RAW).hex()}"
KEY = "k3yOfTheProvider"
URL = f"https://endpoint.example/v2/{KEY}"
GONE = "sequencer not available"


@dataclass
class Endpoint:
    """Gives the same response to every body; a silent one never does."""

    status: int = 200
    body: bytes = b""
    silent: bool = False
    failure: RefusedAnswer | None = None
    posted: list[bytes] = field(default_factory=list)
    closed: bool = False

    async def post(self, body: bytes, seconds: float) -> HttpReply:
        assert seconds > 0
        self.posted.append(body)
        if self.silent:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        return HttpReply(self.status, self.body, {})

    def hide(self, text: str) -> str:
        return redact(text, secrets_of(URL))

    def close(self) -> None:
        self.closed = True


def result(value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()


def error(code: int, message: str) -> bytes:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}
    return json.dumps(body).encode()


class Worker:
    """A worker that receives immediately, or one whose messages are all still in transit."""

    def __init__(self, *, hears: bool = True) -> None:
        self.hears = hears
        self.messages: list[ToWorker] = []

    def respond(self, message: ToWorker) -> bool:
        self.messages.append(message)
        return self.hears


def submit(number: int = 1, deadline_ns: int = 10**9, raw: bytes = RAW) -> BusCall:
    return BusCall(number, "main", Submit(raw, bytes(20)), deadline_ns)


def forwarded(endpoint: Endpoint, worker: Worker, call: BusCall | None = None) -> None:
    """Forward one transaction and wait until nothing happens any more."""

    async def run() -> None:
        forwarding = TransactionForwarding("main", URL, DrivenClock(), endpoint)
        forwarding.submit(BusRequest(call or submit(), worker.respond))
        for _ in range(20):
            await asyncio.sleep(0)
        await forwarding.close()

    asyncio.run(run())


@each_case(
    ("status", "body", "heard"),
    [
        (200, result(HASH), [Result(1)]),
        (200, error(-32000, "already known"), [Result(1)]),
        (200, error(-32000, "nonce too low"), [failed(1, RejectedTransaction("nonce too low"))]),
        (200, error(-32000, "transaction type not supported"),
         [failed(1, RejectedTransaction("transaction type not supported"))]),
        (200, error(-32000, f"{URL} says no to {KEY}"),
         [failed(1, RejectedTransaction("https://endpoint.example/v2/… says no to …"))]),
        (200, error(-32005, "rate limit exceeded"), [failed(1, SequencerBusy())]),
        (429, b"slow down", [failed(1, SequencerBusy())]),
        (403, b"", [failed(1, SequencerUnavailable())]),
        (200, error(-32601, "the method does not exist"), [failed(1, SequencerUnavailable())]),
        # Errors that do not say whether it was accepted.
        (200, result("0x" + "00" * 32), []),
        (200, result(None), []),
        (200, result(True), []),
        (200, b'{"jsonrpc":"2.0","id":2,"result":"%s"}' % HASH.encode(), []),
        (200, b"<html>", []),
        (200, b'{"jsonrpc"', []),
        (502, result(HASH), []),
    ],
)  # fmt: skip
def test_only_a_clear_answer_is_an_outcome(status: int, body: bytes, heard: list[object]) -> None:
    worker, endpoint = Worker(), Endpoint(status, body)
    forwarded(endpoint, worker)
    assert worker.messages == [Started((1,)), *heard]
    (posted,) = endpoint.posted
    assert json.loads(posted) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "eth_sendRawTransaction",
        "params": [f"0x{RAW.hex()}"],
    }


def test_blobs_stay_here() -> None:
    worker, endpoint = Worker(), Endpoint(200, result(HASH))
    forwarded(endpoint, worker, submit(raw=b"\x03" + RAW[1:]))
    assert worker.messages == [failed(1, RejectedTransaction(BLOBS_STAY))]
    assert not endpoint.posted


def test_failure_on_the_way_is_said_without_secrets() -> None:
    worker = Worker()
    failure = RefusedAnswer("unreachable", f"timed out at {KEY}")
    with capture_logs() as logs:
        forwarded(Endpoint(failure=failure), worker)
    assert worker.messages == [Started((1,))]
    (event,) = logs
    assert event["event"] == "transaction_not_forwarded"
    assert event["outcome"] == "unknown"
    assert event["transaction"] == HASH
    assert event["endpoint"] == "https://endpoint.example/v2/…"
    assert KEY not in str(logs)


def test_nothing_leaves_that_its_worker_does_not_know_of() -> None:
    endpoint = Endpoint(body=result(HASH))
    deaf, late = Worker(hears=False), Worker()
    forwarded(endpoint, deaf)
    assert deaf.messages == [Started((1,)), failed(1, SequencerUnavailable())]
    forwarded(endpoint, late, submit(deadline_ns=0))
    assert late.messages == [failed(1, SequencerUnavailable())]
    assert endpoint.posted == []


def test_number_on_the_way_is_bounded_and_closing_gives_up() -> None:
    worker, endpoint = Worker(), Endpoint(silent=True)

    async def run() -> None:
        forwarding = TransactionForwarding("main", URL, DrivenClock(), endpoint)
        for number in range(MOST + 1):
            forwarding.submit(BusRequest(submit(number), worker.respond))
        await asyncio.sleep(0)
        await forwarding.close()

    asyncio.run(run())
    assert worker.messages == [
        *(Started((number,)) for number in range(MOST)),
        failed(MOST, SequencerBusy()),
    ]
    assert len(endpoint.posted) == MOST
    assert endpoint.closed


def test_real_endpoint_takes_and_refuses() -> None:
    answers: list[Callable[[], str]] = [lambda: HASH, _refuse]

    def send(params: list[object]) -> str:
        assert params == [f"0x{RAW.hex()}"]
        return answers.pop(0)()

    worker = Worker()

    def has_said(count: int) -> bool:
        return len(worker.messages) == count

    async def run(url: str) -> None:
        forwarding = TransactionForwarding("main", f"{url}/{KEY}", DrivenClock())
        for number in (1, 2):
            forwarding.submit(BusRequest(submit(number), worker.respond))
            await poll_until(partial(has_said, 2 * number))
        await forwarding.close()

    with toy_endpoint({"eth_sendRawTransaction": send}) as url:
        asyncio.run(run(url))
    assert worker.messages == [
        Started((1,)),
        Result(1),
        Started((2,)),
        failed(2, RejectedTransaction("replacement transaction underpriced")),
    ]


def _refuse() -> str:
    raise ToyError({"code": -32000, "message": "replacement transaction underpriced"})
