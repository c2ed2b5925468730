"""The processes of a cluster: started, looked after, stopped.

Each has a session of its own, so that Ctrl-C reaches none of them and a signal to its group
reaches all that it has started. What they print is in a file in their folder. One that ends is
started again after a while, as an operator would.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Final

from foreblock.cli.cluster.plan import Planned
from foreblock.errors import WorkerFailed

OUTPUT: Final = "output.log"
STOP_SECONDS: Final = 20.0
_LAST_LINES: Final = 3


class ClusterProcess:
    """One process of a plan."""

    def __init__(self, planned: Planned) -> None:
        self.planned: Final = planned
        self.ended_at = 0.0  # when it was seen that it had ended
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process, which leads its group; 0 where it does not run."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it; raises `OSError`."""
        planned = self.planned
        planned.folder.mkdir(parents=True, exist_ok=True)
        if planned.config:
            (planned.folder / "nats.conf").write_text(planned.config, "utf-8")
        settings = {name: v for name, v in os.environ.items() if not name.startswith("FOREBLOCK_")}
        with (planned.folder / OUTPUT).open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603, a command of the plan
                planned.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=settings,
                cwd=planned.folder,
                start_new_session=True,
            )

    def has_ended(self) -> int | None:
        """Its exit code, once."""
        code = None if self._process is None else self._process.poll()
        if code is not None:
            self._process, self.ended_at = None, time.monotonic()
        return code

    def last_words(self) -> str:
        """The last lines that it has printed."""
        text = (self.planned.folder / OUTPUT).read_text("utf-8", "replace")
        return "\n".join(text.splitlines()[-_LAST_LINES:])

    def signal(self, number: int) -> None:
        """Send a signal to the process itself."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it and all that it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self, until: float) -> None:
        """Wait for its end; kill its group when time is up."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._process = None


def readiness_of(planned: Planned) -> str:
    """What a node answers when it is asked whether it is ready, or why there is no answer."""
    connection = HTTPConnection(planned.address, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        return f"no answer: {error!r}"
    finally:
        connection.close()


def is_ready(planned: Planned) -> bool:
    """Whether a node answers that it is ready."""
    return readiness_of(planned).startswith("ready")


def until_ready(
    processes: Sequence[ClusterProcess], seconds: float, step: Callable[[], None]
) -> None:
    """Wait until all nodes are ready; `step` is called between two looks.

    Raises `WorkerFailed` where one has ended, or takes too long.
    """
    end = time.monotonic() + seconds
    waiting = list(processes)
    while waiting:
        for each in processes:
            if (code := each.has_ended()) is not None:
                name = each.planned.name
                raise WorkerFailed(f"{name} has ended with {code}: {each.last_words()}")
        waiting = [each for each in waiting if each.planned.is_node and not is_ready(each.planned)]
        if waiting and time.monotonic() > end:
            raise WorkerFailed(f"not ready after {seconds:.0f} s: {_why(waiting)}")
        step()


def _why(waiting: Iterable[ClusterProcess]) -> str:
    """What each of them says of itself, and what it has printed last."""
    return "\n".join(
        f"{each.planned.name}: {readiness_of(each.planned).strip()}\n{each.last_words()}"
        for each in waiting
    )


def stop_all(groups: Iterable[Sequence[ClusterProcess]]) -> None:
    """Stop groups one after the other, the processes of each together."""
    for group in groups:
        until = time.monotonic() + STOP_SECONDS
        for each in group:
            each.signal(signal.SIGTERM)
        for each in group:
            each.wait(until)
