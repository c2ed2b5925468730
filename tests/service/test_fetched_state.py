"""A worker over an empty store gives the same responses as one over a complete store."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from foreblock._engine import MissingKeys, Store
from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import BusRequest, CallUpstream, GetState
from foreblock.errors import (
    InvalidProofData,
    NewEpoch,
    NoUpstream,
    StateMissing,
    UnitsSpent,
)
from foreblock.follow.prediction import call_hints
from foreblock.follow.worker_state import AGAIN, FetchBudget
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.follow_rows import put_trust
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Reply, whole
from foreblock.service.app import make_served
from foreblock.service.network_views import NODE_PATH
from foreblock.service.service_metrics import WorkerMetrics
from foreblock.settings import FollowSettings, Settings
from foreblock.settings.loading import load
from foreblock.settings.networks import Network
from support.chains.long_chain import EMITTER
from support.chains.partial_store import WholeNetwork, begin_at_latest
from support.payloads.bytecode import code
from support.payloads.cases import read_case
from support.servers.asking import ANYBODY, Asker, body_of, request
from support.servers.cold_follower import follower
from support.servers.waiting import PATIENCE

STATE_METHODS = [
    "eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_getStorageValues",
    "eth_getTransactionCount", "eth_call", "eth_estimateGas", "eth_createAccessList",
    "eth_simulateV1", "eth_getProof",
]  # fmt: skip


def hexed(address: bytes) -> str:
    return "0x" + address.hex()


@pytest.fixture(scope="module", params=STATE_METHODS)
def cases(conformance: Path, request: pytest.FixtureRequest) -> list[bytes]:
    """Published requests about the latest state."""
    folder = sorted((conformance / request.param).glob("*.io"))
    assert folder, request.param
    return [body for path in folder for body, _ in read_case(path)]


@pytest.mark.parametrize("most", [1 << 30, 2], ids=["whole answers", "answers in pieces"])
def test_published_requests_have_the_answers_of_a_whole_store(
    cases: list[bytes],
    published_ledger: Ledger,
    published_ethereum: Asker,
    tmp_path: Path,
    most: int,
) -> None:
    judged = 0
    for number, body in enumerate(cases):
        told: dict[str, Any] = {"most": most, "fetch_rounds": 10_000}
        with follower(published_ledger, tmp_path / str(number), **told) as cold:
            answer = json.loads(cold.reply(body).body)
            if answer.get("error", {}).get("code") == 4444:
                continue  # about a block before the anchor
            assert answer == json.loads(published_ethereum.reply(body).body), body
            asked = len(cold.network.asked), len(cold.network.proofs_at)
            judged += any(asked)
            assert json.loads(cold.reply(body).body) == answer
            again = len(cold.network.asked), len(cold.network.proofs_at)
            assert again == asked, "known state is not requested again"
    assert judged


def test_batch_asks_once_for_all(long_ledger: Ledger, ethereum: Asker, tmp_path: Path) -> None:
    addresses = [hexed(bytes([number]) * 20) for number in range(1, 20)]
    calls = [
        {"jsonrpc": "2.0", "id": at, "method": "eth_getBalance", "params": [each, "latest"]}
        for at, each in enumerate(addresses)
    ]
    body = json.dumps(calls).encode()
    with follower(long_ledger, tmp_path / "store") as cold:
        reply = cold.reply(body)
        assert json.loads(reply.body) == json.loads(ethereum.reply(body).body)
        (asked,) = cold.network.asked
        assert len(asked.accounts) == len(addresses)


def test_all_slots_of_one_request_are_asked_for_at_once(
    long_ledger: Ledger, ethereum: Asker, tmp_path: Path
) -> None:
    accounts = [EMITTER, hexed(bytes([7]) * 20)]
    slots = {each: [f"0x{2**200 + at:064x}" for at in range(512)] for each in accounts}
    body = request("eth_getStorageValues", slots, "latest")
    with follower(long_ledger, tmp_path / "store", fetch_rounds=2) as cold:
        assert cold.reply(body).body == ethereum.reply(body).body
        assert sum(len(each) for each in cold.network.asked) >= 1024


def test_long_run_asks_for_all_that_it_will_miss(long_ledger: Ledger, tmp_path: Path) -> None:
    """It is stopped inline after 200 µs, before it has reported all missing state."""
    reads_3000_slots = "0x610bb85b80545060019003806003570000"
    with closing(long_ledger.view()) as view:
        state = view.state(view.latest)
        stored = (at for at, _ in state.accounts(None, 1000) if state.slots(at, None, 1))
        to = hexed(next(stored))
    with follower(long_ledger, tmp_path / "store") as cold:
        asked = ({"to": to}, "latest", {to: {"code": reads_3000_slots}})
        assert cold.ask("eth_call", *asked) == "0x"
        assert len(cold.network.asked) <= 3
        assert sum(len(each) for each in cold.network.asked) >= 3000


def test_every_answer_says_its_base_and_how_it_is_believed(
    long_ledger: Ledger, tmp_path: Path
) -> None:
    with follower(long_ledger, tmp_path / "store") as cold:
        headers = cold.reply(request("eth_getBalance", hexed(bytes(20)), "latest")).headers
        told = cold.ask("foreblock_snapshot")
    view = long_ledger.view()
    latest = f"{view.latest.number:#x}:0x{view.latest.hash.hex()}"
    view.close()
    assert f"; base={latest}; trust=proven\r\n".encode() in headers
    assert (told["base"], told["trust"]) == (told["latest"], "proven")


@pytest.mark.parametrize(
    ("failure", "code", "data"),
    [
        (NoUpstream("nothing in 2 s", 3), -32002, {"retryAfter": 3}),
        (UnitsSpent(5), -32005, {"retryAfter": 5}),
    ],
)
def test_what_cannot_be_had_is_an_error_that_says_when_to_ask_again(
    long_ledger: Ledger, tmp_path: Path, failure: Exception, code: int, data: dict[str, int]
) -> None:
    with follower(long_ledger, tmp_path / "store") as cold:
        cold.network.failure = failure
        error = cold.ask("eth_getBalance", hexed(bytes(20)), "latest")
        message = f"state not available: {failure}"
        assert error == {"code": code, "message": message, "data": data}
        assert cold.ask("eth_chainId"), "what needs no state is answered"


@pytest.mark.parametrize("failure", [NoUpstream("it thunders", 1), InvalidProofData("it is late")])
def test_failure_of_a_moment_is_not_told(
    long_ledger: Ledger, tmp_path: Path, failure: Exception
) -> None:
    asked = ("eth_getBalance", hexed(bytes(20)), "latest")
    with follower(long_ledger, tmp_path / "store") as cold:
        expected = cold.ask(*asked)
    with follower(long_ledger, tmp_path / "other") as cold:
        cold.network.failures = [failure] * AGAIN
        assert cold.ask(*asked) == expected
        assert len(cold.network.asked) == AGAIN + 1


def test_cold_state_may_be_refused(long_ledger: Ledger, tmp_path: Path) -> None:
    with follower(long_ledger, tmp_path / "store", cold="refuse") as cold:
        error = cold.ask("eth_getBalance", hexed(bytes(20)), "latest")
        assert error["code"] == -32002
        assert not cold.network.asked


def test_more_than_one_request_may_fetch_is_refused(long_ledger: Ledger, tmp_path: Path) -> None:
    with follower(long_ledger, tmp_path / "a", fetch_keys=3) as cold:
        slots = {EMITTER: [f"0x{number:064x}" for number in range(9)]}
        assert cold.ask("eth_getStorageValues", slots, "latest")["code"] == -32005
    with follower(long_ledger, tmp_path / "b", fetch_rounds=2) as cold:
        cold.network.failure = NewEpoch()  # nothing is learned, and it runs again
        assert cold.ask("eth_getBalance", hexed(bytes(20)), "latest")["code"] == -32005
        assert len(cold.network.asked) == 2


def test_state_before_the_anchor_names_what_is_kept(long_ledger: Ledger, tmp_path: Path) -> None:
    with follower(long_ledger, tmp_path / "store") as cold:
        error = cold.ask("eth_getBalance", hexed(bytes(20)), "0x3")
        assert error["code"] == 4444
        assert f"older than block {cold.ledger.view().latest.number}" in error["message"]
        assert cold.ask("eth_getBlockByNumber", "0x3", False) is None


def test_trusted_state_needs_no_proof(long_ledger: Ledger, ethereum: Asker, tmp_path: Path) -> None:
    with follower(long_ledger, tmp_path / "store", trust="trusted") as cold:
        honest = cold.network.proof
        cold.network.proof = lambda *asked: honest(*asked)._replace(nodes=())  # type: ignore[method-assign]
        asked = ("eth_getBalance", hexed(bytes(20)), "latest")
        assert cold.ask(*asked) == ethereum.ask(*asked)


class Serving:
    """A worker's service of a followed network, with bus requests served by a test."""

    def __init__(self, network: WholeNetwork, data: Path) -> None:
        self.network = network
        self.tasks: set[asyncio.Task[None]] = set()
        exchange = BusServer(self.on_call, lambda: ())
        link = BusClient("")
        link.connect_directly(exchange)
        follow = FollowSettings(chain="op-mainnet", upstream=("http://x",))
        made = Network(name="main", data=str(data), source="follow", follow=follow)
        settings = load(Settings, {"data": "none", "workers": "1"}, {}).settings
        metrics = WorkerMetrics(str(data.parent), "worker-0")
        (self.served,) = make_served(
            settings, [made], link, WorkerBudget(), [SeenCommit()], metrics
        )

    def on_call(self, request: BusRequest) -> None:
        if isinstance(request.call.body, CallUpstream):  # a hint; there is none
            request.fail(NoUpstream("no such method", 1))
            return
        task = asyncio.ensure_future(self.answer(request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, request: BusRequest) -> None:
        body = request.call.body
        assert isinstance(body, GetState)
        request.finish_in_parts(await self.network.ask(body.epoch, body.keys, 1.0))


async def finished(reply: Reply | Awaitable[Reply]) -> Any:  # noqa: ANN401, JSON
    return json.loads(body_of(reply if isinstance(reply, Reply) else await reply))


def test_worker_of_a_followed_network_asks_over_the_bus(
    long_ledger: Ledger, preconf: Asker, tmp_path: Path
) -> None:
    begin_at_latest(long_ledger, tmp_path / "store")
    bodies = [
        request("eth_getBalance", hexed(bytes([number]) * 20), "latest") for number in range(6)
    ]

    expected = [json.loads(preconf.reply(body).body) for body in bodies]

    async def scene() -> None:
        serving = Serving(WholeNetwork(long_ledger), tmp_path / "store")
        served = serving.served
        assert served.open_session is not None
        session = served.open_session(Listening())
        answers = [
            served.answer(bodies[0], ANYBODY),
            served.answer(bodies[1], ANYBODY),
            served.at_paths[NODE_PATH](bodies[2], ANYBODY),
            session.receive(bodies[3]),
            session.receive(bodies[4]),
            served.answer(bodies[0], ANYBODY),
        ]
        found = await asyncio.gather(*map(finished, answers))
        assert found == [*expected[:5], expected[0]]
        subscribed = await finished(session.receive(request("eth_subscribe", "newHeads")))
        assert subscribed["result"]
        readiness = served.readiness()
        assert not readiness.ready, "its latest block is years old"
        assert "trust: proven" in readiness.lines
        assert served.metrics is not None
        metrics = served.metrics()
        text = whole(metrics if isinstance(metrics, bytes) else await metrics)
        assert b'foreblock_state_requests_total{network="main",outcome="found"} ' in text
        session.ended()

    asyncio.run(scene())


class Listening:
    """A connection without sent messages."""

    client = ANYBODY
    unsent = 0

    def send(self, message: bytes) -> bool:  # noqa: ARG002, as in the protocol
        return True

    def close(self, code: int, reason: str) -> None: ...


def test_other_networks_load_nothing_of_it() -> None:
    of_it = [
        "foreblock.rpc.fetching_dispatcher", "foreblock.follow.worker_state",
        "foreblock.follow.pre_anchor", "foreblock.follow.learned_state",
    ]  # fmt: skip
    code = (
        "import sys, foreblock.service.worker, foreblock.service.app\n"
        f"print([each for each in {of_it} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_hints_of_what_a_call_reads_save_rounds(long_ledger: Ledger, tmp_path: Path) -> None:
    """The call ends at the first slot that is zero; a hint names all of them."""
    depth = 6
    with closing(long_ledger.view()) as view:
        state = view.state(view.latest)
        pages = ((at, state.slots(at, None, depth)) for at, _ in state.accounts(None, 1000))
        address, found = next(each for each in pages if len(each[1]) == depth)
    slots, to = [slot for slot, _ in found], hexed(address)
    answer = (1, 0, "MSTORE", 32, 0, "RETURN")
    end = len(code(*chain.from_iterable(is_set(each, 0xFFFF) for each in slots), *answer)) // 2 - 1
    end_at = end.to_bytes(2)
    checks = chain.from_iterable(is_set(each, end_at) for each in slots)
    program = code(*checks, *answer, "JUMPDEST", "STOP")

    async def hint(missed: Sequence[Missed]) -> StateKeys:
        assert [each.method for each in missed] == ["eth_call"]
        return StateKeys(slots={address: frozenset(slots)})

    rounds: list[int] = []
    for chosen in (None, hint):
        folder = tmp_path / str(len(rounds))
        with follower(long_ledger, folder, hint=chosen) as cold:
            asked = {"to": to}, "latest", {to: {"code": program}}
            assert cold.ask("eth_call", *asked) == f"0x{1:064x}"
            rounds.append(len(cold.network.asked))
    assert rounds[0] >= depth
    assert rounds[1] <= 4


def is_set(slot: int, otherwise: int | bytes) -> tuple[str | int | bytes, ...]:
    """Jump if a slot is zero."""
    return (slot, "SLOAD", 0, "EQ", otherwise, "JUMPI")


def test_hint_is_the_access_list_of_a_call() -> None:
    to, asked = hexed(b"\xc0" * 20), []

    def hinted(
        said: object, method: str = "eth_call", params: bytes = b'[{"to":"0x"}]'
    ) -> StateKeys:
        async def ask(name: str, given: bytes) -> bytes:
            asked.append((name, json.loads(given)))
            return json.dumps(said).encode()

        missed = Missed(method, Raw(params), StateMissing(MissingKeys()))
        return asyncio.run(call_hints(ask, [missed]))

    said = {"accessList": [{"address": to, "storageKeys": [f"0x{7:064x}"]}], "gasUsed": "0x1"}
    address = bytes.fromhex(to[2:])
    assert hinted(said) == StateKeys(frozenset([address]), {address: frozenset([7])})
    assert asked == [("eth_createAccessList", [{"to": "0x"}, "latest"])]
    wrong: list[object] = [None, [], {"accessList": [{"address": "0x1", "storageKeys": []}]}]
    assert not any(map(hinted, wrong))
    count = len(asked)
    assert not hinted(said, params=b'[{},"latest",{"0x":{}}]'), "no upstream has overridden state"
    assert not hinted(said, method="eth_getBalance")
    assert len(asked) == count


def test_hints_are_asked_for_together_and_not_waited_for_beyond_the_deadline() -> None:
    waiting: list[bytes] = []

    async def ask(_: str, params: bytes) -> bytes:
        waiting.append(params)
        while len(waiting) < 3:  # noqa: ASYNC110, the others come in the same moment
            await asyncio.sleep(0)
        return b"null"

    missed = [Missed("eth_call", Raw(b'[{"to":"0x"}]'), StateMissing(MissingKeys([bytes(20)])))] * 3
    assert not asyncio.run(asyncio.wait_for(call_hints(ask, missed), PATIENCE))

    class HintedState:
        """Finds everything immediately; its hints never come."""

        settings = FollowSettings(fetch_timeout=0.01)
        hinted_round = 2
        fetched = 0

        async def fetch(self, wanted: StateKeys, _: float) -> None:
            self.fetched += bool(wanted)

        async def hint(self, _: Sequence[Missed]) -> StateKeys:
            await asyncio.Event().wait()
            return StateKeys()

        def clock(self) -> float:
            return 0.0

        def predict(self, _: Sequence[Missed]) -> StateKeys:
            return StateKeys()

    async def three_rounds(state: Any) -> None:  # noqa: ANN401, a part of it
        rounds = FetchBudget(state)
        for _ in range(3):
            await rounds.fetch(missed)

    state = HintedState()
    asyncio.run(asyncio.wait_for(three_rounds(state), PATIENCE))
    assert state.fetched == 3


def test_a_view_says_the_trust_of_its_own_snapshot(long_ledger: Ledger, tmp_path: Path) -> None:
    begin_at_latest(long_ledger, tmp_path)
    with Store(str(tmp_path), write=True) as store:
        put_trust(store, "proven")
        ledger = Ledger(store)
        with closing(ledger.view()) as before:
            put_trust(store, "trusted")
            with closing(ledger.view()) as after:
                assert (before.trust, after.trust) == ("proven", "trusted")
