"""The servers to compare: find, start on one core, load the chain, meter, stop.

Each ends with all of its processes. A server that is not installed is reported.

A server sees the whole machine when it starts, so that it has its usual threads, and is then
pinned to its core; `PeerSetup.narrow` restricts it from the start.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.rpc import chain
from foreblock.bench.rpc.questions import Question
from foreblock.ledger.importing.importer import import_files
from foreblock.primitives import format_data
from foreblock.service.running import HOST, free_port, serving, started
from foreblock.upstream.rpc_client import Endpoint

# --- Processes -----------------------------------------------------------------------------

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def family(root: int) -> list[int]:
    """`root` and every process below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, open_ends = [], [root]
    while open_ends:
        process = open_ends.pop()
        found.append(process)
        open_ends += children.get(process, [])
    return found


def pin(root: int, core: int) -> None:
    """Let all threads of `root` and of every process below it run on this core only."""
    for process in family(root):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.sched_setaffinity(int(thread.name), {core})


def cpu_seconds(processes: list[int]) -> float:
    """User and system time of these processes, all threads, so far."""
    times = [_stat(process) for process in processes]
    return sum(int(fields[11]) + int(fields[12]) for fields in times if fields) / TICKS


def idle_seconds(core: int) -> float:
    """Idle time of a core so far."""
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        name, *times = line.split()
        if name == f"cpu{core}":
            return (int(times[3]) + int(times[4])) / TICKS  # idle, and waiting for a disk
    return 0.0


def resident_bytes(processes: list[int]) -> int:
    """Memory of these processes that is resident and not shared with a file."""
    return sum(_anonymous(process) for process in processes)


def _stat(process: int) -> list[str] | None:
    """The fields after the name, state first; none if the process is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rsplit(") ", 1)[1].split()


def _anonymous(process: int) -> int:
    try:
        resident, shared = Path(f"/proc/{process}/statm").read_text("ascii").split()[1:3]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * PAGE


# --- Servers -------------------------------------------------------------------------------

FOREBLOCK: Final = "foreblock"
OURS: Final = "this checkout, one worker"
BEFORE: Final = "before"  # another build of foreblock
PEERS: Final = ("anvil", "geth", "nginx")
# Where bench/peers.sh and Debian put them.
PLACES: Final = ("bin/{}", "node_modules/.bin/{}", "usr/sbin/{}", "usr/bin/{}")
SERVE: Final = ("--workers=1", "--dialect=preconf")  # options of foreblock
NGINX_LITERAL: Final = 3000  # bytes; a literal of its configuration ends at 4096


@dataclass(frozen=True)
class PeerSetup:
    """The folder with the genesis, and the core of a server."""

    folder: Path
    core: int
    narrow: bool = False

    @property
    def prefix(self) -> list[str]:
        """Words before the command of a server."""
        return ["taskset", "-c", str(self.core)] if self.narrow else []


@dataclass(frozen=True)
class Server:
    """A server that answers: where, by which process, and what it is."""

    name: str
    pid: int
    url: str
    version: str

    def address(self, position: int) -> str:
        """The URL for the question at this position; nginx has a constant for each."""
        return f"{self.url}/{position}" if self.name == "nginx" else f"{self.url}/"


def find(name: str, folder: Path) -> Path | None:
    """A program in the folder of peers, or else on this machine."""
    for place in PLACES:
        if (candidate := folder / place.format(name)).is_file():
            return candidate.absolute()
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return Path(path) if path else None


def imported(folder: Path) -> Path:
    """A store of the chain, beside its genesis."""
    genesis, store = folder / "genesis.json", folder / "store"
    genesis.write_bytes(chain.genesis())
    import_files(genesis, chain.BLOCKS, store, None, lambda _: None)
    return store


def imported_by(program: Path, folder: Path) -> Path:
    """A store that another build imported from the same genesis."""
    store = folder / BEFORE
    files = [f"--genesis={folder / 'genesis.json'}", f"--chain={chain.BLOCKS}"]
    command = [str(program), "import", *files, f"--data={store}"]
    subprocess.run(command, capture_output=True, check=True)  # noqa: S603, a program of the user's
    return store


@contextmanager
def foreblock(place: PeerSetup) -> Iterator[Server]:
    """Ours, over a store of the chain, with one worker."""
    with serving(imported(place.folder), SERVE, place.prefix) as service:
        pin(service.pid, place.core)
        yield Server(FOREBLOCK, service.pid, service.url, OURS)


@contextmanager
def before(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Another build of foreblock, over a store that it imported itself."""
    store, port = imported_by(program, place.folder), free_port()
    options = [f"--data={store}", f"--listen={HOST}:{port}", *SERVE]
    url = f"http://{HOST}:{port}"
    with started([*place.prefix, str(program), "serve", *options], url) as process:
        pin(process.pid, place.core)
        yield Server(BEFORE, process.pid, url, version([str(program), "--version"]))


