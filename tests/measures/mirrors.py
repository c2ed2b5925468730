"""Measure a mirror of a busy chain: how soon it has what the chain has, and what it loses.

    PYTHONPATH=tests python tests/measures/mirrors.py [--minutes 10] [--load 200] [--local 20]

The chain, `foreblock dev --load`, and the mirror are services of their own; the mirror is killed
with all its processes in the middle, and started again. Prints the delay from a transaction that
is readable at `pending` of the chain until it is readable on the mirror. Exits with 1 if a local
transaction is lost, or if a balance that nothing local has touched differs at the same block.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from foreblock import Client
from foreblock.errors import ErrorAnswer, ForeblockError
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.service.running import HOST, free_port
from foreblock.types import Message, keccak256, sign_transaction

MNEMONIC: Final = "legal winner thank year wave sausage worth useful legal winner thank yellow"
REAL: Final = "test test test test test test test test test test test junk"
PROGRAM: Final = (sys.executable, "-m", "foreblock", "dev")
GWEI: Final = 10**9
PAUSE: Final = 0.01  # between two reads
SAMPLES: Final = 2.0  # delays a second
WANTED: Final = 200  # milliseconds
EVENTS: Final = ("mirror_restarted", "mirror_reorganized", "mirror_waits", "network_failed")
SETTLED: Final = 2  # blocks after the last start
BEFORE: Final = 3  # blocks of the chain before the mirror begins


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A service; all its processes are killed at the end."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*PROGRAM, "--test-listen", "", "--workers", "1", *options],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answered(client: Client, method: str, *params: object) -> Any:  # noqa: ANN401, of JSON
    """A result, as soon as the service gives one."""
    until = time.monotonic() + 90
    while True:
        try:
            return client.rpc(method, *params)
        except ErrorAnswer:
            raise
        except ForeblockError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)


class Local:
    """Sends local transactions, and keeps their hashes."""

    def __init__(self, client: Client, chain_id: int, rate: float) -> None:
        self._client, self._chain_id, self._pause = client, chain_id, 1 / rate
        self._accounts = dev_accounts(MNEMONIC, 4)
        self._nonces = [0] * len(self._accounts)
        self.sent: list[str] = []
        self._due = time.monotonic()

    def due_now(self) -> None:
        """Leave out what was missed while nothing could be sent."""
        self._due = max(self._due, time.monotonic())

    def send_due(self) -> None:
        """Send what is due; what the service does not take is sent again."""
        while self._due <= time.monotonic():
            at = len(self.sent) % len(self._accounts)
            raw = self._signed(at)
            try:
                self._client.rpc("eth_sendRawTransaction", f"0x{raw.hex()}")
            except ErrorAnswer as why:
                if "already known" not in str(why) and "nonce too low" not in str(why):
                    raise
            except ForeblockError:  # it is being started again
                return
            self._nonces[at] += 1
            self.sent.append(f"0x{keccak256(raw).hex()}")
            self._due += self._pause

    def _signed(self, at: int) -> bytes:
        message = Message(
            sender=self._accounts[at].address,
            to=b"\x77" * 20,
            value=1,
            gas=21_000,
            max_fee_per_gas=1_000 * GWEI,
            max_priority_fee_per_gas=GWEI,
        )
        secret, nonce = self._accounts[at].secret, self._nonces[at]
        return sign_transaction(message, DYNAMIC_FEE, self._chain_id, nonce, secret).raw


def newest(client: Client) -> str | None:
    """The last transaction of `pending`."""
    found: list[str] = answered(client, "eth_getBlockByNumber", "pending", False)["transactions"]
    return found[-1] if found else None


def measure(real: Client, mirror: Client, local: Local, seconds: float) -> list[float]:
    """The delays of some transactions, in seconds, while local ones are sent."""
    delays: list[float] = []
    until, last = time.monotonic() + seconds, newest(real)
    while time.monotonic() < until or not delays:
        local.send_due()
        found = newest(real)
        if found in {None, last}:
            time.sleep(PAUSE)
            continue
        last, seen = found, time.monotonic()
        while answered(mirror, "eth_getTransactionReceipt", found) is None:
            if time.monotonic() > seen + 30:
                raise AssertionError(f"{found} is not on the mirror")
            local.send_due()
            time.sleep(PAUSE / 2)
        delays.append(time.monotonic() - seen)
        time.sleep(1 / SAMPLES * random.random())
    return delays


def lost(mirror: Client, sent: list[str]) -> tuple[list[str], int]:
    """The transactions of which the mirror says nothing, and how many it has dropped."""
    missing, dropped = [], 0
    for each in sent:
        try:
            if answered(mirror, "eth_getTransactionReceipt", each) is None:
                missing.append(each)
        except ErrorAnswer as why:
            dropped += "dropped" in str(why)
    return missing, dropped


def different(real: Client, mirror: Client) -> list[str]:
    """The accounts of the chain's load that differ at a block of both."""
    number = min(int(answered(each, "eth_blockNumber"), 16) for each in (real, mirror))
    accounts = [f"0x{each.address.hex()}" for each in dev_accounts(REAL, 10)]
    return [
        f"{method} of {account} at {number}"
        for account in accounts
        for method in ("eth_getBalance", "eth_getTransactionCount")
        if answered(real, method, account, hex(number))
        != answered(mirror, method, account, hex(number))
    ]


