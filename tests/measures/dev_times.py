"""Measure the response times of a dev chain, beside anvil.

    PYTHONPATH=tests python tests/measures/dev_times.py [--rounds 5] [--only NAME]
        [--transactions 10000] [--blocks 7200] [--slots 1000] [--peers DIR] [--options FLAGS]

Measure the engine of wheels (`make build PROFILE=release`). Both servers have the usual options:
they mine per transaction, have the same accounts, and print events. One client has one connection
to each and sends sequential requests; rounds of both alternate. A row begins with new servers.
Figures are milliseconds: the median of a request over all rounds, or the total where a row says so.
A ratio above 1 means that foreblock is slower. The last row of each scenario is the CPU time of the
server for a round, which depends least on other load. Exits with 1 if a ratio is above its limit.
"""

import argparse
import json
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from foreblock._engine import Message, keccak256, sign_transaction
from foreblock.bench.rpc.peers import cpu_seconds, family, find
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.service.running import HOST, free_port, started

CHAIN_ID = 31337
ACCOUNTS = dev_accounts(TEST_MNEMONIC, 10)
NOBODY = "0x" + "dd" * 20
REPEATS = 100  # of a request in a round
LATE_ROUNDS = 3  # of rows that take seconds
GWEI = 10**9
# The largest ratios to anvil: no slower for sends and reads, at most twice for single commands.
LIMITS = {
    "send, receipt, read": 1.0,
    "eth_sendTransaction, receipt, read": 1.0,
    "evm_mine": 2.0,
    "anvil_setBalance": 2.0,
    "evm_increaseTime": 2.0,
    "evm_snapshot, empty chain": 2.0,
    "evm_revert, empty chain": 2.0,
    "anvil_setStorageAt, 1000 times, each": 2.0,
}


class Chosen(NamedTuple):
    """The size of the measurement."""

    rounds: int
    transactions: int
    blocks: int
    slots: int


