"""One network whose feeds are poison of every kind, beside another, on a small scale; `make
weather` measures it for longer."""

from pathlib import Path

from weather.beside import MEMORY_MIB, measure
from weather.poison import KINDS

SECONDS = 5


def test_garbage_at_full_speed_leaves_memory_bounded_and_the_other_network_undisturbed(
    tmp_path: Path,
) -> None:
    found = measure(tmp_path, tuple(KINDS), SECONDS)
    assert not found.verdict.contradictions, str(found.verdict.contradictions[0])
    assert found.verdict.unjudged["no answer came"] == 0
    assert len(found.late.served) > 10
    assert found.late.share(0.5) < 300 * 10**6, "a flashblock is served before the next one but one"
    assert found.late.worst_ns < 2 * 10**9
    assert found.memory_mib < MEMORY_MIB
    for kind in ("noise", "truncated", "absurd", "plausible"):
        lines = found.said.splitlines()
        (line,) = [each for each in lines if each.startswith("feed: ") and f"/{kind}:" in each]
        assert "nothing heard" not in line
    assert "message too big" in found.said or "/huge: connected" in found.said
    assert "a message of more than 1024 pieces" in found.said
