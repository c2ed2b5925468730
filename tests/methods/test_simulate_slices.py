"""How long simulations and long calls hold the loop, counted in work and not in time.

The pace of these tests is over at every look, so that steps stop wherever others
may have their turn; what was done between two stops is counted.
"""

import asyncio
import gc
import inspect
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Raw

from abuse.simulations import EXCESSES
from foreblock.ledger.calls import overrides as laying
from foreblock.ledger.calls.overrides import AccountOverride, Slots, apply_in_steps, forget
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.simulation.simulation_request import CallRequest, PlainCalls
from foreblock.long_json import MOST_PARTS, STRETCH
from foreblock.methods import long_overrides, simulate_params, simulate_text
from foreblock.methods import overrides as reading
from foreblock.methods.call_object import CallObject
from foreblock.methods.calls import CallMethods
from foreblock.methods.estimates import EstimateMethods
from foreblock.methods.long_overrides import read_long_overrides
from foreblock.methods.options import Dialect, Options
from foreblock.methods.overrides import read_many_overrides
from foreblock.methods.params import slots
from foreblock.methods.simulate_long_block import read_long_block
from foreblock.methods.simulate_params import PORTION, _read_many_calls
from foreblock.methods.simulate_text import _pieces
from foreblock.scheduling.steps import Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.service.app import Service, ServiceOptions, make_scheduler
from support.servers.asked_by import ANYBODY
from support.servers.long_work import scheduler


class Over(Pace):
    """Others should always have their turn."""

    def is_over(self) -> bool:
        return True


def longest(steps: Steps[Any], done: Callable[[], int]) -> tuple[int, Any]:
    """The most that was done between two stops, and what came of the steps."""
    stops = [done()]
    try:
        while True:
            assert next(steps) is None, "nothing here is heavy"
            stops.append(done())
    except StopIteration as ended:
        stops.append(done())
        return max(after - before for before, after in pairwise(stops)), ended.value


class FakeOverlay:
    """Counts what is laid over it, slots by the portion."""

    laid = 0

    def set(self, _address: bytes, **_fields: object) -> None:
        self.laid += 1


RULES: Rules = None  # type: ignore[assignment]  # no precompile is touched


def addresses(count: int) -> list[bytes]:
    return [(2**159 + at).to_bytes(20) for at in range(count)]


def test_accounts_are_laid_over_the_state_in_portions() -> None:
    overlay: Any = FakeOverlay()
    accounts = {address: AccountOverride(balance=1) for address in addresses(1000)}
    most, _ = longest(apply_in_steps(accounts, overlay, RULES, Over()), lambda: overlay.laid)
    assert overlay.laid == 1000
    assert most <= laying.PORTION


def test_accounts_are_forgotten_in_portions() -> None:
    accounts = {address: AccountOverride(balance=1) for address in addresses(1000)}
    most, _ = longest(forget(accounts, Over()), lambda: -len(accounts))
    assert not accounts
    assert most <= laying.PORTION


def test_slots_are_laid_over_the_state_in_portions() -> None:
    overlay: Any = FakeOverlay()
    rest = tuple(Slots({at: 1}) for at in range(100))
    accounts = {address: AccountOverride(state=Slots({}), further=rest) for address in addresses(2)}
    most, _ = longest(apply_in_steps(accounts, overlay, RULES, Over()), lambda: overlay.laid)
    assert overlay.laid == 202
    assert most <= 2


