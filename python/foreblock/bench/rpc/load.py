"""wrk, the load generator, and the Lua it runs."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.errors import InvalidArgument

# What wrk tells at the end, as one line of JSON; times are in microseconds.
_DONE: Final = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"duration":%d,"failed":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""
_HEAD: Final = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
"""
_IN_TURN: Final = """
local requests, at = {}, 0
init = function(args)
  for i, body in ipairs(bodies) do requests[i] = wrk.format(nil, nil, nil, body) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
"""


@dataclass(frozen=True)
class LoadResult:
    """The result of a run of wrk."""

    requests: int
    seconds: float
    failed: int
    p50_us: int
    p99_us: int


def script(bodies: Sequence[bytes]) -> str:
    """A Lua script that sends these bodies in turn; a single body is repeated at no cost."""
    if len(bodies) == 1:
        return f"{_HEAD}wrk.body = {_quoted(bodies[0])}\n{_DONE}"
    listed = ",\n".join(map(_quoted, bodies))
    return f"{_HEAD}local bodies = {{\n{listed}\n}}\n{_IN_TURN}{_DONE}"


def run(wrk: Path, url: str, lua: Path, connections: int, seconds: float, core: int) -> LoadResult:
    """One run of the generator on its own core."""
    command = ["taskset", "-c", str(core), str(wrk), "-t1", f"-c{connections}",
               f"-d{max(1, round(seconds))}s", "-s", str(lua), url]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise InvalidArgument(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    return parse(done.stdout)


def parse(output: str) -> LoadResult:
    """The line that the script printed."""
    line = next(line for line in output.splitlines() if line.startswith("{"))
    told = json.loads(line)
    return LoadResult(
        told["requests"], told["duration"] / 1e6, told["failed"], told["p50"], told["p99"]
    )


def _quoted(body: bytes) -> str:
    """JSON is ASCII here and has no closing long bracket, so it stands as it is."""
    text = body.decode("ascii")
    assert "]==]" not in text
    return f"[==[{text}]==]"
