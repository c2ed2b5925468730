"""Measure eth_getLogs: over 10,000 blocks beside geth and anvil, and over a million.

    PYTHONPATH=tests python tests/measures/logs.py [--blocks 10000] [--long 1000000]
        [--peers DIR] [--data DIR] [--index-wait 60]

Each block has one log of an unrelated contract, with a unique topic; ten blocks at equal distances
have one more, which the filter finds by its address and topic. The short chain is built and
imported by foreblock and geth, and anvil makes the same blocks; both are optional and installed by
`bench/peers.sh`. The long one is written as rows, without execution, for foreblock alone. Figures
are the CPU time of all processes of the server per request, and the median response time, of one
client with sequential requests; the best of eight rounds, because other load only adds to them.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from differential.geth import geth
from foreblock._engine import (
    Message,
    Overlay,
    Receipt,
    Store,
    keccak256,
    logs_bloom,
    sign_transaction,
)
from foreblock.bench.rpc.peers import family, find
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.ledger.storage.section_index import LogIndexing
from foreblock.service.running import started
from support.chains import log_chain
from support.chains.builder import ChainBuilder

FOUND = 10
REQUESTS = 50
ROUNDS = 8
SOUGHT, NOISE = log_chain.CONTRACTS[1, 1], log_chain.CONTRACTS[1, 2]
TOPIC = keccak256(b"sought")
PORT = 28_545


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    parser.add_argument("--peers", type=Path, default=Path("build/peers"), help="other servers")
    parser.add_argument(
        "--index-wait", type=float, default=60.0, help="seconds for geth's own index"
    )
    parser.add_argument("--data", help="folder of temporary stores")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.data) as name, ExitStack() as stack:
        folder = Path(name)
        say(
            "| Server | Blocks | Filter | CPU, µs | Median, µs | Found |\n|---|---|---|---|---|---|"
        )
        if chosen.blocks:
            build(folder, chosen.blocks)
            files = (folder / "genesis.json", folder / "chain.rlp", folder / "store")
            import_files(*files, None, lambda _: None)
            with serving(folder / "store") as (url, pid):
                report("foreblock", url, pid, chosen.blocks)
            if program := find("geth", chosen.peers):
                url = stack.enter_context(geth(str(program), folder, folder / "geth"))
                time.sleep(chosen.index_wait)  # it indexes logs after it has begun to serve
                report("geth", url, child("geth"), chosen.blocks)
                stack.close()
            if program := find("anvil", chosen.peers):
                with anvil(str(program), folder, chosen.blocks) as (url, pid):
                    report("anvil", url, pid, chosen.blocks)
        if chosen.long:
            begun = time.monotonic()
            sizes = write_rows(folder / "long", chosen.long)
            say(f"{sizes}, {time.monotonic() - begun:.0f} s")
            with serving(folder / "long") as (url, pid):
                report("foreblock", url, pid, chosen.long)


def transactions(blocks: int) -> Iterator[list[bytes]]:
    """The transactions of each block."""
    nonce = 0
    for number in range(1, blocks + 1):
        calls = [(NOISE, keccak256(number.to_bytes(8)))]
        if number % (blocks // FOUND) == 0:
            calls.append((SOUGHT, TOPIC))
        signed = []
        for to, data in calls:
            message = Message(
                sender=bytes(20), to=to, data=data, gas=100_000,
                max_fee_per_gas=10**11, max_priority_fee_per_gas=1,
            )  # fmt: skip
            signed.append(
                sign_transaction(message, 2, log_chain.CHAIN_ID, nonce, log_chain.SECRET).raw
            )
            nonce += 1
        yield signed


def build(folder: Path, blocks: int) -> None:
    """Write the short chain into a folder."""
    (folder / "genesis.json").write_bytes(log_chain.genesis())
    builder = ChainBuilder(folder / "built", log_chain.genesis())
    for each in transactions(blocks):
        builder.add(each)
    builder.store.close()
    (folder / "chain.rlp").write_bytes(b"".join(block.encode() for block in builder.blocks))


def write_rows(folder: Path, blocks: int) -> str:
    """Write the long chain as rows, and index it; return the sizes of both."""
    store = Store(str(folder), write=True)
    begin_chain(store, read_genesis(log_chain.genesis()))
    with store.view() as view:
        parent, _ = rows.decode_header_row(view.row(rows.header_key(0)) or b"")
    for start in range(1, blocks + 1, 5000):
        batch = store.batch()
        for number in range(start, min(start + 5000, blocks + 1)):
            logs = [(NOISE, [keccak256(number.to_bytes(8))], bytes(32))]
            if number % (blocks // FOUND) == 0:
                logs.append((SOUGHT, [TOPIC], bytes(32)))
            receipt = Receipt(type=2, status=True, cumulative_gas_used=30_000, logs=logs)
            parent = parent.replace(
                number=number, parent_hash=parent.hash, logs_bloom=logs_bloom([receipt])
            )
            batch.append(number, parent.hash, Overlay.empty().take(batch.draw()))
            batch.put(rows.header_key(number), rows.encode_header_row(parent, 0))
            batch.put(rows.body_key(number), rows.encode_body([bytes(120)], [], []))
            batch.put(rows.receipts_key(number), rows.encode_items([receipt.encode()]))
        batch.fold_all()
        store.commit(batch)
    before = store.used_bytes
    begun = time.process_time()
    LogIndexing(store).catch_up(blocks)
    took = time.process_time() - begun
    grown = store.used_bytes - before
    store.close()
    return f"{before >> 20} MiB of blocks, {grown >> 20} MiB of index in {took:.1f} s"


@contextmanager
def serving(store: Path) -> Iterator[tuple[str, int]]:
    """Foreblock over a store, with one worker."""
    url = f"http://127.0.0.1:{PORT}"
    command = [sys.executable, "-m", "foreblock", "serve", "--data", str(store), "--workers", "1",
               "--dialect", "ethereum", "--listen", f"127.0.0.1:{PORT}"]  # fmt: skip
    with started(command, url) as process:
        yield url, process.pid


@contextmanager
def anvil(program: str, folder: Path, blocks: int) -> Iterator[tuple[str, int]]:
    """anvil, after it has made the same blocks."""
    url = f"http://127.0.0.1:{PORT + 1}"
    command = [program, "--init", str(folder / "genesis.json"), "--port", str(PORT + 1),
               "--chain-id", str(log_chain.CHAIN_ID), "--no-mining", "--quiet"]  # fmt: skip
    with started(command, url) as process:
        client = Client(url)
        for each in transactions(blocks):
            for raw in each:
                client.ask("eth_sendRawTransaction", ["0x" + raw.hex()])
            client.ask("evm_mine", [])
        yield url, process.pid


class Client:
    """A persistent connection."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port or 0)

    def ask(self, method: str, params: list[object]) -> object:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]


