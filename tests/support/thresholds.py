"""Other thresholds for a while, so that tests reach bounds with little, or do not at all."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import asdict, force_setattr

from foreblock.scheduling.thresholds import THRESHOLDS


def nearly_all_is_long() -> AbstractContextManager[None]:
    """Bodies and params of more than a few bytes are read as long ones are, on threads."""
    return thresholds(long_body_bytes=64, long_params_bytes=64, thread_params_bytes=64)


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
