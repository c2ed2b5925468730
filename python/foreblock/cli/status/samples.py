"""Metrics of an instance as its status needs them: samples by name and labels. No I/O."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a scrape: name, labels, value."""

    found: tuple[tuple[str, Mapping[str, str], float], ...] = ()

    def of(self, name: str, **labels: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """The samples of a metric that have these labels."""
        for found, had, value in self.found:
            if found == name and labels.items() <= had.items():
                yield had, value

    def value(self, name: str, **labels: str) -> float | None:
        """The sum of a metric's samples with these labels; none where there are none."""
        values = [value for _, value in self.of(name, **labels)]
        return sum(values) if values else None


def parse_samples(text: str) -> Samples:
    """The samples of a text in Prometheus' format; lines that are none are left out."""
    found = []
    for line in text.splitlines():
        sample = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if sample is None:
            continue
        try:
            value = float(sample[3])
        except ValueError:
            continue
        found.append((sample[1], dict(_LABEL.findall(sample[2] or "")), value))
    return Samples(tuple(found))