class Client:
    """A connection to one server."""

    def __init__(self, port: int, pid: int) -> None:
        self.processes = family(pid)
        self._port = port
        self._socket = self._connected()
        self._head = f"POST / HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Type: application/json\r\n"
        self.nonce = 0  # of the first account
        self.slot = 0  # the next one to set

    def _connected(self) -> socket.socket:
        sock = socket.create_connection((HOST, self._port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def connect_again(self) -> None:
        """Use a new connection: servers close idle ones."""
        self.close()
        self._socket = self._connected()
        self.ask("eth_chainId")

    def close(self) -> None:
        self._socket.close()

    def exchange(self, body: bytes) -> bytes:
        """The body of the response."""
        head = f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode()
        self._socket.sendall(head + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._received()
        head, _, answer = received.partition(b"\r\n\r\n")
        lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
        length = next(int(value) for name, _, value in lines if name == b"content-length")
        parts, have = [answer], len(answer)
        while have < length:
            parts.append(self._received())
            have += len(parts[-1])
        return b"".join(parts)

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 16)
        assert data, "the server has closed the connection"
        return data

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, JSON
        """The result of a request."""
        answer = json.loads(self.exchange(request(method, *params)))
        assert "result" in answer, answer
        return answer["result"]

    def send(self, raw: str) -> str:
        """Send a transaction; return its hash.

        anvil may put one dropped with its block back into its pool, and then mines it.
        """
        answer = json.loads(self.exchange(request("eth_sendRawTransaction", raw)))
        if "already imported" in answer.get("error", {}).get("message", ""):
            return "0x" + keccak256(bytes.fromhex(raw[2:])).hex()
        assert "result" in answer, answer
        found: str = answer["result"]
        return found

    def transaction(self) -> str:
        """The next transaction of the first account."""
        account = ACCOUNTS[0]
        message = Message(
            sender=account.address, to=bytes.fromhex(NOBODY[2:]), value=1, gas=21_000,
            max_fee_per_gas=100 * GWEI, max_priority_fee_per_gas=GWEI,
        )  # fmt: skip
        signed = sign_transaction(message, 2, CHAIN_ID, self.nonce, account.secret)
        self.nonce += 1
        return "0x" + signed.raw.hex()


def request(method: str, *params: object, number: int = 1) -> bytes:
    """The body of a request."""
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(asked).encode()


Measured = Iterator[tuple[str, float]]  # rows and seconds


@contextmanager
def timed(name: str, into: list[tuple[str, float]], per: int = 1) -> Iterator[None]:
    """Measure the time of a step, for each of this many."""
    begun = time.perf_counter()
    yield
    into.append((name, (time.perf_counter() - begun) / per))


def sending(client: Client, _chosen: Chosen) -> Measured:
    """Send, request the receipt, read a balance: each, and all of it."""
    yield from _sending(client, "")


def _sending(client: Client, where: str) -> Measured:
    found: list[tuple[str, float]] = []
    for _ in range(REPEATS):
        raw = client.transaction()
        with timed(f"send, receipt, read{where}", found):
            with timed(f"  eth_sendRawTransaction{where}", found):
                transaction_hash = client.ask("eth_sendRawTransaction", raw)
            with timed(f"  eth_getTransactionReceipt{where}", found):
                while client.ask("eth_getTransactionReceipt", transaction_hash) is None:
                    pass
            client.ask("eth_getBalance", NOBODY, "latest")
    yield from found


def first_thousand(client: Client, _chosen: Chosen) -> Measured:
    """A thousand repetitions on a new chain, as in the tests of a project; only once."""
    found: list[tuple[str, float]] = []
    if client.nonce == 0:
        with timed("send, receipt, read, the first 1000, each", found, 1000):
            for _ in range(1000):
                sent = client.ask("eth_sendRawTransaction", client.transaction())
                while client.ask("eth_getTransactionReceipt", sent) is None:
                    pass
                client.ask("eth_getBalance", NOBODY, "latest")
    yield from found


def sending_unlocked(client: Client, _chosen: Chosen) -> Measured:
    """Send transactions that the server signs."""
    found: list[tuple[str, float]] = []
    account = "0x" + ACCOUNTS[1].address.hex()
    transaction = {"from": account, "to": NOBODY, "value": "0x1"}
    for _ in range(REPEATS):
        with timed("eth_sendTransaction, receipt, read", found):
            transaction_hash = client.ask("eth_sendTransaction", transaction)
            while client.ask("eth_getTransactionReceipt", transaction_hash) is None:
                pass
            client.ask("eth_getBalance", NOBODY, "latest")
    yield from found


def snapshots(client: Client, _chosen: Chosen) -> Measured:
    """Snapshots of a chain without blocks."""
    yield from _snapshots(client, "empty chain")


def _snapshots(client: Client, where: str) -> Measured:
    found: list[tuple[str, float]] = []
    for _ in range(REPEATS):
        with timed(f"evm_snapshot, {where}", found):
            number = client.ask("evm_snapshot")
        with timed(f"evm_revert, {where}", found):
            assert client.ask("evm_revert", number)
    yield from found


def late(client: Client, chosen: Chosen) -> Measured:
    """Transactions and snapshots of a long chain, and a revert to its beginning."""
    found: list[tuple[str, float]] = []
    first = client.ask("evm_snapshot")
    before = client.nonce
    for _ in range(chosen.transactions):
        sent = client.ask("eth_sendRawTransaction", client.transaction())
        while client.ask("eth_getTransactionReceipt", sent) is None:
            pass  # anvil sometimes stops mining without a waiting client
    where = f"after {chosen.transactions} transactions"
    yield from _sending(client, f", {where}")
    yield from _snapshots(client, where)
    with timed(f"evm_revert of {chosen.transactions} blocks, all", found):
        assert client.ask("evm_revert", first)
    client.nonce = before
    yield from found


def mining(client: Client, chosen: Chosen) -> Measured:
    """Many blocks at once."""
    found: list[tuple[str, float]] = []
    with timed(f"anvil_mine, {chosen.blocks} blocks, all", found):
        client.ask("anvil_mine", hex(chosen.blocks))
    yield from found


def commands(client: Client, _chosen: Chosen) -> Measured:
    """Sequential short commands."""
    found: list[tuple[str, float]] = []
    for number in range(REPEATS):
        with timed("evm_mine", found):
            client.ask("evm_mine")
        with timed("anvil_setBalance", found):
            client.ask("anvil_setBalance", NOBODY, hex(number + 1))
        with timed("evm_increaseTime", found):
            client.ask("evm_increaseTime", 1)
    yield from found


def looking(client: Client, _chosen: Chosen) -> Measured:
    """A change and a read after it, and the work of a test between a snapshot and a revert."""
    found: list[tuple[str, float]] = []
    for number in range(REPEATS):
        with timed("anvil_setBalance, read", found):
            client.ask("anvil_setBalance", NOBODY, hex(number + 1))
            client.ask("eth_getBalance", NOBODY, "latest")
    client.ask("evm_mine")
    for _ in range(REPEATS):
        raw, before = client.transaction(), client.nonce - 1
        with timed("snapshot, send, receipt, revert, read", found):
            snapshot = client.ask("evm_snapshot")
            sent = client.send(raw)
            while client.ask("eth_getTransactionReceipt", sent) is None:
                pass
            assert client.ask("evm_revert", snapshot)
            client.ask("eth_getBalance", NOBODY, "latest")
        client.nonce = before
    yield from found


def slots(client: Client, chosen: Chosen) -> Measured:
    """Slots set one by one."""
    found: list[tuple[str, float]] = []
    with timed(f"anvil_setStorageAt, {chosen.slots} times, each", found, chosen.slots):
        for params in _slots(client, chosen.slots):
            client.ask("anvil_setStorageAt", *params)
    yield from found


def slots_together(client: Client, chosen: Chosen) -> Measured:
    """Slots set in one batch."""
    found: list[tuple[str, float]] = []
    bodies = [request("anvil_setStorageAt", *params) for params in _slots(client, chosen.slots)]
    batch = b"[" + b",".join(bodies) + b"]"
    with timed(f"anvil_setStorageAt, a batch of {chosen.slots}, all", found):
        answers = json.loads(client.exchange(batch))
    assert [each["result"] for each in answers] == [True] * chosen.slots
    yield from found


def _slots(client: Client, count: int) -> list[tuple[str, str, str]]:
    client.slot += count
    numbers = range(client.slot - count, client.slot)
    return [(NOBODY, hex(each), f"0x{each + 1:064x}") for each in numbers]


class Scenario(NamedTuple):
    """A measurement with new servers."""

    measure: Callable[[Client, Chosen], Measured]
    is_long: bool = False


SCENARIOS = (
    Scenario(sending),
    Scenario(first_thousand),
    Scenario(sending_unlocked),
    Scenario(commands),
    Scenario(looking),
    Scenario(snapshots),
    Scenario(slots),
    Scenario(slots_together),
    Scenario(mining, is_long=True),
    Scenario(late, is_long=True),
)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transactions", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=7_200)
    parser.add_argument("--slots", type=int, default=1_000)
    parser.add_argument("--only", choices=[each.measure.__name__ for each in SCENARIOS])
    parser.add_argument("--peers", type=Path, default=Path("build/peers"), help="other servers")
    parser.add_argument("--options", default="", help="more flags for foreblock")
    given = parser.parse_args()
    chosen = Chosen(given.rounds, given.transactions, given.blocks, given.slots)
    say("| Operation | foreblock, ms | anvil, ms | ratio |\n|---|---|---|---|")
    program, ratios = find("anvil", given.peers), dict[str, float]()
    for scenario in SCENARIOS:
        if given.only in (None, scenario.measure.__name__):
            ratios |= run(scenario, chosen, program, given.options.split())
    if program is None:
        sys.exit("nothing was compared: anvil is not installed; bench/peers.sh installs it")
    above = [row for row, limit in LIMITS.items() if ratios.get(row, 0.0) > limit]
    if above:
        sys.exit(f"above their limits: {'; '.join(above)}")


def run(
    scenario: Scenario, chosen: Chosen, program: Path | None, options: list[str]
) -> dict[str, float]:
    """Measure with new servers, in alternating rounds; return the ratio of each row."""
    with ExitStack() as stack:
        servers = {"foreblock": stack.enter_context(foreblock(options))}
        if program is not None:
            servers["anvil"] = stack.enter_context(anvil(program))
        figures: dict[str, dict[str, list[float]]] = {}
        rounds = min(chosen.rounds, LATE_ROUNDS) if scenario.is_long else chosen.rounds
        for _ in range(rounds):
            for name, client in servers.items():
                client.connect_again()
                before = cpu_seconds(client.processes)
                for row, seconds in scenario.measure(client, chosen):
                    figures.setdefault(row, {}).setdefault(name, []).append(seconds)
                row = f"  CPU of a round of {scenario.measure.__name__}"
                took = cpu_seconds(client.processes) - before
                figures.setdefault(row, {}).setdefault(name, []).append(took)
    return {row: report(row, by_server) for row, by_server in figures.items()}


def report(row: str, by_server: dict[str, list[float]]) -> float:
    """Print the medians of a row; return their ratio, or 0 without anvil."""
    ours, theirs = (
        statistics.median(found) * 1e3 if (found := by_server.get(name)) else None
        for name in ("foreblock", "anvil")
    )
    ratio = ours / theirs if ours and theirs else 0.0
    say(f"| {row} | {shown(ours)} | {shown(theirs)} | {f'{ratio:.2f}' if ratio else ''} |")
    return ratio


def shown(figure: float | None) -> str:
    """A figure with three digits."""
    return "" if figure is None else f"{figure:.3g}" if figure < 100 else f"{figure:.0f}"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def foreblock(options: Sequence[str]) -> Iterator[Client]:
    """A client of the chain that replaces anvil."""
    port = free_port()
    command = [sys.executable, "-m", "foreblock", "dev", "--like", "anvil", f"--port={port}"]
    with running([*command, *options], port) as client:
        yield client


@contextmanager
def anvil(program: Path) -> Iterator[Client]:
    """A client of anvil itself."""
    port = free_port()
    with running([str(program), f"--port={port}"], port) as client:
        yield client


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[Client]:
    with started(command, f"http://{HOST}:{port}") as process:
        client = Client(port, process.pid)
        try:
            yield client
        finally:
            client.close()


if __name__ == "__main__":
    main()
