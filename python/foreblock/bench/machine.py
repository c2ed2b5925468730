"""What the figures were measured on."""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path


def describe(folder: Path) -> dict[str, str]:
    """Machine, software and disk, as far as the system tells."""
    one, five, fifteen = os.getloadavg()
    return {
        "foreblock": version("foreblock"),
        "Python": f"{sys.version.split()[0]} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": _memory(),
        "disk": _file_system(folder),
        "load": f"{one:.2f} {five:.2f} {fifteen:.2f}",
    }


def resident_mib() -> float:
    """Memory of this process that is resident, in MiB, files it maps included."""
    return _status("VmRSS") / 1024


def anonymous_mib() -> float:
    """The part of it that is not backed by a file."""
    return _status("RssAnon") / 1024


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.1f} GiB"


def _file_system(folder: Path) -> str:
    """The type of the file system that `folder` lies on: the longest mount above it."""
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text("utf-8").splitlines():
        _, mount, kind, *_ = line.split()
        if folder.resolve().is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]
