"""`foreblock dev` in separate processes: requests, flashblocks by block, processor time."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple

from support.servers.waiting import PATIENCE, until

SOLO = ("--test-listen=", "--workers=1")  # one network, served by one worker
PACKAGE = Path(__file__).resolve().parents[3] / "python"


def children(pid: int) -> dict[str, list[int]]:
    """The child processes of a supervisor, by module."""
    found: dict[str, list[int]] = {"writer": [], "worker": [], "one_process": []}
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    for child in map(int, text.split()):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        for kind, pids in found.items():
            if f"foreblock.service.{kind}".encode() in command:
                pids.append(child)
    return found


class HttpReply(NamedTuple):
    """The response to a request over a new connection."""

    status: int
    body: bytes
    headers: HTTPMessage

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def commit(self) -> int:
        """The commit of its snapshot, or 0."""
        found = re.search(r"\bcommit=(\d+)", self.headers.get("Foreblock-Snapshot") or "")
        return int(found[1]) if found else 0


def exchange(
    url: str, path: str = "/", body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None, timeout: float = PATIENCE,
) -> HttpReply:  # fmt: skip
    """GET a path, or POST a body as JSON. Raises `OSError`, `HTTPException`."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    given = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(
            "GET" if body is None else "POST", path, body, given | dict(headers or {})
        )
        response = connection.getresponse()
        return HttpReply(response.status, response.read(), response.headers)
    finally:
        connection.close()


class Network:
    """One network of a running `foreblock dev`."""

    def __init__(self, url: str, feed: str, path: str = "/") -> None:
        self.url = url
        self.feed = feed
        self.path = path
        self.commit = 0  # the highest seen so far

    @property
    def node(self) -> "Network":
        """The view of an ordinary node of the same chain."""
        return Network(self.url, self.feed, "/eth")

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401
        """Return the result of a method. Raises `RpcError` for an error response."""
        (answer,) = self.batch((method, params))
        return answer

    def batch(self, *requests: tuple[str, Sequence[object]]) -> list[Any]:
        """Return the results of requests on one snapshot; commits must never decrease."""
        body = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
            for number, (method, params) in enumerate(requests)
        ]
        reply = exchange(self.url, self.path, json.dumps(body))
        answers = json.loads(reply.text)
        assert reply.commit >= max(self.commit, 1), "a commit went back"
        self.commit = reply.commit
        for answer in answers:
            if "error" in answer:
                raise RpcError(answer["error"])
        return [answer["result"] for answer in answers]

    def pending(self) -> dict[str, Any]:
        """The pending block."""
        found: dict[str, Any] = self.ask("eth_getBlockByNumber", "pending", False)
        return found

    def latest(self) -> int:
        """The number of the latest block."""
        return int(self.ask("eth_getBlockByNumber", "latest", False)["number"], 16)

    def probe(self, path: str) -> tuple[int, str]:
        """Return status and text of a probe."""
        reply = exchange(self.url, path)
        return reply.status, reply.text


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: object = error.get("data")


