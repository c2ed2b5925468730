"""Other thresholds for a while, so that tests reach bounds with little, or do not at all."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import asdict, force_setattr

from foreblock.scheduling.thresholds import THRESHOLDS


@contextmanager
def thresholds(**values: float) -> Iterator[None]:
    """These values instead of those in force."""
    former = asdict(THRESHOLDS)
    assert values.keys() <= former.keys()
    for name, value in values.items():
        force_setattr(THRESHOLDS, name, value)
    try:
        yield
    finally:
        for name in values:
            force_setattr(THRESHOLDS, name, former[name])
