"""The restricted load: ether and tokens from dev accounts, at a fixed rate.

Each sender has its own accounts, so that nonces never wait for another connection. The signer of a
transaction is recorded before it is sent.
"""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path

from checker.closed_form import TRANSFER_SELECTOR
from checker.gate import Gate
from checker.http_client import Client, results
from checker.journal import JournalWriter
from checker.keccak import keccak256
from foreblock._engine import Message, Transaction, sign_transaction
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.predeploys import TOKEN

GWEI = 10**9
PORTION = 10  # transactions in one request
RECIPIENTS = 1_000
TOKEN_GAS = 80_000
FEE_CAP = 1_000 * GWEI

PAYEES = [keccak256(at.to_bytes(8))[12:] for at in range(RECIPIENTS)]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The parameters of one sender."""

    url: str
    folder: Path
    name: str
    accounts: Sequence[DevAccount]
    chain_id: int
    tps: float
    seed: int


@dataclass(slots=True)
class Sender:
    """Signs and sends until stopped."""

    plan: LoadPlan
    refusals: list[str] = field(default_factory=list)
    sent: int = 0
    _nonces: dict[bytes, int] = field(default_factory=dict)

    def run(self, stop: Event) -> None:
        """Send portions at the planned rate; late ones are sent immediately."""
        plan, pick = self.plan, random.Random(self.plan.seed)
        begun = time.monotonic()
        with (
            Client(plan.url, plan.name) as client,
            JournalWriter(plan.folder, plan.name) as journal,
        ):
            while not stop.is_set():
                portion = [self._sign(pick) for _ in range(PORTION)]
                for transaction in portion:
                    journal.sender(transaction.hash, transaction.sender)
                self._send(client, portion)
                stop.wait(max(begun + self.sent / plan.tps - time.monotonic(), 0))

    def _send(self, client: Client, portion: list[Transaction]) -> None:
        exchange = client.ask(
            [("eth_sendRawTransaction", ["0x" + each.raw.hex()]) for each in portion]
        )
        found = results(exchange)
        if found != ["0x" + each.hash.hex() for each in portion]:
            self.refusals.append(exchange.answer[:500] or "no response")
        self.sent += len(portion)

    def _sign(self, pick: random.Random) -> Transaction:
        account, payee = pick.choice(self.plan.accounts), pick.choice(PAYEES)
        nonce = self._nonces.get(account.address, 0)
        self._nonces[account.address] = nonce + 1
        amount, token = pick.randrange(1, 10**12), pick.random() < 0.5
        data = TRANSFER_SELECTOR + payee.rjust(32, b"\0") + amount.to_bytes(32) if token else b""
        message = Message(
            sender=account.address,
            to=TOKEN if token else payee,
            value=0 if token else amount,
            data=data,
            gas=TOKEN_GAS if token else 21_000,
            max_fee_per_gas=FEE_CAP,
            max_priority_fee_per_gas=pick.randrange(GWEI),
        )
        return sign_transaction(message, 2, self.plan.chain_id, nonce, account.secret)


def send_load(plans: list[LoadPlan], gate: Gate) -> None:
    """Run senders, one thread each, and fail if any transaction was rejected."""
    senders = [Sender(plan) for plan in plans]
    threads = [threading.Thread(target=sender.run, args=(gate.stop,)) for sender in senders]
    gate.start.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals = [refusal for sender in senders for refusal in sender.refusals]
    if refusals:
        raise SystemExit(f"{len(refusals)} portions were refused; the first: {refusals[0]}")
