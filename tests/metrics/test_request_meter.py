"""Requests counted by the engine, compared with a plain histogram in Python."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import FastPath, Meter, Store
from foreblock.errors import InvalidArgument
from foreblock.metrics.catalogue import OK, OUTCOMES, REQUEST_DURATION, TRAFFIC
from foreblock.metrics.counter_file import CounterFile, Histogram
from foreblock.metrics.meters import RequestMeter
from support.payloads.small_store import ALICE, append, balance
from support.servers.asking import request

BOUNDS: dict[str, Any] = {
    "batch_items": 4, "batch_bytes": 1000, "batch_us": 10**6, "call_gas": 0, "call_us": 0,
    "step_us": 0,
}  # fmt: skip


def counted(
    meter: RequestMeter, counters: CounterFile, method: str
) -> tuple[list[float], list[float]]:
    """The cells of a method: by outcome, and those of its histogram."""
    row = meter.row(method)
    found = list(counters.cells[row : row + len(OUTCOMES) + REQUEST_DURATION.width])
    return found[: len(OUTCOMES)], found[len(OUTCOMES) :]


@given(st.lists(st.tuples(st.sampled_from(range(len(OUTCOMES))), st.floats(0, 10))))
def test_times_are_in_the_buckets_in_which_python_has_them(found: list[tuple[int, float]]) -> None:
    counters, plain = CounterFile(), CounterFile()
    meter, histogram = (
        RequestMeter(counters, "main"),
        Histogram(plain, REQUEST_DURATION, "main", "x"),
    )
    for outcome, seconds in found:
        meter.request(meter.row("x"), outcome, seconds)
        histogram.observe(seconds)
    outcomes, cells = counted(meter, counters, "x")
    begun = plain.row(REQUEST_DURATION, "main", "x")
    assert cells == plain.cells[begun : begun + REQUEST_DURATION.width].tolist()
    assert outcomes == [
        sum(outcome == each for outcome, _ in found) for each in range(len(OUTCOMES))
    ]


def test_the_fast_path_counts_requests_and_bytes_of_what_it_answers(tmp_path: Path) -> None:
    counters = CounterFile()
    meter = RequestMeter(counters, "main")
    rows = meter.row("eth_getBalance"), meter.row("eth_getBlockByNumber"), meter.row("eth_call")
    one = request("eth_getBalance", f"0x{ALICE.hex()}", "latest")
    block = request("eth_getBlockByNumber", "latest", False)
    unknown = request("eth_getBlockByNumber", "latest", True)
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, balance(ALICE, 1))
        fast_path = FastPath(store, **BOUNDS, meter=meter.native, rows=rows)
        with store.view() as view:
            fast_path.set_snapshot(view.heads, b"", 0)
            fast_path.cache_block(view.heads, None, "latest", False, b"{}")
        received = sent = 0
        for body in (one, b"[%b,%b]" % (one, one), block, unknown, b"[%b,%b]" % (one, block)):
            fast_path.clear_heads()
            fast_path.cache_head(b"head", len(body), b"", b"")
            data = b"head\r\n\r\n" + body
            answer = fast_path.answer(data, b"")
            assert (answer is None) == (body == unknown or body.endswith(b"false]}]"))
            if answer is not None:
                received += len(data)
                sent += len(answer)
    for method, number in (("eth_getBalance", 3), ("eth_getBlockByNumber", 1), ("eth_call", 0)):
        outcomes, histogram = counted(meter, counters, method)
        assert outcomes[OK] == sum(outcomes) == sum(histogram[:-1]) == number
    cell = counters.row(TRAFFIC, "main")
    assert counters.cells[cell : cell + 2].tolist() == [received, sent]


def test_cells_that_do_not_exist_count_nothing() -> None:
    cells = memoryview(bytearray(8 * 4)).cast("d")
    meter = Meter(cells, bounds=[1.0], outcomes=1, traffic=2)
    meter.request(100, 0, 1.0)
    meter.traffic(1, 2)
    assert cells.tolist() == [0, 0, 1, 2]


def test_cells_must_be_writable_floats() -> None:
    for wrong in (memoryview(bytes(16)).cast("d"), memoryview(bytearray(32)).cast("d")[::2]):
        with pytest.raises((InvalidArgument, BufferError)):
            Meter(wrong, bounds=[], outcomes=1, traffic=0)
    with pytest.raises(BufferError):
        Meter(memoryview(bytearray(16)), bounds=[], outcomes=1, traffic=0)
