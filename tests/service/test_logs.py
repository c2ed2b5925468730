"""Log lines: whole, in order, dropped and counted, without waiting."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from foreblock.service.log_output import MOST_BYTES, LogQueue, write_to
from support.servers.waiting import PATIENCE, until

LINE = "x" * 1023
FITTING = MOST_BYTES // (len(LINE) + 1)


class Stuck:
    """Accepts nothing until it is released."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.begun = threading.Event()
        self.free = threading.Event()

    def write(self, data: bytes) -> None:
        self.begun.set()
        assert self.free.wait(PATIENCE)
        self.written.append(data)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    found = Stuck()
    yield found
    found.free.set()


def test_lines_come_in_their_order() -> None:
    written: list[bytes] = []
    queue = LogQueue(written.append, str)
    for number in range(1000):
        queue.put(f"line {number}")
    queue.close(PATIENCE)
    assert written == [f"line {number}\n".encode() for number in range(1000)]


def test_what_does_not_fit_is_dropped_and_counted_where_it_was(stuck: Stuck) -> None:
    queue = LogQueue(stuck.write, lambda count: f"{count} dropped")
    queue.put("first")
    assert stuck.begun.wait(PATIENCE)
    for _ in range(FITTING + 6):
        queue.put(LINE)
    stuck.free.set()
    queue.close(PATIENCE)
    kept = [LINE.encode() + b"\n"] * (FITTING - 1)  # the first is not written yet
    assert stuck.written == [b"first\n", *kept, b"7 dropped\n"]


def test_a_queue_that_has_room_again_takes_lines_again(stuck: Stuck) -> None:
    queue = LogQueue(stuck.write, lambda count: f"{count} dropped")
    queue.put("x" * (MOST_BYTES - 1))
    queue.put("too much")
    stuck.free.set()
    until(lambda: b"1 dropped\n" in stuck.written, "the count is logged")
    queue.put("after")
    queue.close(PATIENCE)
    assert stuck.written[1:] == [b"1 dropped\n", b"after\n"]


def test_the_end_does_not_wait_for_ever(stuck: Stuck) -> None:
    queue = LogQueue(stuck.write, str)
    queue.put("x")
    queue.close(0)
    assert stuck.written == []


def test_text_that_is_no_unicode_is_written_all_the_same() -> None:
    written: list[bytes] = []
    queue = LogQueue(written.append, str)
    queue.put("\ud800")
    queue.close(PATIENCE)
    assert written == [b"\\ud800\n"]


@pytest.mark.parametrize("blocking", [True, False])
def test_all_is_written_to_a_pipe_whose_reader_comes_late(*, blocking: bool) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    data = b"x" * 300_000  # more than a pipe holds
    thread = threading.Thread(target=partial(write_to, writing, data))
    thread.start()
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read(len(data)) == data
    thread.join()
    write_to(writing, b"nobody reads any more")
    os.close(writing)


LOGGING = """
import logging, structlog
from foreblock.service.log_output import configure_queued
configure_queued("warning")
log = structlog.get_logger()
log.info("unimportant")
log.warning("first", number=1)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
logging.getLogger("library").error("odd %s", "thing")
"""


def test_a_process_writes_all_that_it_logged_before_it_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGING], capture_output=True, text=True, check=True
    )
    first, failed, odd = map(json.loads, done.stderr.splitlines())
    assert (first["event"], first["level"], first["number"]) == ("first", "warning", 1)
    assert failed["exception"].endswith("ZeroDivisionError: division by zero")
    assert (odd["event"], odd["logger"], odd["level"]) == ("odd thing", "library", "error")


SERVING = """
import os, threading, structlog
from foreblock.service import launch
from foreblock.settings import Settings

def fail(_):
    structlog.get_logger().error("first")
    raise RuntimeError

launch.seen_page = fail
try:
    launch.run(Settings(), [], print)
except RuntimeError:
    # The thread that writes the log has ended.
    os.write(2, b"%d\\n" % threading.active_count())
"""


def test_a_service_has_written_its_log_when_the_command_prints_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVING], capture_output=True, text=True, check=True
    )
    first, threads = done.stderr.splitlines()
    assert json.loads(first)["event"] == "first"
    assert threads == "1"


SECRETS = """
import structlog
from foreblock.service.log_output import configure_queued
configure_queued("info", {form!r})
log = structlog.get_logger()
url = "wss://me:hunter2@feed.example/v2/hunter2?token=hunter2"
log.info("feed_lost", feed=url, why=f"no response from {{url}}: lost", urls=[url, (url,)])
log.info("told", facts={{"url": url}}, other=ValueError(url))
with structlog.contextvars.bound_contextvars(request_id="abc"):
    try:
        raise OSError(f"cannot reach {{url}}")
    except OSError:
        log.exception("request_failed")
"""


@pytest.mark.parametrize("form", ["auto", "json", "text"])
def test_no_secret_of_a_url_is_written_and_ids_of_requests_are(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SECRETS.format(form=form)], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "hunter2" not in done.stderr
    assert done.stderr.count("feed.example/v2/") >= 6
    assert "abc" in done.stderr
    assert "Traceback" in done.stderr
    if form == "text":
        assert "feed_lost" in done.stderr.splitlines()[0]
        return
    lost, _, failed = map(json.loads, done.stderr.splitlines())
    safe = "wss://…@feed.example/v2/…?token=…"
    assert lost["feed"] == safe
    assert lost["why"] == f"no response from {safe}: lost"
    assert lost["urls"] == [safe, [safe]]
    assert failed["request_id"] == "abc"
    assert f"cannot reach {safe}" in failed["exception"]
