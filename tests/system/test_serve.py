"""The service in operation: processes killed and stopped under load."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.each_case import sampled
from support.servers.serving import Load, Service, alive, command, environment, serving
from support.servers.toy import NOISE
from support.servers.waiting import PATIENCE, until
from support.servers.wire import post

CLIENTS = 8


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    """The socket to which a service reports its state, as systemd has it."""
    path = tmp_path_factory.mktemp("systemd") / "notify"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock,
        pytest.MonkeyPatch.context() as patch,
    ):
        sock.bind(str(path))
        sock.settimeout(PATIENCE)
        patch.setenv("NOTIFY_SOCKET", str(path))
        patch.setenv("WATCHDOG_USEC", "1000000")
        yield sock


@pytest.fixture(scope="module")
def lasting(systemd: socket.socket) -> Iterator[Service]:
    """A service with one worker that no test stops, started by `systemd`."""
    assert systemd.fileno() >= 0
    with serving("workers=1") as running:
        yield running


def test_systemd_is_told_that_it_serves_and_then_that_it_runs(
    systemd: socket.socket, lasting: Service
) -> None:
    assert systemd.recv(100) == b"READY=1"
    with lasting.connect() as client:
        assert client.ask(b"at once").status == 200
    assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3


def kill_one_worker(service: Service, load: Load) -> None:
    """Kill a worker while it responds, and wait for the next one."""
    answered, victim = load.answered, min(service.workers())
    until(lambda: load.answered > answered + 200, "answers")
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(service.workers() - {victim}) == 2, "a new worker")


def test_killed_worker_costs_its_own_requests_and_nothing_else() -> None:
    with serving("workers=2") as service:
        with service.connect() as client:
            pid, _, body = client.ask(b"hello").text.partition(":")
            assert (int(pid) in service.workers(), body) == (True, "hello")
        load = Load(service)
        with load.running(CLIENTS):
            for _ in range(3):
                kill_one_worker(service, load)
        assert load.malformed == []
        assert load.refused == 0
        # Each client has at most one open request, and can lose one for each kill.
        assert load.reset <= 3 * CLIENTS
        with service.connect() as client:
            assert client.ask(b"after").status == 200


def test_only_worker_killed_while_clients_queue(lasting: Service) -> None:
    """Without a live worker, connections wait in the socket that the supervisor keeps."""
    (victim,) = lasting.workers()
    os.kill(victim, signal.SIGKILL)
    until(lambda: not alive(victim), "its end")
    with lasting.connect() as client:
        assert client.ask(b"patient").text.endswith(":patient")


def logged(service: Service, event: str) -> dict[str, object]:
    """The next log line of an event."""
    assert service.process.stderr is not None
    for line in service.process.stderr:
        found: dict[str, object] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"no {event}")


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_worker_that_hangs_is_replaced() -> None:
    with serving("workers=2", "worker_timeout=2", logs=subprocess.PIPE) as service:
        hung = min(service.workers())
        os.kill(hung, signal.SIGSTOP)
        said = logged(service, "process_hung")
        assert (said["name"], said["pid"], said["silent_seconds"]) == ("worker", hung, 2.0)
        until(lambda: len(service.workers() - {hung}) == 2, "a new worker")
        for _ in range(20):  # enough connections to reach both
            with service.connect() as client:
                assert client.ask(b"x").status == 200


def test_worker_that_cannot_be_started_again_is_tried_until_it_can() -> None:
    with serving("workers=2", "log_level=warning", logs=subprocess.PIPE) as service:
        supervisor, (healthy, victim) = service.process.pid, sorted(service.workers())
        files = open_files(supervisor)
        before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (files - 3, before[1]))
        os.kill(victim, signal.SIGKILL)
        for _ in range(3):
            assert "Too many open files" in str(logged(service, "process_not_started")["why"])
        assert service.workers() == {healthy}
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
        until(lambda: len(service.workers()) == 2, "a new worker")
        with service.connect() as client:
            assert client.ask(b"x").status == 200
        until(lambda: open_files(supervisor) == files, "nothing is left of what failed")


def test_neither_answers_nor_stopping_wait_for_who_reads_the_logs() -> None:
    with serving("workers=1", logs=subprocess.PIPE) as service:
        with service.connect() as client:
            assert client.ask(b"noise").text.endswith(":noise")
            client.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.receive().text == "ok\n"
        assert service.process.stderr is not None
        told = dropped = 0
        while told < NOISE:
            line = json.loads(service.process.stderr.readline())
            if line["event"] == "noise":
                assert line["number"] == told, "missing responses are counted at the right place"
                told += 1
            else:
                assert line["event"] == "log_lines_dropped"
                told, dropped = told + line["count"], dropped + line["count"]
        assert (told, dropped > 0) == (NOISE, True)
        with service.connect() as client:
            client.ask(b"noise")
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(PATIENCE) == 0


def test_what_had_to_be_killed_to_stop_is_told() -> None:
    with serving("workers=1", "drain_grace=0", logs=subprocess.PIPE) as service:
        (stopped,) = service.workers()
        os.kill(stopped, signal.SIGSTOP)
        service.process.send_signal(signal.SIGTERM)
        assert logged(service, "process_killed")["pid"] == stopped
        assert service.process.wait(PATIENCE) == 1
        assert service.process.stderr is not None
        said = service.process.stderr.read()
        assert said == "foreblock: killed processes that did not stop in time: worker\n"


@pytest.mark.parametrize(("body", "pipelined"), sampled([(b"x", 5), (b"x", 1), (b"slow", 1)], 1))
def test_stopping_under_load_answers_all_that_was_accepted(body: bytes, pipelined: int) -> None:
    # A client that gets no turn within the idle timeout of a connection would count as cut off.
    with serving("workers=2", "drain_grace=60") as service:
        load = Load(service, body, pipelined)
        with load.running(CLIENTS):
            until(lambda: load.answered > 100, "answers")
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(PATIENCE) == 0
        assert load.malformed == []
        assert load.reset == 0
        assert load.refused == CLIENTS, "each client reconnected once without success"


def test_stopping_closes_resting_clients_and_bounds_the_wait_for_slow_ones() -> None:
    with serving("workers=1", "drain_grace=0.5") as service, service.connect() as resting:
        resting.ask(b"x")
        with service.connect() as slow:
            slow.send(post()[:20])
            service.process.send_signal(signal.SIGTERM)
            assert resting.receive_all() == b""
            assert service.process.wait(PATIENCE) == 0


def test_second_interrupt_kills() -> None:
    with serving("workers=1", "drain_grace=600") as service, service.connect() as client:
        client.send(post()[:20])
        (worker,) = service.workers()
        service.process.send_signal(signal.SIGINT)
        probe = ("127.0.0.1", service.port)
        until(lambda: refuses(probe), "new clients are rejected")
        service.process.send_signal(signal.SIGINT)
        service.process.wait(PATIENCE)
        until(lambda: not alive(worker), "the worker's end")


def refuses(address: tuple[str, int]) -> bool:
    """Return whether connections fail; a filtered one hangs, which counts."""
    try:
        socket.create_connection(address, 0.05).close()
    except OSError:
        return True
    return False


def test_workers_of_a_killed_supervisor_finish_and_free_the_port() -> None:
    with serving("workers=2", "drain_grace=2") as service:
        workers = service.workers()
        load = Load(service)
        with load.running(CLIENTS):
            until(lambda: load.answered > 100, "answers")
            service.process.kill()
            until(lambda: not any(map(alive, workers)), "the workers' end")
        assert (load.malformed, load.reset) == ([], 0)
        # without SO_REUSEPORT, so that no other process can bind to it
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", service.port))


def run(*settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*settings), env=environment(), capture_output=True, text=True, check=False
    )


def test_second_instance_is_refused_in_one_line(lasting: Service) -> None:
    done = run(f"listen=127.0.0.1:{lasting.port}")
    line = rf"foreblock: 127.0.0.1:{lasting.port}: address already in use by .+ \(pid \d+\)\n"
    assert done.returncode == 2
    assert re.fullmatch(line, done.stderr)
    with lasting.connect() as client:
        assert client.ask(b"still here").status == 200


@pytest.mark.parametrize(
    "listen", sampled(["8545", "nowhere:8545x", "::1:8545", "127.0.0.1:70000"], 1)
)
def test_bad_address_is_refused_in_one_line(listen: str) -> None:
    done = run(f"listen={listen}")
    assert done.returncode == 2
    assert re.fullmatch(r"foreblock: cannot listen on .*\n", done.stderr)


def test_worker_that_cannot_start_ends_the_service_with_its_reason() -> None:
    done = run("listen=127.0.0.1:0", "workers=2", "dialect=ethereum")
    assert (done.returncode, done.stderr) == (1, "foreblock: no store at none\n")
