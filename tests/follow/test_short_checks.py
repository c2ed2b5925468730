"""The checks on `foreblock follow` itself, in their short forms: seconds, and no times judged."""

import pytest

from follow.check_options import CheckOptions
from follow.run import HOLDS, run

SHORT = CheckOptions(
    minutes=0.1, tps=10, clients=1, rate=10, anchor=2, delay=0.005, at_any_speed=True
)


@pytest.mark.parametrize(
    "name", ["equality", "freshness", "lacking", "silence", "reorgs", "kills", "real-blocks"]
)
def test_a_check_holds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(name, SHORT)
    said = capsys.readouterr().out
    left = [line for line in said.splitlines() if "FAILS" in line]
    # How many answers some seconds are depends on the machine.
    few = [line for line in left if "answers are judged" in line or line.startswith(name)]
    assert code == HOLDS or left == few, said
