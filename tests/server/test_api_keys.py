"""API keys over HTTP and WebSocket: who is admitted, who is refused, and changes of the file."""

import asyncio
import hashlib
import json
import os
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from foreblock.errors import BadSetting
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.api_keys import ApiKey
from foreblock.scheduling.reply import Client, NoFastPath, Readiness, Reply, Served
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.key_table import LAST_GOOD, KeyTable
from foreblock.server.keyed import MeteredHandler
from foreblock.server.sweep import Ticker
from foreblock.settings import Access, ServerLimits
from support.each_case import each_case
from support.servers.in_loop import until
from support.servers.websocket_wire import handshake, masked
from support.servers.wire import Parsed, Wire, answer, answers, echo, post

ALICE, BOB = "alice-secret-0123456789", "bob-secret-0123456789"
ROOT = b"/"
LIMITS = ServerLimits(gzip_from=10_000)


def alice(units: float = 0.001, burst: float = 3, **more: object) -> dict[str, object]:
    digest = hashlib.sha256(ALICE.encode()).hexdigest()
    return {"alice": {"secret": f"sha256:{digest}", "units": units, "burst": burst, **more}}


BOB_ONLY: dict[str, object] = {"bob": {"secret": BOB, "units": 100}}


class Recording(NoFastPath):
    """Keeps the heads that the fast path gets."""

    def __init__(self, cached: list[bytes]) -> None:
        self._cached = cached

    def cache_head(
        self, head: bytes, length: int, status: bytes, headers: bytes, /, *,
        is_at_root: bool = False,
    ) -> None:  # fmt: skip
        assert length
        assert status
        assert is_at_root or not headers
        self._cached.append(head)


class Keys:
    """A file of keys, and an endpoint whose handler costs one unit."""

    def __init__(self, folder: Path, keys: dict[str, object], runtime: str = "") -> None:
        self.file = folder / "keys.json"
        self._changes = 0
        self.write({"keys": keys})
        self.failures: list[int] = []
        self.table = KeyTable(str(self.file), runtime, failed=lambda: self.failures.append(1))
        self.cached: list[bytes] = []
        self.clients: list[Client] = []
        rules = RequestRules.of(LIMITS, Access(hosts=("localhost",))).with_keys(self.table)
        self.endpoint = HttpEndpoint(
            self._served(), rules, Ticker(LIMITS, lambda: 0.0), 100, WorkerBudget()
        )
        self.wire = Wire(echo, endpoint=self.endpoint)

    def write(self, value: object) -> None:
        """Write the file, with a time of its own however coarse the clock of the disk is."""
        self._changes += 1
        text = value if isinstance(value, str) else json.dumps(value)
        self.file.write_text(text)
        os.utime(self.file, ns=(self._changes, self._changes))

    def change(self, value: object) -> None:
        self.write(value)
        self.table.refresh()

    def send(self, *headers: bytes, target: bytes = ROOT, body: bytes = b"{}") -> Parsed:
        return answer(self.wire.send(post(body, *headers).replace(b"/", target, 1)))

    def statuses(self, secret: str, count: int) -> list[int]:
        return [self.send(b"X-API-Key: " + secret.encode()).status for _ in range(count)]

    def _served(self) -> Served:
        served = Served(echo, lambda: Readiness(True, ()), Recording(self.cached))
        return served._replace(for_key=partial(self._for_key, served))

    def _for_key(self, served: Served, key: ApiKey) -> Served:
        def pay(body: bytes, client: Client) -> Reply:
            key.spend(1)
            self.clients.append(client)
            return echo(key.spec.name.encode() + b" " + body)

        timed = MeteredHandler(key, pay)
        return served._replace(answer=timed, open_session=partial(Sessions().open, timed))


@each_case(
    ("headers", "target"),
    [
        ([b"Authorization: Bearer " + ALICE.encode()], ROOT),
        ([b"authorization: bearer   " + ALICE.encode()], ROOT),
        ([b"X-API-Key: " + ALICE.encode()], ROOT),
        ([], b"/?key=" + ALICE.encode()),
        ([], b"/?a=b&key=" + ALICE.encode().replace(b"-", b"%2D")),
    ],
)
def test_a_key_has_three_forms(tmp_path: Path, headers: list[bytes], target: bytes) -> None:
    found = Keys(tmp_path, alice()).send(*headers, target=target)
    assert (found.status, found.text) == (200, "<alice {}>")


