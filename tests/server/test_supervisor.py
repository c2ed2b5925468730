from itertools import islice

import pytest

from foreblock.server.child import environment
from foreblock.server.supervisor import backoff


def test_delays_grow_from_a_tenth_of_a_second_to_five() -> None:
    delays = list(islice(backoff(), 9))
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("given", "tunables"),
    [
        ({}, "glibc.malloc.tcache_count=256"),
        ({"GLIBC_TUNABLES": ""}, "glibc.malloc.tcache_count=256"),
        (
            {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"},
            "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=256",
        ),
        ({"GLIBC_TUNABLES": "glibc.malloc.tcache_count=9"}, "glibc.malloc.tcache_count=9"),
    ],
)
def test_processes_keep_freed_memory_at_hand_unless_told_otherwise(
    given: dict[str, str], tunables: str
) -> None:
    assert environment({"PATH": "/bin", **given}) == {"PATH": "/bin", "GLIBC_TUNABLES": tunables}