class Dev:
    """A running `foreblock dev`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output: list[str] = []
        networks = dict(self._networks())
        self.main, self.test = networks["main"], networks.get("test")

    def _networks(self) -> Iterator[tuple[str, Network]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            if line.startswith("Ctrl-C"):
                break
        text = "".join(self.output)
        for name, url, feed in re.findall(
            r"^(main|test)\b.*\n(?:  on block .*\n)?(?:  http://\S+/eth .*\n)*"
            r"  (http://\S+).*\n(?:  (ws://\S+) .*\n)?",
            text, re.MULTILINE,
        ):  # fmt: skip
            yield name, Network(url, feed)

    def pids(self, kind: str) -> list[int]:
        """The processes of a kind."""
        return children(self.process.pid)[kind]

    def kill(self, kind: str) -> int:
        """Kill the first process of a kind with SIGKILL."""
        (pid, *_) = self.pids(kind)
        os.kill(pid, signal.SIGKILL)
        return pid


class Following:
    """A running `foreblock serve --source feed`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line.startswith("flashblocks at"):
                break
        # Searched one by one: log lines, which have addresses too, may come between them.
        (url,) = re.findall(r"^listening on (http://\S+)", text, re.MULTILINE)
        (feed,) = re.findall(r"^flashblocks at (ws://\S+)$", text, re.MULTILINE)
        self.network = Network(url, feed)

    def kill(self) -> None:
        """Kill all its processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def kill_writer(self) -> None:
        """Kill the writer process."""
        (pid,) = children(self.process.pid)["writer"]
        os.kill(pid, signal.SIGKILL)


@contextmanager
def following(
    genesis: Path, data: Path, *feeds: str, canonical: str = "", listen: str = "127.0.0.1:0",
    feed_listen: str = "127.0.0.1:0", workers: int = 1, options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Following]:  # fmt: skip
    """A chain made from feeds, from its first response to its end."""
    command = [
        sys.executable, "-m", "foreblock", "serve", "--source=feed", f"--genesis={genesis}",
        f"--data={data}", f"--canonical={canonical}", f"--listen={listen}",
        f"--feed-listen={feed_listen}", f"--workers={workers}", *options,
        *(f"--feed={feed}" for feed in feeds),
    ]  # fmt: skip
    with _running(command, environment or {}) as process:
        yield Following(process)


@contextmanager
def serving_several(
    networks: Mapping[str, Sequence[str]],
) -> Iterator[tuple[int, dict[str, Network]]]:
    """`foreblock serve` of several networks with feeds, each with its own settings.

    Yields its process, and the networks by name.
    """
    told = {
        name: ("source=feed", "listen=127.0.0.1:0", "feed_listen=127.0.0.1:0", *settings)
        for name, settings in networks.items()
    }
    command = [
        sys.executable, "-m", "foreblock", "serve", "--workers=1",
        *(f"--network={name}.{each}" for name, settings in told.items() for each in settings),
    ]  # fmt: skip
    with _running(command) as process:
        assert process.stdout is not None
        text = ""
        while text.count("flashblocks at") < len(networks):
            line = process.stdout.readline()
            assert line, text
            text += line
        # Searched one by one: log lines may come between them.
        urls = dict(re.findall(r"^(\w+): listening on (http://\S+)", text, re.MULTILINE))
        feeds = dict(re.findall(r"^(\w+): flashblocks at (ws://\S+)$", text, re.MULTILINE))
        yield process.pid, {name: Network(urls[name], feeds[name]) for name in networks}


@contextmanager
def dev_chain(*options: str, environment: Mapping[str, str] | None = None) -> Iterator[Dev]:
    """`foreblock dev` on free ports, from its first response to its end."""
    with _running(_command(options), environment or {}) as process:
        yield Dev(process)


@contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=package_environment() | dict(environment or {}), start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        if process.stdout is not None:
            process.stdout.close()


def refused(*options: str, code: int = 2) -> str:
    """Return the error message of a `foreblock dev` that does not start."""
    done = subprocess.run(
        _command(options), capture_output=True, text=True, env=package_environment(),
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr


def _command(options: Sequence[str]) -> list[str]:
    return [
        sys.executable, "-m", "foreblock", "dev", "--listen=127.0.0.1:0",
        "--test-listen=127.0.0.1:0", "--feed-listen=127.0.0.1:0", "--test-feed-listen=127.0.0.1:0",
        "--workers=2", *options,
    ]  # fmt: skip


def package_environment() -> dict[str, str]:
    """An environment in which `python -m foreblock` runs this checkout."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}


CANDIDATES = 20  # requested indices of a block; a block of one second has six


def pins(network: Network, block: int) -> list[Any]:
    """Return the response for every flashblock of a block, up to the first unknown one."""
    found = []
    for index in range(CANDIDATES):
        place = {"blockNumber": hex(block), "flashblockIndex": hex(index)}
        try:
            answers = network.batch(
                ("debug_getRawBlock", (place,)),
                ("eth_getBlockByNumber", (place, True)),
                ("eth_getBalance", ("0x" + "00" * 20, place)),
            )
        except RpcError:
            break
        found.append(answers)
    return found


def sealed(network: Network, block: int) -> Any:  # noqa: ANN401, JSON
    return network.batch(
        ("eth_getBlockByNumber", (hex(block), True)), ("debug_getRawBlock", (hex(block),))
    )


def until_latest(network: Network, block: int) -> None:
    until(lambda: network.latest() >= block, f"block {block} is sealed")


def loop_seconds(process: int) -> float:
    """Return the CPU time of the first thread of a process, which runs the event loop."""
    text = Path(f"/proc/{process}/task/{process}/schedstat").read_text("ascii")
    return int(text.split()[0]) / 1e9


def median_loop_seconds(process: int, ask: Callable[[], object], count: int) -> float:
    """Return the median CPU time of the event loop per request, over this many requests."""
    times = []
    for _ in range(count):
        before = loop_seconds(process)
        ask()
        times.append(loop_seconds(process) - before)
    return statistics.median(times)
