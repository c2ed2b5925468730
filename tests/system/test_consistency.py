"""Responses of a dev chain under load are consistent, on a small scale.

`make check NAME=consistency` has the full scale."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.servers.waiting import PATIENCE


def test_every_answer_agrees_with_the_snapshot_it_names(checkout: Path, tmp_path: Path) -> None:
    paths = [str(checkout / "python"), str(checkout / "tests")]
    done = subprocess.run(
        [sys.executable, str(checkout / "tests" / "checker" / "run.py"), "--seconds=2",
         "--tps=100", "--clients=2", f"--journal={tmp_path}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=2 * PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    judged = re.search(r"([\d,]+)   eth_simulateV1", done.stdout)
    assert judged is not None
    assert int(judged[1].replace(",", "")) > 0
    assert " 0 contradictions" in done.stdout
