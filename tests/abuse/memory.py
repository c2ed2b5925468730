"""The most memory that processes had at one time, as Linux counts it."""

import re
from pathlib import Path


def reset_peak(processes: list[int]) -> int:
    """Count anew from what they have now, which is returned."""
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5", "ascii")
    return peak_bytes(processes)


def peak_bytes(processes: list[int]) -> int:
    """The sum of what each had at most, pages of files included."""
    texts = [Path(f"/proc/{process}/status").read_text("utf-8") for process in processes]
    return sum(
        int(found[1]) * 1024 for text in texts if (found := re.search(r"VmHWM:\s+(\d+)", text))
    )
