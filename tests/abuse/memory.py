"""The peak memory of processes, as measured by Linux."""

import re
from pathlib import Path


def reset_peak(processes: list[int]) -> int:
    """Reset the peak to the current memory, which is returned."""
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5", "ascii")
    return peak_bytes(processes)


def peak_bytes(processes: list[int]) -> int:
    """The sum of the peaks, including pages of files."""
    texts = [Path(f"/proc/{process}/status").read_text("utf-8") for process in processes]
    return sum(
        int(found[1]) * 1024 for text in texts if (found := re.search(r"VmHWM:\s+(\d+)", text))
    )