def report(server: str, url: str, pid: int, blocks: int) -> None:
    """Rows of the table."""
    client = Client(url)
    asked: dict[str, dict[str, object]] = {
        "address and topic": {"address": f"0x{SOUGHT.hex()}", "topics": [f"0x{TOPIC.hex()}"]},
        "topic": {"topics": [f"0x{TOPIC.hex()}"]},
        "a topic without logs": {"topics": [f"0x{keccak256(b'nothing').hex()}"]},
    }
    for name, each in asked.items():
        params: list[object] = [each | {"fromBlock": "0x0", "toBlock": "latest"}]
        found = client.ask("eth_getLogs", params)
        assert isinstance(found, list)
        rounds = [measured(client, pid, params) for _ in range(ROUNDS)]
        cpu, median = min(each[0] for each in rounds), min(each[1] for each in rounds)
        say(
            f"| {server} | {blocks:,} | {name} | {cpu * 1e6:,.0f} | {median * 1e6:,.0f} "
            f"| {len(found)} |"
        )


def measured(client: Client, pid: int, params: list[object]) -> tuple[float, float]:
    """CPU seconds of a request, and the median response time in seconds."""
    times = []
    before = cpu_seconds(pid)
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        client.ask("eth_getLogs", params)
        times.append(time.perf_counter() - begun)
    return (cpu_seconds(pid) - before) / REQUESTS, statistics.median(times)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all below it, with threads that have ended."""
    # The clock of another process, as clock_getcpuclockid(3) computes it.
    return sum(time.clock_gettime(~each << 3 | 2) for each in family(pid))


def child(name: str) -> int:
    """The child process of this name."""
    mine = subprocess.run(
        ["/usr/bin/ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=True,
    )
    return next(int(line.split()[0]) for line in mine.stdout.splitlines() if name in line)


if __name__ == "__main__":
    main()
