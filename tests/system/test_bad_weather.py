"""A service follows a chain through all faults at once, on a small scale.

`make check NAME=fault-injection` has the full scale and judges delays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.waiting import PATIENCE

pytestmark = pytest.mark.heavy


def test_every_answer_in_bad_weather_is_true_to_the_chain_that_is_followed(
    checkout: Path, tmp_path: Path
) -> None:
    paths = [str(checkout / "python"), str(checkout / "tests")]
    done = subprocess.run(
        [sys.executable, str(checkout / "tests" / "weather" / "run.py"), "--minutes=0.1",
         "--only=together", "--at-any-speed", f"--folder={tmp_path}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=2 * PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [each.split() for each in done.stdout.splitlines() if "together" in each]
    flashblocks, answers = int(line[3]), int(line[4])
    assert flashblocks > 3
    assert answers > 50