@pytest.fixture
def accounts_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many accounts were read at once, each time."""
    counts: list[int] = []
    original = reading.read_overrides

    def counting(given: dict[str, Any], argument: int) -> dict[bytes, AccountOverride]:
        counts.append(len(given))
        return original(given, argument)

    monkeypatch.setattr(reading, "read_overrides", counting)
    monkeypatch.setattr(long_overrides, "read_overrides", counting)
    return counts


def test_many_accounts_are_read_in_portions(accounts_read: list[int]) -> None:
    given = {"0x" + address.hex(): Raw(b'{"balance":"0x1"}') for address in addresses(1000)}
    steps = read_many_overrides(given, 0, Over())
    most, found = longest(steps, lambda: sum(accounts_read))
    assert len(found) == 1000
    assert most <= reading.PORTION


def test_accounts_of_a_long_text_are_read_in_portions(accounts_read: list[int]) -> None:
    texts = [b'"0x%b":{}' % address.hex().encode() for address in addresses(5000)]
    raw = Raw(b"{" + b",".join(texts) + b"}")
    most, found = longest(read_long_overrides(raw, 0, Over()), lambda: sum(accounts_read))
    assert len(found) == 5000
    assert most <= min(MOST_PARTS, STRETCH // len(texts[0]))


def test_slots_of_a_long_text_are_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counting(raw: Raw, argument: int, path: str) -> Slots | None:
        sizes.append(memoryview(raw).nbytes)
        return slots(raw, argument, path)

    monkeypatch.setattr(long_overrides, "slots", counting)
    words = b",".join(b'"0x%064x":"0x%064x"' % (at, at) for at in range(5000))
    raw = Raw(b'{"0x%b":{"state":{%b}}}' % (b"11" * 20, words))
    most, found = longest(read_long_overrides(raw, 0, Over()), lambda: sum(sizes))
    (account,) = found.values()
    assert len(account.state) + sum(map(len, account.further)) == 5000
    assert most <= STRETCH + len(b"{}")


@pytest.mark.parametrize("method", [CallMethods, EstimateMethods])
def test_overrides_of_a_call_are_read_laid_and_forgotten_in_portions(
    long_ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    accounts_read: list[int],
    method: type[CallMethods | EstimateMethods],
) -> None:
    laid = 0
    original = laying._lay

    def counting(*arguments: Any) -> None:  # noqa: ANN401, as they are
        nonlocal laid
        laid += 1
        original(*arguments)

    monkeypatch.setattr(laying, "_lay", counting)
    methods = method(Options(), scheduler(1))
    texts = [b'"0x%b":{"balance":"0x1"}' % address.hex().encode() for address in addresses(5000)]
    raw = Raw(b'[{"to":"0x%b"},"latest",{%b}]' % (b"11" * 20, b",".join(texts)))
    view = long_ledger.view()
    steps: Steps[Any] = methods._long_steps(view, raw, Over())
    most, _ = longest(steps, lambda: sum(accounts_read) + laid)
    view.close()
    assert (sum(accounts_read), laid) == (5000, 5000)
    assert most <= max(STRETCH // len(texts[0]), laying.PORTION)


def test_many_calls_are_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    original = simulate_params._read_calls

    def counting(given: list[CallObject], first: int = 0) -> list[CallRequest]:
        nonlocal read
        read += len(given)
        return original(given, first)

    monkeypatch.setattr(simulate_params, "_read_calls", counting)
    most, found = longest(_read_many_calls([CallObject()] * 5000, Over()), lambda: read)
    assert len(found) == 5000
    assert most <= PORTION


def test_of_too_many_calls_no_more_are_decoded_than_are_allowed() -> None:
    for call, kind in ((b"{}", PlainCalls), (b'{"nonce":"0x0"}', list)):
        raw = Raw(b'{"calls":[' + (call + b",") * 100_000 + b"{}]}")
        stops = 0

        def stop() -> int:
            nonlocal stops
            stops += 1
            return stops

        _, block = longest(read_long_block(raw, "$", 5000, Over()), stop)
        assert block.count == 100_001
        assert isinstance(block.calls, kind)
        assert 5000 < len(block.calls) <= 5000 + MOST_PARTS
        assert stops >= memoryview(raw).nbytes // STRETCH


def test_an_answer_is_written_in_pieces() -> None:
    class Text:
        left = 20 * THRESHOLDS.piece_bytes + 5

        def take(self, size: int) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    text: Any = Text()
    begun = text.left
    most, pieces = longest(_pieces(text, Over()), lambda: begun - text.left)
    assert sum(map(len, pieces)) == begun
    assert most <= THRESHOLDS.piece_bytes


def test_long_answers_are_never_joined() -> None:
    assert simulate_text._join([b"a", [b"b", b"c"], b"d"]) == [
        b"[", b"a", b",", b"b", b"c", b",", b"d", b"]",
    ]  # fmt: skip


@pytest.mark.parametrize("dialect", ["preconf", "ethereum"])
@pytest.mark.parametrize(
    "name", ["many_calls", "one_long_block", "slots", "accounts", "long_output", "call_overrides"]
)
def test_no_round_of_the_loop_has_all_the_work(
    long_ledger: Ledger, dialect: Dialect, name: str
) -> None:
    """Requests at full scale, in time of the processor, which does not depend on others.

    Each is tens of milliseconds of work; slices are 2.
    """
    options = ServiceOptions(methods=Options(dialect))
    scheduler = make_scheduler(options)
    service = Service(long_ledger, options, scheduler)
    body = EXCESSES[name](1.0).body
    rounds: list[float] = []

    async def watch() -> None:
        answer = service.answer(body, ANYBODY)
        assert inspect.isawaitable(answer)
        running = asyncio.ensure_future(answer)
        begun = time.thread_time()
        while not running.done():
            await asyncio.sleep(0)
            rounds.append(time.thread_time() - begun)
            begun = time.thread_time()

    gc.collect()
    gc.disable()  # it would look at what all tests before have left behind
    try:
        asyncio.run(watch())
    finally:
        gc.enable()
    scheduler.close()
    assert max(rounds) < max(0.25 * sum(rounds), 0.01), [max(rounds), sum(rounds)]
