"""`foreblock watch` in a pseudo-terminal."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from support.servers.dev_processes import package_environment
from support.servers.toy_endpoint import toy_endpoint
from support.servers.waiting import PATIENCE, until

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
HOME = "\x1b[H"
ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"  # the alternate screen, and back


# The first process of a session that opens a terminal controls it, and receives its Ctrl-C.
BEGIN = """
import os, runpy, sys
os.open(os.ttyname(0), os.O_RDWR)
runpy.run_module("foreblock", run_name="__main__", alter_sys=True)
"""


class Terminal:
    """A window and its program."""

    def __init__(self, process: subprocess.Popen[bytes], side: int) -> None:
        self.process = process
        self._side = side
        self._said = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self._said += os.read(self._side, 1 << 16)
            except OSError:  # the program has ended
                return

    @property
    def output(self) -> str:
        return self._said.decode("utf-8", "replace")

    def frame(self) -> list[str]:
        """The lines of the last complete picture."""
        pictures = self.output.split(HOME)
        text = pictures[-2] if len(pictures) > 2 else ""
        return [line.rstrip("\r") for line in ESCAPES.sub("", text).split("\n")]

    def shows(self, part: str) -> None:
        until(lambda: any(part in line for line in self.frame()), f"{part!r} shows")

    def press(self, keys: str) -> None:
        os.write(self._side, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        size(self._side, columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def ends(self) -> int:
        return self.process.wait(PATIENCE)


def size(side: int, columns: int, lines: int) -> None:
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def watching(urls: Sequence[str], columns: int = 100, lines: int = 30) -> Iterator[Terminal]:
    """`foreblock watch` in a window."""
    ours, its = pty.openpty()
    size(its, columns, lines)
    environment = package_environment() | {"TERM": "xterm-256color"}
    environment = {k: v for k, v in environment.items() if k not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, "watch", "--every=0.02", *urls],
        stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(its)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def url() -> Iterator[str]:
    """A chain that gains a transaction with every poll."""
    looks = {"latest": 0, "pending": 0}

    def moving(params: list[Any]) -> object:
        name = params[0]
        if name not in looks:
            return None  # earlier blocks
        looks[name] += 1
        count = looks["latest"] % 10
        number = 100 + looks["latest"] // 10 + (name == "pending")
        return {
            "number": hex(number), "hash": "0x" + "01" * 32, "timestamp": "0x64",
            "gasUsed": hex(21_000 * count), "gasLimit": "0x1c9c380", "baseFeePerGas": "0x3b9aca00",
            "transactions": ["0x"] * count,
        }  # fmt: skip

    with toy_endpoint({"eth_getBlockByNumber": moving}) as found:
        yield found


def test_it_shows_a_moving_chain_and_quits_with_q(url: str) -> None:
    with watching([url]) as terminal:
        terminal.shows(url.removeprefix("http://"))
        terminal.shows("live")
        seen = next(line for line in terminal.frame() if "latest" in line)
        until(lambda: seen not in terminal.frame(), "another number")
        terminal.press("q")
        assert terminal.ends() == 0
        until(lambda: LEAVES in terminal.output, "the screen is as before")
        assert ENTERS in terminal.output
        assert "Traceback" not in terminal.output


def test_ctrl_c_quits_too(url: str) -> None:
    with watching([url]) as terminal:
        terminal.shows("live")
        terminal.press("\x03")
        assert terminal.ends() == 0
        assert "Traceback" not in terminal.output


def test_it_follows_the_size_of_the_window(url: str) -> None:
    with watching([url, url], columns=140) as terminal:
        name = url.removeprefix("http://")
        until(lambda: any(line.count(name) == 2 for line in terminal.frame()), "side by side")
        terminal.resize(70, 20)

        def smaller() -> bool:
            lines = terminal.frame()
            named = [line for line in lines if name in line]
            fits = len(lines) <= 20 and max(map(len, lines)) <= 70
            return fits and len(named) == 2

        until(smaller, "one below the other")
        terminal.press("q")
        assert terminal.ends() == 0


def test_an_endpoint_that_is_gone_holds_up_no_other(url: str) -> None:
    with watching([url, "http://127.0.0.1:1"]) as terminal:
        terminal.shows("live")
        terminal.shows("! no response from http://127.0.0.1:1")
        terminal.press("q")
        assert terminal.ends() == 0


def test_it_can_be_paused(url: str) -> None:
    with watching([url]) as terminal:
        terminal.shows("live")
        terminal.press("p")
        terminal.shows("paused")
        terminal.press("p")
        until(lambda: not any("paused" in line for line in terminal.frame()), "updates continue")
        terminal.press("q")
        assert terminal.ends() == 0
