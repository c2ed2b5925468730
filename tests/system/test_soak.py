"""A shortened long run: kept data is bounded, and the judge detects violations."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from soak.findings import findings
from soak.life import Sample, live
from support.each_case import each_case


@pytest.mark.heavy
def test_a_chain_that_lives_on_keeps_no_more_than_it_should(tmp_path: Path) -> None:
    samples = list(live(tmp_path / "store", blocks=130, tps=5, every=26))
    assert [sample.block for sample in samples] == [26, 52, 78, 104, 130]
    assert samples[-1].oldest_partial > 60
    assert list(findings(samples)) == []


def steady(blocks: int = 1_800) -> Iterator[Sample]:
    """The samples of an hour without problems."""
    for block in range(100, blocks + 1, 100):
        yield Sample(
            block=block,
            transactions=block * 21,
            requests=block * 60,
            memory_mib=31.0,
            objects=47_000,
            store_bytes=10**7 + block * 44_000,
            file_bytes=11 * 10**6 + block * 44_000,
            oldest_place=block - 65,
            oldest_row=block - 65,
            oldest_partial=block - 65,
            hash_rows=block + 728,
            earliest=max(0, block - 130),
            pages_of_past=900,
        )


def test_a_steady_life_has_no_findings() -> None:
    assert list(findings(list(steady()))) == []


@each_case(
    ("field", "per_block", "finding"),
    [
        ("memory_mib", 0.02, "memory grew from 35.0 to 67.0 MiB"),
        ("objects", 5, "objects grew from 48500 to 56000"),
        ("oldest_place", -1, "still has places"),
        ("oldest_row", -1, "still has rows of partials"),
        ("oldest_partial", -1, "still has partials"),
        ("hash_rows", 10, "hashes are known"),
        ("file_bytes", 44_000, "are in use"),
        ("earliest", -1, "still has a state"),
        ("pages_of_past", 1, "grew from 1200 to 2700 pages"),
    ],
)
def test_what_grows_is_found(field: str, per_block: float, finding: str) -> None:
    samples = [
        replace(each, **{field: getattr(each, field) + per_block * each.block}) for each in steady()
    ]
    assert any(finding in each for each in findings(samples))


def test_a_store_that_grows_faster_and_faster_is_found() -> None:
    samples = [replace(it, store_bytes=it.store_bytes + 30 * it.block**2) for it in steady()]
    assert any(each.startswith("the store grew by") for each in findings(samples))
