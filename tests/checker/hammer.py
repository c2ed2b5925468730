"""A client that sends requests continuously: batches about one block, pins, and recorded names."""

import random
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from checker import closed_form, probes
from checker.gate import Gate
from checker.http_client import Client, results
from checker.journal import Exchange, JournalWriter
from checker.json_type import Json
from checker.snapshot import read_snapshot

PINS = 200  # kept by a client
FULL = 0.03  # share of blocks with full transactions, which are large
# The subject of a batch.
ABOUT = ("pending", "pending", "pending", "pending", "latest", "hash", "place", "number")
VAULTS = [
    closed_form.SEQUENCER_VAULT,
    closed_form.BASE_FEE_VAULT,
    closed_form.L1_FEE_VAULT,
    closed_form.OPERATOR_VAULT,
]

Requests = list[tuple[str, list[Json]]]


@dataclass(frozen=True, slots=True)
class HammerPlan:
    """The parameters of one client."""

    url: str
    folder: Path
    name: str
    payers: list[bytes]
    payees: list[bytes]
    token: bytes
    rate: float  # batches a second
    seed: int


class Hammer:
    """Generates requests, and keeps names that can be pinned."""

    def __init__(self, plan: HammerPlan) -> None:
        self._plan = plan
        self._pick = random.Random(plan.seed)
        self._pins: deque[tuple[int, int, bytes]] = deque(maxlen=PINS)
        self._transactions: deque[str] = deque(maxlen=PINS)

    def next_requests(self) -> Requests:
        """The next batch."""
        about = self._pick.choice(ABOUT)
        if not self._pins and about not in ("pending", "latest"):
            about = "pending"
        if about in ("pending", "latest"):
            return self._batch(about)
        number, index, hash = self._pick.choice(self._pins)  # noqa: A001, its name
        if about == "number":
            return self._batch(hex(number - 1))
        if about == "place":
            return self._batch({"blockNumber": hex(number), "flashblockIndex": hex(index)})
        full = self._pick.random() < FULL
        return [
            ("eth_getBlockByHash", ["0x" + hash.hex(), full]),
            *self._batch("0x" + hash.hex())[1:],
        ]

    def remember(self, exchange: Exchange) -> None:
        """Keep names for later requests: the pending block, and a transaction of the
        returned one.
        """
        found = read_snapshot(exchange.snapshot) if exchange.snapshot else None
        if found is not None and found.pending is not None:
            self._pins.append(found.pending)
        block, *_ = results(exchange) or [None]
        if block and block["transactions"]:
            # The newest are the most useful: snapshots differ there.
            transaction = self._pick.choice(block["transactions"][-20:])
            if isinstance(transaction, str):
                self._transactions.append(transaction)

    def _batch(self, block: Json) -> Requests:
        pick, plan = self._pick, self._plan
        payer, payee = pick.choice(plan.payers), pick.choice(plan.payees)
        anyone = pick.choice([payer, payee, pick.choice(VAULTS)])
        requests: Requests = [
            ("eth_getBalance", ["0x" + anyone.hex(), block]),
            ("eth_getTransactionCount", ["0x" + payer.hex(), block]),
            ("eth_call", probes.surroundings_call(block)),
            ("eth_call", probes.token_call(plan.token, pick.choice([payer, payee]), block)),
            ("eth_call", probes.balance_call(anyone, block)),
            ("eth_simulateV1", probes.simulation(payer, payee, pick.randrange(10**15), block)),
            ("eth_blockNumber", []),
        ]
        if self._transactions:
            seen = pick.choice(self._transactions)
            requests += [
                ("eth_getTransactionByHash", [seen]),
                ("eth_getTransactionReceipt", [seen]),
            ]
        pick.shuffle(requests)
        return [("eth_getBlockByNumber", [block, pick.random() < FULL]), *requests]


def hammer(plan: HammerPlan, gate: Gate) -> None:
    """Send requests at the planned rate until stopped."""
    maker, stop = Hammer(plan), gate.stop
    gate.start.wait()
    begun, asked = time.monotonic(), 0
    with Client(plan.url, plan.name) as client, JournalWriter(plan.folder, plan.name) as journal:
        while not stop.is_set():
            exchange = client.ask(maker.next_requests())
            journal.exchange(exchange)
            maker.remember(exchange)
            asked += 1
            stop.wait(max(begun + asked / plan.rate - time.monotonic(), 0))