@contextmanager
def anvil(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Anvil from the same genesis; its blocks hold the same transactions."""
    port = free_port()
    options = [f"--port={port}", f"--init={place.folder / 'genesis.json'}", "--no-mining",
               "--hardfork=cancun", f"--gas-limit={chain.GAS_LIMIT}"]  # fmt: skip
    url = f"http://{HOST}:{port}"
    with started([*place.prefix, str(program), *options], url) as process:
        with Endpoint(url) as endpoint:
            for transactions in chain.transactions():
                for raw in transactions:
                    endpoint.request("eth_sendRawTransaction", [format_data(raw)])
                endpoint.request("evm_mine")
        pin(process.pid, place.core)
        yield Server("anvil", process.pid, url, version([str(program), "--version"]))


@contextmanager
def geth(program: Path, place: PeerSetup) -> Iterator[Server]:
    """Geth over the same chain, imported."""
    data = f"--datadir={place.folder / 'geth'}"
    for command in (["init", str(place.folder / "genesis.json")], ["import", str(chain.BLOCKS)]):
        subprocess.run([program, data, *command], capture_output=True, check=True)  # noqa: S603
    port = free_port()
    options = [data, "--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable", "--http",
               "--http.api=eth,debug", f"--http.port={port}",
               f"--authrpc.port={free_port()}"]  # fmt: skip
    url = f"http://{HOST}:{port}"
    with started([*place.prefix, str(program), *options], url) as process:
        pin(process.pid, place.core)
        yield Server("geth", process.pid, url, version([str(program), "--version"]))


@contextmanager
def nginx(program: Path, place: PeerSetup, answers: Mapping[int, bytes]) -> Iterator[Server]:
    """Nginx with a constant answer to each question: the bytes of our answer."""
    port = free_port()
    configuration = place.folder / "nginx.conf"
    configuration.write_text(nginx_configuration(port, place.folder, answers), "ascii")
    command = [*place.prefix, str(program), "-e", "stderr", "-c", str(configuration)]
    url = f"http://{HOST}:{port}"
    with started(command, f"{url}/0") as process:
        pin(process.pid, place.core)
        yield Server("nginx", process.pid, url, version([str(program), "-v"]))


def nginx_configuration(port: int, folder: Path, answers: Mapping[int, bytes]) -> str:
    """One process, no logs, a location for each answer.

    A long answer is composed of variables, since a literal may not exceed the buffer in which
    the configuration is read.
    """
    locations = []
    for position, answer in answers.items():
        text = answer.decode("ascii")
        parts = [text[at : at + NGINX_LITERAL] for at in range(0, len(text), NGINX_LITERAL)]
        names = [f"$part_{position}_{index}" for index in range(len(parts))]
        sets = "".join(f"set {name} '{part}';" for name, part in zip(names, parts, strict=True))
        body = f"'{text}'" if len(parts) == 1 else f'"{"".join(names)}"'
        locations.append(
            f"location = /{position} {{ {sets if len(parts) > 1 else ''} return 200 {body}; }}"
        )
    return "\n".join(
        [
            "daemon off; worker_processes 1; error_log stderr crit;",
            f"pid {folder}/nginx.pid;",
            "events { worker_connections 1024; }",
            "http { access_log off; default_type application/json; variables_hash_max_size 8192;",
            "keepalive_requests 1000000000; keepalive_timeout 1h;",
            *(
                f"{name}_temp_path {folder}/{name};"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            ),
            f"server {{ listen {HOST}:{port} backlog=1024;",
            *locations,
            "} }",
        ]
    )


def answers_of(server: Server, questions: Sequence[Question]) -> dict[int, bytes]:
    """The answers of a server to the first request of each question."""
    found = {}
    for position, question in enumerate(questions):
        with Endpoint(server.address(position)) as endpoint:
            found[position] = endpoint.exchange(question.bodies[0])
    return found


def version(command: list[str]) -> str:
    """The first line of a program's version output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return (done.stdout or done.stderr).strip().splitlines()[0]