@each_case(
    ("headers", "target", "text"),
    [
        ([], ROOT, "an API key is needed"),
        ([b"X-API-Key: wrong"], ROOT, "unknown API key"),
        ([b"X-API-Key:"], ROOT, "unknown API key"),
        ([b"Authorization: Basic " + ALICE.encode()], ROOT, "an API key is needed"),
        ([b"Authorization: Bearer wrong", b"X-API-Key: " + ALICE.encode()], ROOT, "unknown"),
        ([], b"/?key=wrong", "unknown API key"),
        ([], b"/?keys=" + ALICE.encode(), "an API key is needed"),
    ],
)
def test_without_a_known_key_a_request_is_refused(
    tmp_path: Path, headers: list[bytes], target: bytes, text: str
) -> None:
    keys = Keys(tmp_path, alice())
    for _ in range(2):
        found = keys.send(*headers, target=target)
        assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
        assert text in found.text
    assert not keys.wire.over()


def test_a_hash_is_not_a_key(tmp_path: Path) -> None:
    digest = hashlib.sha256(ALICE.encode())
    for secret in (digest.hexdigest(), f"sha256:{digest.hexdigest()}"):
        assert Keys(tmp_path, alice()).statuses(secret, 1) == [401]


def test_probes_and_preflights_need_no_key(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice())
    for line in (b"GET /healthz", b"GET /readyz", b"OPTIONS /", b"GET /", b"HEAD /"):
        request = line + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert answer(keys.wire.send(request)).status in (200, 204)


def test_clients_without_a_key_may_have_a_budget(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice() | {"anonymous": {"units": 0.001, "burst": 1}})
    assert [keys.send().status for _ in range(3)] == [200, 429, 429]
    assert keys.statuses(ALICE, 1) == [200]
    assert keys.statuses("wrong", 1) == [401]
    assert [each.address for each in keys.clients] == ["192.0.2.1", "key alice"]


def test_a_key_over_its_budget_is_told_when_to_return(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice(units=0.1, burst=3) | BOB_ONLY)
    assert keys.statuses(ALICE, 5) == [200] * 3 + [429] * 2
    found = keys.send(b"X-API-Key: " + ALICE.encode())
    assert 8 <= int(found.headers["retry-after"]) <= 10
    assert found.text == "the budget of this API key is spent\n"
    assert keys.statuses(BOB, 5) == [200] * 5
    assert not keys.wire.over()


def test_pipelined_requests_are_paid_one_by_one(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice())
    one = post(b"{}", b"X-API-Key: " + ALICE.encode())
    assert [each.status for each in answers(keys.wire.send(one * 5))] == [200] * 3 + [429] * 2


def test_the_fast_path_gets_no_head_of_a_key(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice() | {"anonymous": {"units": 100}})
    keys.statuses(ALICE, 2)
    keys.send()
    assert keys.cached == []
    assert len(keys.endpoint.heads) == 2


def test_budgets_hold_for_all_workers(tmp_path: Path) -> None:
    runtime = str(tmp_path)
    workers = [Keys(tmp_path, alice(burst=5), runtime) for _ in range(2)]
    found = [each.statuses(ALICE, 1)[0] for _ in range(4) for each in workers]
    assert found == [200] * 5 + [429] * 3


def test_a_refusal_comes_late_and_holds_what_follows_it(tmp_path: Path) -> None:
    async def scene() -> None:
        keys = Keys(tmp_path, alice(burst=1))
        one = post(b"{}", b"X-API-Key: " + ALICE.encode())
        assert answer(keys.wire.send(one)).status == 200
        assert keys.wire.send(one) == b""
        assert keys.wire.send(one * 2) == b""
        before = asyncio.get_running_loop().time()
        await until(lambda: keys.wire.out.count(b"HTTP/1.1 429") == 3)
        assert asyncio.get_running_loop().time() - before > THRESHOLDS.refusal_seconds
        assert keys.wire.send(one) == b""
        keys.wire.transport.close()  # nobody waits for the last one
        await asyncio.sleep(2 * THRESHOLDS.refusal_seconds)

    asyncio.run(scene())


def _has_grown(wire: Wire, before: int) -> bool:
    return len(wire.out) > before


