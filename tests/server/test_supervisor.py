import pytest

from foreblock.server.child import environment


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
