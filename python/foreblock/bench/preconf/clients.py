"""Clients of a chain that is measured, each in a process of its own.

    python -m foreblock.bench.preconf.clients listener|poller|payer|sender URL SECONDS ...

Each reports when it is ready, starts on a signal, works for a given time and prints its
results (`client_process`).
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from websockets.sync.client import connect

from foreblock.bench.preconf.client_process import (
    RawConnection,
    pending_position,
    print_results,
    request,
    wait_to_begin,
)
from foreblock.errors import NotAnAnswer
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.primitives import format_data
from foreblock.sequencer.load import PORTION, Load
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, DevAccount, dev_accounts
from foreblock.types import Message, Transaction, sign_transaction

GWEI: Final = 10**9
SECOND_NS: Final = 10**9
CHAIN_ID: Final = 31337
PAYMENT_PAUSE: Final = 0.2  # seconds at most, between two payments
CONNECTIONS: Final = 64  # of the sender; on each, requests are answered one after the other
SEND_PAUSE: Final = 0.005  # seconds between two batches of due transactions
PATIENCE: Final = 1.0  # seconds for answers, after the last was sent


def listener(url: str, seconds: str) -> None:
    """Read a feed; print time, block and index of each flashblock that arrived."""
    arrived: list[tuple[int, int, int]] = []
    with connect(url, compression=None, max_size=None) as feed:
        wait_to_begin()
        end = time.monotonic() + float(seconds)
        while (left := end - time.monotonic()) > 0:
            try:
                message = feed.recv(timeout=left)
            except TimeoutError:
                break
            at_ns = time.monotonic_ns()
            flashblock = json.loads(message)
            block = flashblock["metadata"]["block_number"]
            arrived.append((at_ns, int(str(block), 0), flashblock["index"]))
    print_results(arrived)


def poller(url: str, seconds: str) -> None:
    """Poll a balance at `pending`; print time, block and index of each flashblock that was seen.

    Each answer names its flashblock, so the first one that names another shows when that one
    became readable.
    """
    connection = RawConnection(url)
    message = request(url, "eth_getBalance", ["0x" + "11" * 20, "pending"])
    seen: list[tuple[int, int, int]] = []
    last = pending_position(connection.ask(message)[1])
    wait_to_begin()
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        at_ns, head, _ = connection.ask(message)
        place = pending_position(head)
        if place is not None and place != last:
            seen.append((at_ns, *place))
            last = place
    print_results(seen)


# --- Payments ---------------------------------------------------------------------------


def payer(url: str, seconds: str) -> None:
    """Pay new accounts; print when each payment was sent, accepted and readable at `pending`.

    Payments start at random moments of the interval, one after the other.
    """
    (account,) = dev_accounts(TEST_MNEMONIC, 1)
    connection = RawConnection(url)
    _, _, answer = connection.ask(request(url, "eth_chainId", []))
    chain_id = int(json.loads(answer)["result"], 16)
    generator = random.Random(6)  # noqa: S311 - the same moments each time
    paid: list[tuple[int, int, int]] = []
    wait_to_begin()
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        to = generator.randbytes(20)
        paid.append(_pay(connection, account, chain_id, len(paid), to))
        time.sleep(generator.random() * PAYMENT_PAUSE)
    print_results(paid)


def _pay(
    connection: RawConnection, account: DevAccount, chain_id: int, nonce: int, to: bytes
) -> tuple[int, int, int]:
    message = Message(
        sender=account.address,
        to=to,
        value=1,
        gas=21_000,
        max_fee_per_gas=1_000 * GWEI,
        max_priority_fee_per_gas=GWEI,
    )
    signed = sign_transaction(message, DYNAMIC_FEE, chain_id, nonce, account.secret)
    send = request(connection.url, "eth_sendRawTransaction", [format_data(signed.raw)])
    poll = request(connection.url, "eth_getBalance", [format_data(to), "pending"])
    sent_ns = time.monotonic_ns()
    accepted_ns, _, answer = connection.ask(send)
    if b'"result"' not in answer:
        raise NotAnAnswer(connection.url, answer.decode())
    while True:
        at_ns, _, answer = connection.ask(poll)
        if json.loads(answer)["result"] != "0x0":
            return sent_ns, accepted_ns, at_ns


# --- Load -------------------------------------------------------------------------------


def sender(url: str, seconds: str, tps: str, accounts: str) -> None:
    """Send transactions at a constant rate; print how many were sent, answered and refused.

    They are signed beforehand: transfers and token transfers in turn, from every dev account but
    the first. Like many clients together it does not wait for an answer before it sends the
    next, but reads all answers.
    """
    _, *senders = dev_accounts(TEST_MNEMONIC, int(accounts))
    rate, time_s = int(tps), float(seconds)
    load = Load(rate, senders, CHAIN_ID)
    requests = [
        request(url, "eth_sendRawTransaction", [format_data(each.raw)])
        for each in sign_load(load, rate, int(rate * time_s))
    ]
    print_results([asyncio.run(_send(url, time_s, rate, requests))])


def sign_load(load: Load, tps: int, count: int) -> list[Transaction]:
    """The first transactions of a load, in its order."""
    transactions: list[Transaction] = list(load.due(0))  # none: it starts with this call
    while len(transactions) < count:
        load.sign_some(lambda _: 0)
        transactions += load.due((len(transactions) + PORTION) * SECOND_NS // tps)
    return transactions


async def _send(url: str, seconds: float, tps: int, requests: list[bytes]) -> list[int]:
    connections = [await _connect(url) for _ in range(CONNECTIONS)]
    wait_to_begin()
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        due = min(int(passed * tps), len(requests))
        for number in range(sent, due):
            connections[number % CONNECTIONS][0].write(requests[number])
        sent = due
        await asyncio.sleep(SEND_PAUSE)
    await asyncio.sleep(PATIENCE)
    counted = [each for _, each in connections]
    return [sent, sum(each.answers for each in counted), sum(each.errors for each in counted)]


class _Answers(asyncio.Protocol):
    """Counts answers, and those that are errors."""

    def __init__(self) -> None:
        self.answers = 0
        self.errors = 0
        self._held = b""

    def data_received(self, data: bytes) -> None:
        whole, end, self._held = (self._held + data).rpartition(b"}")
        self.answers += (whole + end).count(b'"jsonrpc"')
        self.errors += (whole + end).count(b'"error"')


async def _connect(url: str) -> tuple[asyncio.Transport, _Answers]:
    parts = urlsplit(url)
    assert parts.hostname is not None, "the measurement names host and port"
    return await asyncio.get_running_loop().create_connection(
        _Answers, parts.hostname, parts.port or 80
    )


ROLES: Final[dict[str, Callable[..., None]]] = {
    each.__name__: each for each in (listener, poller, payer, sender)
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