def shown_delays(delays: list[float]) -> str:
    """Their parts in milliseconds."""
    found = [round(1_000 * each) for each in sorted(delays)]
    parts = {f"{part} %": found[part * (len(found) - 1) // 100] for part in (50, 90, 99, 100)}
    within = sum(each <= WANTED for each in found) / len(found)
    return f"{len(found)} delays in ms: {parts}, {within:.1%} within {WANTED}"


class Measured(NamedTuple):
    """Results of a mirror."""

    delays: list[float]  # seconds
    behind: list[float]  # seconds until it was where the chain is, after each start
    sent: int
    dropped: int  # of these, with a reason
    missing: list[str]
    differences: list[str]
    events: dict[str, int]  # that its log has


def run(minutes: float, load: int, rate: float, folder: Path) -> Measured:
    """A mirror of a chain with this load, and with `rate` local transactions a second."""
    ports = [free_port() for _ in range(3)]
    urls = [f"http://{HOST}:{port}" for port in ports]
    (folder / "real").mkdir()
    (folder / "mirror").mkdir()
    options = ["--port", str(ports[0]), "--feed-listen", f"{HOST}:{ports[2]}"]
    options += ["--load", str(load), "--data", str(folder / "real")]
    mirrored = ["--mirror", str(folder / "real" / "main" / "genesis.json"), "--port"]
    mirrored += [str(ports[1]), "--fork-url", urls[0], "--mnemonic", MNEMONIC]
    mirrored += ["--mirror-feed", f"ws://{HOST}:{ports[2]}/ws"]
    mirrored += ["--data", str(folder / "mirror")]
    delays: list[float] = []
    behind: list[float] = []
    differences: list[str] = []
    with (
        running(folder / "real", *options),
        Client(urls[0]) as real,
        Client(urls[1]) as mirror,
    ):
        chain_id = int(answered(real, "eth_chainId"), 16)
        while int(answered(real, "eth_blockNumber"), 16) < BEFORE:
            time.sleep(PAUSE)
        local = Local(mirror, chain_id, rate)
        for _ in range(2):  # it is killed between them
            with running(folder / "mirror", *mirrored):
                answered(mirror, "eth_blockNumber")
                behind += measure(real, mirror, local, 0)
                local.due_now()
                delays += measure(real, mirror, local, minutes * 30)
                differences += different(real, mirror)
        with running(folder / "mirror", *mirrored):
            first = int(answered(mirror, "eth_blockNumber"), 16)
            while int(answered(mirror, "eth_blockNumber"), 16) < first + SETTLED:
                time.sleep(PAUSE)
            missing, dropped = lost(mirror, local.sent)
            differences += different(real, mirror)
    text = (folder / "mirror" / "log").read_text()
    events = {event: text.count(event) for event in EVENTS}
    return Measured(delays, behind, len(local.sent), dropped, missing, differences, events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--load", type=int, default=200)
    parser.add_argument("--local", type=float, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.minutes, given.load, given.local, Path(folder))
    behind = ", ".join(f"{each:.1f} s" for each in found.behind)
    lines = (
        shown_delays(found.delays),
        f"where the chain is {behind} after its starts",
        f"{found.sent} local transactions: {found.dropped} dropped, {len(found.missing)} lost",
        f"{len(found.differences)} differences {found.differences[:3]}",
        str(found.events),
    )
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(bool(found.missing or found.differences))


if __name__ == "__main__":
    main()
