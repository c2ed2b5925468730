"""What the disk takes, asked all the time while something else is measured on it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

PAUSE_SECONDS: Final = 0.05
PAGE: Final = bytes(4096)


@contextmanager
def probing(folder: Path) -> Iterator[list[float]]:
    """Milliseconds that a page takes from here to the disk, added to as time passes."""
    samples: list[float] = []
    stop = Event()

    def probe() -> None:
        with (folder / "probe").open("wb", buffering=0) as file:
            while not stop.wait(PAUSE_SECONDS):
                begun = time.perf_counter()
                os.write(file.fileno(), PAGE)
                os.fdatasync(file.fileno())
                samples.append((time.perf_counter() - begun) * 1e3)

    thread = Thread(target=probe)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()
