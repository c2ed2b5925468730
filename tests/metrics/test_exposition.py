"""The text of metrics and those of the process, compared with Prometheus' own library."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.metrics.catalogue import METRICS, Metric, Series
from foreblock.metrics.counter_file import CounterFileReader
from foreblock.metrics.exposition import Table, exposition
from foreblock.metrics.meters import ProcessMetrics, open_counter_file

client = pytest.importorskip("prometheus_client", reason="prometheus-client is missing")
parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is missing")

names = st.text(st.sampled_from('ab"\\\n {}=,é'), max_size=6)


@st.composite
def series(draw: st.DrawFn) -> Series:
    metric = draw(st.sampled_from(METRICS))
    labels = tuple(draw(names) for _ in metric.labels)
    counts = st.integers(0, 2**53).map(float)
    cells = [draw(counts) for _ in range(metric.width - 1)]
    return metric, labels, [*cells, draw(st.floats(0, 1e15))]


def text_of(table: Table) -> str:
    steps = exposition(table)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return b"".join(done.value).decode()


def expected(metric: Metric, labels: tuple[str, ...], cells: list[float]) -> Iterator[object]:
    """The samples of a series, by an independent reading of the format."""
    named = tuple(sorted(zip(metric.labels, labels, strict=True)))
    if metric.kind != "histogram":
        yield metric.name, named, cells[0]
        return
    total = 0.0
    for bound, cell in zip((*metric.bounds, float("inf")), cells[:-1], strict=True):
        total += cell
        yield f"{metric.name}_bucket", tuple(sorted((*named, ("le", bound)))), total
    yield f"{metric.name}_sum", named, cells[-1]
    yield f"{metric.name}_count", named, total


def of_bound(label: tuple[str, str]) -> tuple[str, str | float]:
    """A label, with the bound of a bucket as a number."""
    name, value = label
    assert name != "le" or "e" not in value, "no exponents"
    return name, float(value) if name == "le" else value


@given(st.lists(series(), max_size=12))
def test_what_prometheus_reads_is_what_was_counted(found: list[Series]) -> None:
    table, model = Table(), dict[tuple[Metric, tuple[str, ...]], list[float]]()
    for metric, labels, cells in found:
        table.add((metric, labels, cells))
        before = model.get((metric, labels), [0.0] * metric.width)
        model[metric, labels] = [a + b for a, b in zip(before, cells, strict=True)]
    families = list(parser.text_string_to_metric_families(text_of(table)))
    read = {
        (sample.name, tuple(sorted(map(of_bound, sample.labels.items()))), sample.value)
        for family in families
        for sample in family.samples
    }
    assert read == {
        each for (metric, labels), cells in model.items()
        for each in expected(metric, labels, cells)
    }  # fmt: skip
    assert {(each.name, each.type, each.documentation) for each in families} == {
        (each.name.removesuffix("_total"), each.kind, each.help) for each in METRICS
    }


def test_the_metrics_of_a_process_are_those_of_prometheus(tmp_path: Path) -> None:
    process = ProcessMetrics(open_counter_file(str(tmp_path), "worker-0"), "worker-0")
    files = [(tmp_path / "opened").open("wb") for _ in range(20)]
    process.sample()
    expected = {
        sample.name: sample.value
        for family in client.ProcessCollector(registry=None).collect()
        for sample in family.samples
    }
    for file in files:
        file.close()
    table = Table()
    for _ in table.add_rows(*CounterFileReader(tmp_path / "metrics" / "worker-0").read()):
        pass
    found = {name: values[("worker-0",)][0] for name, values in table.values.items() if values}
    assert expected.keys() <= found.keys()
    assert found["process_max_fds"] == expected["process_max_fds"]
    assert abs(found["process_open_fds"] - expected["process_open_fds"]) <= 2, "its own"
    for name in ("process_virtual_memory_bytes", "process_resident_memory_bytes"):
        assert found[name] == pytest.approx(expected[name], rel=0.1)
    seconds = expected["process_cpu_seconds_total"]  # in ticks of 10 ms
    assert 0 < found["process_cpu_seconds_total"] <= seconds + 0.02
    assert found["process_start_time_seconds"] >= expected["process_start_time_seconds"]
