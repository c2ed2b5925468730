"""The outcome of a flow on one chain: parsed from its program's output."""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.environments import HERE, path_of
from tools.flows import Flow
from tools.targets import Running

ENDED = "it ended"  # the step after the last named one
STEP = re.compile(r"^(ok|failed) ([^:\n]+?)(?:: (.*))?$", re.MULTILINE)
LAST_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """The passed steps of a flow, the failed ones with the reason, and the elapsed time."""

    passed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Return whether every step passed."""
        return bool(self.passed) and not self.failed


def read(output: str, status: int, seconds: float) -> Outcome:
    """The outcome of a program from its output and its exit status."""
    passed, failed = [], {}
    for verdict, step, reason in STEP.findall(output):
        if verdict == "ok":
            passed.append(step)
        else:
            failed[step] = reason
    if status and not failed:
        failed[ENDED] = f"exit status {status}: " + " / ".join(
            output.strip().splitlines()[-LAST_LINES:]
        )
    return Outcome(tuple(passed), failed, seconds)


def play(flow: Flow, chain: Running) -> tuple[Outcome, str]:
    """Run the program of a flow against a chain; return its output, too."""
    with tempfile.TemporaryDirectory() as out:
        told = {**os.environ, **chain.variables, "OUT": out, "PATH": path_of(flow.needs)}
        told.pop("PYTHONPATH", None)  # must not affect flows in Python
        begun = time.monotonic()
        process = subprocess.Popen(
            flow.command, cwd=_folder(flow), env=told, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=flow.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nfailed {ENDED}: not within {flow.seconds:g} s"
        except SystemExit:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return read(output, process.returncode, time.monotonic() - begun), output


def _folder(flow: Flow) -> Path:
    return HERE / flow.family
