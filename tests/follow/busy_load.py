"""A load of many transaction kinds against a dev chain, seeded, at a fixed rate.

    foreblock dev --accounts 40
    python tests/follow/busy_load.py --url http://127.0.0.1:8545 --tps 200 --seconds 600

Deploys the contracts first and waits for them. Equal seeds send equal transactions to new chains.
Prints the number of sent transactions by kind at the end, and their receipts' outcomes.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from foreblock.sequencer.mnemonic import DevAccount
from support.servers.dev_processes import Dev, dev_chain, following
from support.servers.waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from follow.busy_kinds import KINDS, Act
from follow.busy_world import Call, setup
from follow.upstreams import ask, ask_all
from foreblock._engine import Message, Transaction, sign_transaction
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.settings import ChainSettings

GWEI = 10**9
FEE_CAP = 1_000 * GWEI
PORTION = 20  # transactions in one request
CHAIN_ID = ChainSettings().chain_id
MISSING = "missing"  # a missing receipt


class Sent(NamedTuple):
    """A sent transaction."""

    kind: str
    hash: str
    fails: bool


class BusyLoad:
    """Generates and sends the load."""

    def __init__(self, senders: Sequence[DevAccount], seed: int, chain_id: int = CHAIN_ID) -> None:
        self.senders = senders
        self._pick = random.Random(seed)
        self._chain_id = chain_id
        self._nonces: Counter[bytes] = Counter()
        self._delegated: dict[bytes, int] = {}
        self.sent: list[Sent] = []
        self.refused: list[str] = []

    def setup(self) -> Iterator[tuple[str, Transaction, bool]]:
        """The transactions that deploy everything."""
        for sender, call in setup(self.senders):
            yield "setup", self._sign(sender, call), call.fails

    def transactions(self) -> Iterator[tuple[str, Transaction, bool]]:
        """Yield kind, transaction and expected failure, endlessly."""
        kinds, weights = list(KINDS), list(KINDS.values())
        made = 0
        while True:
            (kind,) = self._pick.choices(kinds, weights)
            sender = self._pick.choice(self.senders)
            act = Act(self._pick, made, sender, self._chain_id, self._delegated)
            call = kind(act)
            made += 1
            yield kind.__name__, self._sign(sender, call), call.fails

    def _sign(self, sender: DevAccount, call: Call) -> Transaction:
        nonce = self._nonces[sender.address]
        self._nonces[sender.address] += 1
        message = Message(
            sender=sender.address,
            to=call.to,
            value=call.value,
            data=call.data,
            gas=call.gas,
            max_fee_per_gas=FEE_CAP,
            max_priority_fee_per_gas=GWEI,
            authorization_list=call.authorizations,
        )
        kind = 4 if call.authorizations else 2
        return sign_transaction(message, kind, self._chain_id, nonce, sender.secret)

    def send(self, url: str, portion: Sequence[tuple[str, Transaction, bool]]) -> None:
        """Send several transactions in one request."""
        raws = [("eth_sendRawTransaction", ["0x" + each.raw.hex()]) for _, each, _ in portion]
        for (kind, transaction, fails), answer in zip(portion, ask_all(url, raws), strict=True):
            if "error" in answer:
                self.refused.append(f"{kind}: {answer['error']}")
            else:
                self.sent.append(Sent(kind, "0x" + transaction.hash.hex(), fails))

    def begin(self, url: str) -> None:
        """Deploy everything, and wait until it is available."""
        self.send(url, list(self.setup()))
        if self.refused:
            raise SystemExit(f"the setup was refused: {self.refused[0]}")
        last = self.sent[-1].hash
        until(lambda: ask(url, "eth_getTransactionReceipt", last), "the contracts are there")

    def run(self, url: str, tps: float, stop: threading.Event) -> None:
        """Send at this rate until stopped; late transactions are sent immediately."""
        begun, count, source = time.monotonic(), 0, self.transactions()
        while not stop.is_set():
            self.send(url, [next(source) for _ in range(PORTION)])
            count += PORTION
            stop.wait(max(begun + count / tps - time.monotonic(), 0))

    def outcomes(self, url: str, sent: Sequence[Sent] | None = None) -> dict[str, Counter[str]]:
        """The number of successful, failed and missing receipts of each kind."""
        found: dict[str, Counter[str]] = {}
        told = self.sent if sent is None else sent
        for at in range(0, len(told), 100):
            some = told[at : at + 100]
            asked = ask_all(url, [("eth_getTransactionReceipt", [each.hash]) for each in some])
            for each, answer in zip(some, asked, strict=True):
                receipt = answer.get("result")
                status = MISSING if receipt is None else str(int(receipt["status"], 16))
                wanted = "0" if each.fails else "1"
                counted = "as meant" if status == wanted else f"status {status}"
                found.setdefault(each.kind, Counter())[counted] += 1
        return found


def senders(count: int = 20, accounts: int = 40) -> list[DevAccount]:
    """The last accounts of a dev chain with this many accounts."""
    return list(dev_accounts(TEST_MNEMONIC, accounts))[-count:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--tps", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accounts", type=int, default=40, help="that the chain has")
    options = parser.parse_args()
    load, stop = BusyLoad(senders(accounts=options.accounts), options.seed), threading.Event()
    load.begin(options.url)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    threading.Timer(options.seconds, stop.set).start()
    load.run(options.url, options.tps, stop)
    last = load.sent[-1].hash
    until(lambda: ask(options.url, "eth_getTransactionReceipt", last), "the last is included")
    found = {kind: dict(each) for kind, each in load.outcomes(options.url).items()}
    sys.stdout.write(json.dumps({"sent": found, "refused": load.refused[:10]}) + "\n")
    sys.exit(1 if load.refused or any(set(each) != {"as meant"} for each in found.values()) else 0)


if __name__ == "__main__":
    main()


CHAIN = ("--test-listen=", "--workers=1", "--accounts=40")


class Pair(NamedTuple):
    """A chain and its follower, and the load on the chain."""

    upstream: Dev
    follower: str  # its URL
    load: BusyLoad
    senders: list[DevAccount]


@contextmanager
def loaded(
    folder: Path, *options: str, count: int = 8, seed: int = 0, tps: float = 30
) -> Iterator[tuple[Dev, BusyLoad]]:
    """A dev chain with all contracts, under load until it ends."""
    load, stop = BusyLoad(senders(count), seed), threading.Event()
    with dev_chain(*CHAIN, f"--data={folder / 'dev'}", *options) as dev:
        load.begin(dev.main.url)
        thread = threading.Thread(target=load.run, args=(dev.main.url, tps, stop))
        thread.start()
        try:
            yield dev, load
        finally:
            stop.set()
            thread.join()


@contextmanager
def full_pair(folder: Path, *options: str, count: int = 8, tps: float = 30) -> Iterator[Pair]:
    """A chain, and a full follower of its feed that has caught up."""
    with (
        loaded(folder, *options, count=count, tps=tps) as (dev, load),
        following(
            folder / "dev" / "main" / "genesis.json", folder / "followed", dev.main.feed,
            canonical=dev.main.url,
        ) as service,
    ):  # fmt: skip
        network = service.network
        until(lambda: network.probe("/readyz")[0] == 200, "the follower is ready")
        until(lambda: network.latest() >= dev.main.latest() - 1, "it has come along")
        yield Pair(dev, network.url, load, senders(count))