def test_a_compressed_response_is_paid_as_well(tmp_path: Path) -> None:
    async def scene() -> list[Parsed]:
        keys, found = Keys(tmp_path, alice()), []
        for _ in range(4):
            before = len(keys.wire.out)
            headers = (b"Accept-Encoding: gzip", b"X-API-Key: " + ALICE.encode())
            keys.wire.send(post(b"x" * 20_000, *headers))
            await until(partial(_has_grown, keys.wire, before))
            found.append(answer(keys.wire.out[before:]))
        return found

    found = asyncio.run(scene())
    assert [each.status for each in found] == [200] * 3 + [429]
    assert [each.headers.get("content-encoding") for each in found] == ["gzip"] * 3 + [None]


def test_a_changed_file_is_read(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice())
    assert keys.statuses(ALICE, 4) == [200] * 3 + [429]
    keys.table.refresh()
    with capture_logs() as logs:
        keys.change({"keys": BOB_ONLY})
    assert keys.statuses(ALICE, 1) == [401]
    assert keys.statuses(BOB, 2) == [200] * 2
    assert [(each["event"], each["keys"]) for each in logs] == [("api_keys_read", 1)]
    keys.change({"keys": alice(burst=30) | BOB_ONLY})
    assert 200 in keys.statuses(ALICE, 1)


def test_a_file_of_no_use_changes_nothing_and_is_reported(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice() | BOB_ONLY)
    for text in ("{", '{"keys": {"alice": {"units": "' + ALICE + '"}}}', "[]"):
        with capture_logs() as logs:
            keys.change(text)
        assert keys.statuses(BOB, 1) == [200]
        assert [each["event"] for each in logs] == ["api_keys_unusable"]
        assert ALICE not in str(logs)
    keys.file.unlink()
    keys.table.refresh()
    keys.table.refresh()
    assert keys.statuses(BOB, 1) == [200]
    assert len(keys.failures) == 4


def test_a_worker_that_starts_later_has_the_last_good_keys(tmp_path: Path) -> None:
    first = Keys(tmp_path, alice() | BOB_ONLY, str(tmp_path))
    first.write("{")
    later = KeyTable(str(first.file), str(tmp_path))
    assert later.find(BOB.encode()) is not None
    assert later.find(b"wrong") is None
    assert BOB not in "".join(each.read_text("latin-1") for each in (tmp_path / "keys").iterdir())
    with pytest.raises(BadSetting):
        KeyTable(str(first.file))


def test_keys_change_where_no_copy_can_be_kept(tmp_path: Path) -> None:
    keys = Keys(tmp_path, alice(), str(tmp_path))
    copy = tmp_path / "keys" / LAST_GOOD
    copy.unlink()
    copy.mkdir()
    keys.change({"keys": BOB_ONLY})
    assert keys.statuses(BOB, 1) == [200]
    assert keys.statuses(ALICE, 1) == [401]


def test_a_websocket_ends_with_its_key(tmp_path: Path) -> None:
    async def scene() -> None:
        keys = Keys(tmp_path, alice() | BOB_ONLY)
        wires = [Wire(echo, endpoint=keys.endpoint) for _ in range(2)]
        for wire, secret in zip(wires, (ALICE, BOB), strict=True):
            head = wire.send(handshake(target=b"/?key=" + secret.encode()))
            assert head.startswith(b"HTTP/1.1 101 ")
        assert b"<alice hello>" in wires[0].send(masked(b"hello"))
        refused = Wire(echo, endpoint=keys.endpoint).send(handshake())
        assert refused.startswith(b"HTTP/1.1 401 ")
        keys.change({"keys": {"bob": {"secret": BOB, "units": 5}}})
        assert b"not valid any more" in wires[0].out
        assert b"<bob hello>" in wires[1].send(masked(b"hello"))
        wires[1].transport.close()
        await until(lambda: not keys.table.by_name[b"bob"].channels)

    asyncio.run(scene())


def test_without_the_setting_a_key_is_an_unused_header() -> None:
    wire = Wire(echo)
    for number in range(3):
        found = answer(wire.send(post(b"1", b"Authorization: Bearer %d" % number)))
        assert (found.status, found.text) == (200, "<1>")
    assert len(wire.endpoint.heads._verdicts) == 1
