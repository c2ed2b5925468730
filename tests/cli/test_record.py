"""`foreblock record` and `foreblock replay`: a round trip."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from foreblock.feed.messages import encode
from foreblock.feed.recording import head_line, message_line
from support.payloads.flashblocks import first, hash_of, later
from support.servers.command import run
from support.servers.dev_processes import PACKAGE
from support.servers.waiting import PATIENCE

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}
MESSAGES = [
    encode(first(7, "job", hash_of("six"), hash_of("7.0"))),
    *(encode(later(7, "job", index, hash_of(f"7.{index}"))) for index in range(1, 20)),
]


def foreblock(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "foreblock", *arguments]


def test_a_recording_survives_a_replay(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    lines = [message_line(0.01 * at, message) for at, message in enumerate(MESSAGES)]
    original.write_bytes(head_line("ws://here/ws", "") + b"".join(lines))
    with subprocess.Popen(
        foreblock("replay", str(original), "--listen=127.0.0.1:0", "--speed=0"),
        stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
    ) as replaying:  # fmt: skip
        assert replaying.stdout is not None
        url = replaying.stdout.readline().strip()
        done = subprocess.run(
            foreblock("record", url, str(copy), "--messages=20"),
            capture_output=True, text=True, check=True, env=ENVIRONMENT, timeout=PATIENCE,
        )  # fmt: skip
        assert done.stdout.startswith("20 messages, ")
        assert replaying.stdout.readline() == "20 messages sent\n"
    texts = [line.split(b'"text"')[1] for line in copy.read_bytes().splitlines()[1:]]
    assert texts == [line.split(b'"text"')[1].rstrip(b"\n") for line in lines]


def test_refusals_are_one_line(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"something else\n")
    for arguments, why in [
        (("record", "http://here", str(tmp_path / "new")), "is not a URL of the form ws://"),
        (("record", "ws://here/ws", str(there)), f"{there} exists; --force overwrites it"),
        (("replay", str(there), "--listen=127.0.0.1:0", "--clients=0"), "not a recording"),
    ]:
        done = run(*arguments)
        assert done.returncode == 1
        assert why in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("listens", "why"), [(False, "connection refused"), (True, "no message")])
def test_a_feed_without_messages_is_a_failure(tmp_path: Path, *, listens: bool, why: str) -> None:
    with socket.socket() as feed:
        feed.bind(("127.0.0.1", 0))
        if listens:
            feed.listen()
        url = f"ws://127.0.0.1:{feed.getsockname()[1]}/ws"
        limit = ["--seconds=0.01"] * listens
        done = run("record", url, tmp_path / "new", *limit)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"foreblock: no response from {url}: {why}")
    assert not list(tmp_path.iterdir())
