"""Reads proportional to a block, repeated on many connections, and a balance beside them.

    python -m abuse.reads READERS-URL COUNT KIND FACTS      the readers, in a separate process

Each kind requests random blocks or transactions, of a chain of blocks with 2,000 transactions each,
without pause. A balance requested by another client must have a median under 5 ms and a 99th
percentile under 25, with one worker; and receipts must be fast enough.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from abuse.beside import beside
from abuse.busy_chain import write_busy_chain
from abuse.probe import BALANCE, Latencies
from abuse.wire import Address, Connection, address_of, post, request
from foreblock.bench.rpc.peers import cpu_seconds, family
from foreblock.service.running import RunningService, serving

BLOCKS = 40
READERS = 200
WARM_UP = 1.0  # seconds until all readers are active
SECONDS = 6.0  # of probing
PAUSE = 0.005  # between two balances, so that every moment is sampled
MEDIAN_MS, P99_MS = 5.0, 25.0
RECEIPTS_A_SECOND = 5_000
RECEIPT_US = 1e6 / RECEIPTS_A_SECOND  # of the worker, while readers use the other cores


@dataclass(frozen=True)
class Facts:
    """The data from which readers choose."""

    blocks: list[str]
    transactions: list[str]


Kind = Callable[[random.Random, Facts], bytes]


def of_block(method: str, *rest: object) -> Kind:
    return lambda chance, facts: request(method, chance.choice(facts.blocks), *rest)


def of_transaction(method: str) -> Kind:
    return lambda chance, facts: request(method, chance.choice(facts.transactions))


def by_index(chance: random.Random, facts: Facts) -> bytes:
    place = hex(chance.randrange(2_000))
    return request("eth_getTransactionByBlockNumberAndIndex", chance.choice(facts.blocks), place)


def fee_history(chance: random.Random, facts: Facts) -> bytes:
    """A request about all blocks, at percentiles that no other request uses."""
    percentiles = sorted({round(chance.uniform(0, 100), 3) for _ in range(100)})
    return request("eth_feeHistory", "0x400", chance.choice(facts.blocks), percentiles)


KINDS: dict[str, Kind] = {
    "full blocks": of_block("eth_getBlockByNumber", True),
    "blocks of hashes": of_block("eth_getBlockByNumber", False),
    "block receipts": of_block("eth_getBlockReceipts"),
    "raw blocks": of_block("debug_getRawBlock"),
    "counts": of_block("eth_getBlockTransactionCountByNumber"),
    "receipts": of_transaction("eth_getTransactionReceipt"),
    "transactions": of_transaction("eth_getTransactionByHash"),
    "by index": by_index,
    "fee history": fee_history,
    "gas price": lambda _chance, _facts: request("eth_gasPrice"),
}


async def read_on(
    address: Address, kind: Kind, facts: Facts, seed: int, answers: list[int]
) -> None:
    """One connection that sends the next request after each response."""
    chance = random.Random(seed)
    reader, writer = await asyncio.open_connection(*address, limit=1 << 22)
    while True:
        writer.write(post(kind(chance, facts)))
        heading = await reader.readuntil(b"\r\n\r\n")
        left = int(heading.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while left:
            left -= len(await reader.read(min(left, 1 << 20)))
        answers[0] += 1


async def read(address: Address, count: int, kind: Kind, facts: Facts) -> None:
    """Read until standard input ends; print the number of responses at every line of it."""
    answers = [0]
    readers = [
        asyncio.create_task(read_on(address, kind, facts, seed, answers)) for seed in range(count)
    ]
    click.echo("ready")
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        click.echo(answers[0])
    for each in readers:
        each.cancel()
    await asyncio.gather(*readers, return_exceptions=True)


class Readers:
    """Active readers in another process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def answers(self) -> int:
        """The number of their responses so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def reading(url: str, count: int, kind: str, facts: Path) -> Iterator[Readers]:
    with beside("abuse.reads", url, count, kind, facts) as process:
        yield Readers(process)


def probe(address: Address, seconds: float) -> Latencies:
    """Request a balance every few milliseconds."""
    connection = Connection(address)
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        assert b'"result"' in connection.exchange(BALANCE).body
        times.append((time.perf_counter() - begun) * 1e3)
        time.sleep(PAUSE)
    connection.close()
    return Latencies(tuple(sorted(times)))


def measure(service: RunningService, kind: str, count: int, facts: Path) -> bool:
    """The balance beside readers of one kind, and the rate of their responses."""
    address = address_of(service.url)
    with reading(service.url, count, kind, facts) as readers:
        probe(address, WARM_UP)
        begun, before = time.perf_counter(), readers.answers()
        cpu = cpu_seconds(family(service.pid))
        beside = probe(address, SECONDS)
        answers, seconds = readers.answers() - before, time.perf_counter() - begun
        cpu = cpu_seconds(family(service.pid)) - cpu
    micros = cpu / max(answers, 1) * 1e6
    rate = answers / seconds
    met = beside.median < MEDIAN_MS and beside.percentile(99) < P99_MS
    if kind == "receipts":
        met = met and (rate >= RECEIPTS_A_SECOND or micros <= RECEIPT_US)
    click.echo(
        f"{'met   ' if met else 'MISSED'} {kind:<16} {count} connections: a balance beside them "
        f"{beside.median:.2f} ms, p99 {beside.percentile(99):.2f} ms; {rate:.0f} responses a "
        f"second, {micros:.0f} µs of the service each"
    )
    return met


def gather(service: RunningService) -> Facts:
    """The blocks of the chain, and some transactions of each."""
    connection = Connection(address_of(service.url))

    def ask(method: str, *params: object) -> object:
        return json.loads(connection.exchange(request(method, *params)).body)["result"]

    newest = int(str(ask("eth_blockNumber")), 16)
    blocks = [hex(number) for number in range(1, newest + 1)]
    transactions: list[str] = []
    for block in blocks:
        found = ask("eth_getBlockByNumber", block, False)
        assert isinstance(found, dict)
        transactions += found["transactions"][1::40]
    connection.close()
    return Facts(blocks, transactions)


def attack_with_reads(only: str | None = None, count: int = READERS) -> list[bool]:
    """Every kind at full scale against a service of this checkout with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        store, facts = Path(folder) / "store", Path(folder) / "facts.json"
        write_busy_chain(store, BLOCKS)
        with serving(store, ["--workers=1"]) as service:
            facts.write_text(json.dumps(asdict(gather(service))))
            kinds = [kind for kind in KINDS if only in (None, kind)]
            return [measure(service, kind, count, facts) for kind in kinds]


def main() -> None:
    url, count, kind, facts = sys.argv[1:]
    chosen = Facts(**json.loads(Path(facts).read_text()))
    asyncio.run(read(address_of(url), int(count), KINDS[kind], chosen))


if __name__ == "__main__":
    main()
