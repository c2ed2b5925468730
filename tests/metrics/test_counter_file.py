"""Cells shared between processes: counted in one, read in another, continued by a successor."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from foreblock.metrics.catalogue import (
    COMMIT_DURATION,
    CONNECTIONS,
    METRICS,
    REQUESTS,
    SLICES,
    SUBMISSIONS,
    alone,
)
from foreblock.metrics.counter_file import Count, CounterFile, CounterFileReader, Gauge, Histogram
from foreblock.metrics.exposition import Table


def cells_of(*files: Path) -> dict[tuple[str, tuple[str, ...]], list[float]]:
    """Return all series of some counter files, added up."""
    table = Table()
    for file in files:
        for _ in table.add_rows(*CounterFileReader(file).read()):
            pass
    return {
        (name, labels): cells
        for name, values in table.values.items()
        for labels, cells in values.items()
    }


counted = st.tuples(
    st.sampled_from(["main", "test"]), st.sampled_from(["accepted", "rejected"]),
    st.integers(1, 9),
)  # fmt: skip


@given(st.lists(st.lists(counted)))
def test_counters_rise_over_successive_processes(lives: list[list[tuple[str, str, int]]]) -> None:
    model: dict[tuple[str, str], int] = {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "worker-0"
        for life in lives:
            counters = CounterFile(file)
            for network, outcome, number in life:
                Count(counters, SUBMISSIONS, network, outcome).add(number)
                model[network, outcome] = model.get((network, outcome), 0) + number
            found = cells_of(file)
            assert found == {(SUBMISSIONS.name, key): [value] for key, value in model.items()}


def test_gauges_begin_at_zero_with_each_process(tmp_path: Path) -> None:
    for value in (7.0, 2.0):
        counters = CounterFile(tmp_path / "a")
        if value == 2.0:
            assert cells_of(tmp_path / "a") == {
                (CONNECTIONS.name, ("http",)): [0.0], (SLICES.name, ()): [5.0],
            }  # fmt: skip
        Gauge(counters, CONNECTIONS, "http").set(value)
        if value == 7.0:
            Count(counters, SLICES).add(5)


def test_series_of_several_processes_are_added_up(tmp_path: Path) -> None:
    for name, number in (("a", 1), ("b", 2)):
        counters = CounterFile(tmp_path / name)
        Count(counters, SLICES).add(number)
        Gauge(counters, CONNECTIONS, name).set(number)
    assert cells_of(tmp_path / "a", tmp_path / "b") == {
        (SLICES.name, ()): [3.0],
        (CONNECTIONS.name, ("a",)): [1.0],
        (CONNECTIONS.name, ("b",)): [2.0],
    }


def test_a_reader_sees_rows_that_are_added_later(tmp_path: Path) -> None:
    counters = CounterFile(tmp_path / "a")
    reader = CounterFileReader(tmp_path / "a")
    assert reader.read() == ([], [])
    Count(counters, SLICES).add()
    assert [row.layout.name for row in reader.read()[0]] == [SLICES.name]
    Gauge(counters, CONNECTIONS, "http").set(3)
    rows, cells = reader.read()
    assert [cells[row.cell] for row in rows] == [1.0, 3.0]


def test_rows_that_find_no_room_count_nowhere_and_harm_nobody() -> None:
    counters = CounterFile()
    names = [f"method_{number}" for number in range(10_000)]
    cells = [counters.row(REQUESTS, "main", name) for name in names]
    assert 0 in cells
    kept = [cell for cell in cells if cell]
    assert len(set(kept)) == len(kept)
    assert min(kept) >= REQUESTS.width
    assert counters.row(REQUESTS, "main", names[0]) == cells[0]


def test_a_total_that_is_kept_elsewhere_is_followed_and_never_falls(tmp_path: Path) -> None:
    totals = ([1, 4, 4, 9], [2, 3])  # of two processes, each from zero
    for life in totals:
        count = Count(CounterFile(tmp_path / "a"), SLICES)
        for total in life:
            count.follow(total)
    assert cells_of(tmp_path / "a") == {(SLICES.name, ()): [12.0]}


@given(st.lists(st.floats(0, 10)))
def test_histograms_have_each_time_in_the_first_bucket_that_holds_it(times: list[float]) -> None:
    counters = CounterFile()
    histogram = Histogram(counters, COMMIT_DURATION, "main")
    for each in times:
        histogram.observe(each)
    cell = counters.row(COMMIT_DURATION, "main")
    found = counters.cells[cell : cell + COMMIT_DURATION.width].tolist()
    bounds = [*COMMIT_DURATION.bounds, float("inf")]
    expected = [
        sum(low < each <= high for each in times)
        for low, high in zip([-1.0, *bounds], bounds, strict=False)
    ]
    assert found[:-1] == expected
    assert abs(found[-1] - sum(times)) < 1e-6


def test_every_metric_has_a_layout_and_a_name_of_its_own() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert alone(metric).width == metric.width
        assert metric.name.startswith(("foreblock_", "process_"))
        assert (metric.kind == "counter") == metric.name.endswith("_total")
