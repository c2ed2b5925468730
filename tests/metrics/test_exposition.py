"""The text of metrics, parsed by Prometheus' own library."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.metrics.catalogue import METRICS, Metric, Series
from foreblock.metrics.exposition import Table, exposition

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
    for bound, cell in zip((*map(str, metric.bounds), "+Inf"), cells[:-1], strict=True):
        total += cell
        yield f"{metric.name}_bucket", tuple(sorted((*named, ("le", bound)))), total
    yield f"{metric.name}_sum", named, cells[-1]
    yield f"{metric.name}_count", named, total


@given(st.lists(series(), max_size=12))
def test_what_prometheus_reads_is_what_was_counted(found: list[Series]) -> None:
    table, model = Table(), dict[tuple[Metric, tuple[str, ...]], list[float]]()
    for metric, labels, cells in found:
        table.add((metric, labels, cells))
        before = model.get((metric, labels), [0.0] * metric.width)
        model[metric, labels] = [a + b for a, b in zip(before, cells, strict=True)]
    families = list(parser.text_string_to_metric_families(text_of(table)))
    read = {
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
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
