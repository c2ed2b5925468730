"""The processes of a server: CPU time and memory."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def family(root: int) -> list[int]:
    """`root` and every process below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, open_ends = [], [root]
    while open_ends:
        process = open_ends.pop()
        found.append(process)
        open_ends += children.get(process, [])
    return found


def pin(root: int, core: int) -> None:
    """Let all threads of `root` and of every process below it run on this core only."""
    for process in family(root):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.sched_setaffinity(int(thread.name), {core})


def cpu_seconds(processes: list[int]) -> float:
    """User and system time of these processes, all threads, so far."""
    times = [_stat(process) for process in processes]
    return sum(int(fields[11]) + int(fields[12]) for fields in times if fields) / TICKS


def idle_seconds(core: int) -> float:
    """Idle time of a core so far."""
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        name, *times = line.split()
        if name == f"cpu{core}":
            return (int(times[3]) + int(times[4])) / TICKS  # idle, and waiting for a disk
    return 0.0


def resident_bytes(processes: list[int]) -> int:
    """Memory of these processes that is resident and not shared with a file."""
    return sum(_anonymous(process) for process in processes)


def _stat(process: int) -> list[str] | None:
    """The fields after the name, state first; none if the process is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rsplit(") ", 1)[1].split()


def _anonymous(process: int) -> int:
    try:
        resident, shared = Path(f"/proc/{process}/statm").read_text("ascii").split()[1:3]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * PAGE
