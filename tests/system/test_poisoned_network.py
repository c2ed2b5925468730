"""One network whose feeds are poisoned in every way, beside another one, on a small scale; `make
weather` runs longer, and measures the delay of the other.
"""

import re
from pathlib import Path

import pytest

from weather.beside import MEMORY_MIB, measure
from weather.poison import KINDS

pytestmark = pytest.mark.heavy

SECONDS = 2


def all_were_heard(said: str) -> bool:
    """Return whether every feed has got far enough that its poison is detected."""
    lines = [line for line in said.splitlines() if line.startswith("feed: ")]
    heard = {
        kind: [line for line in lines if f"/?{kind}=" in line and "no message yet" not in line]
        for kind in ("noise", "truncated", "absurd", "plausible")
    }
    return bool(
        all(heard.values())
        and ("message too big" in said or re.search(r"/\?huge=\S*: connected", said))
        and "a message of more than 1024 pieces" in said
        and said.count("more than 20 control frames a second") >= 2
    )


def test_garbage_at_full_speed_leaves_memory_bounded_and_the_other_network_undisturbed(
    tmp_path: Path,
) -> None:
    found = measure(tmp_path, tuple(KINDS), SECONDS, all_were_heard)
    assert not found.verdict.contradictions, str(found.verdict.contradictions[0])
    assert found.verdict.unjudged["no response"] == 0
    assert len(found.late.served) > 3
    assert found.memory_mib < MEMORY_MIB
