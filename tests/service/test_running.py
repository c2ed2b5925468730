"""Servers as processes: ready when they respond, gone when the block ends."""

import sys
from pathlib import Path

import pytest

from foreblock.bench.rpc.peers import family
from foreblock.errors import Unreachable
from foreblock.service.running import HOST, free_port, started
from support.servers.waiting import until

# A server that also starts a child which outlives it unless it is ended.
SERVER = """
import subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_all_processes_end_with_the_block() -> None:
    port = free_port()
    command = [sys.executable, "-c", SERVER, str(port)]
    with started(command, f"http://{HOST}:{port}") as process:
        processes = family(process.pid)
        assert len(processes) == 2
    # A killed process takes a moment to disappear.
    until(lambda: not any(map(_running, processes)), "no process outlives the block")


def test_server_that_ends_at_once_leaves_its_last_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no luck today')"]
    with (
        pytest.raises(Unreachable, match="ended at its start: no luck today"),
        started(command, f"http://{HOST}:{free_port()}"),
    ):
        pass


def _running(process: int) -> bool:
    """Return whether the process runs and is not a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rsplit(") ", 1)[1][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
