"""A client that sends transactions and waits for their effects, by notification and by reads.

It subscribes on one connection, by WebSocket. For each transaction it takes three times: when it
is sent, when the first reply shows what it causes, to a client that asks again after each reply
on an HTTP connection, and when the notification of the same arrives. Transactions follow each
other at random distances. One thread waits for both connections, so that neither is seen late.

    python -m foreblock.bench.rpc.subscriber URL KIND SECONDS LEAST
"""

import json
import random
import select
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from foreblock.bench.preconf.client_process import (
    RawConnection,
    print_results,
    request,
    wait_to_begin,
)
from foreblock.bench.rpc import chain
from foreblock.errors import NotAnAnswer
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.primitives import format_data
from foreblock.types import Message, Transaction, sign_transaction

Json = Any

CHUNK: Final = 1 << 16


class BenchSubscription:
    """A WebSocket connection with one subscription."""

    def __init__(self, url: str, params: Sequence[Json]) -> None:
        parts = urlsplit(url)
        self.socket: Final = socket.create_connection((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        place = parse_uri(parts._replace(scheme="ws").geturl())
        self._protocol: Final = ClientProtocol(place, max_size=None)
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self._text = bytearray()
        while self._protocol.state is State.CONNECTING:
            self._receive()
            if self._protocol.handshake_exc is not None:
                raise NotAnAnswer(url, str(self._protocol.handshake_exc))
        envelope = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params}
        self._protocol.send_text(json.dumps(envelope).encode())
        self._flush()
        while not (replies := self._receive()):
            pass
        if "result" not in replies[0]:
            raise NotAnAnswer(url, str(replies[0]))

    def notifications(self) -> list[Json]:
        """The results of notifications that have arrived; waits if there is nothing to read."""
        return [each["params"]["result"] for each in self._receive() if "params" in each]

    def _receive(self) -> list[Json]:
        data = self.socket.recv(CHUNK)
        if not data:
            raise NotAnAnswer("the subscription", "it closed the connection")
        self._protocol.receive_data(data)
        messages = []
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode < 8:  # not a control frame
                self._text += event.data
                if event.fin:
                    messages.append(json.loads(self._text))
                    self._text.clear()
        self._flush()
        return messages

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self.socket.sendall(data)


KEY: Final = b"\x46" * 32  # of the sender of `chain`
GWEI: Final = 10**9
PAUSES: Final = (0.015, 0.035)  # seconds between two transactions
WARM_UP: Final = 3  # transactions that are not counted
PATIENCE_MS: Final = 30_000


@dataclass(frozen=True)
class DeliveryKind:
    """A subscription, the request that reads the same data, and how both show the expected value.

    That is named by a text: the hash of the transaction, or the number of the next block.
    """

    params: Sequence[Json]
    awaits_head: bool

    def read_request(self, awaited: str) -> tuple[str, list[Json]]:
        """The request that reads it."""
        return ("eth_blockNumber", []) if self.awaits_head else (
            "eth_getTransactionReceipt", [awaited],
        )  # fmt: skip

    def is_read(self, result: Json, awaited: str) -> bool:
        """True if a reply shows it; geth returns an error for a receipt that is missing."""
        if result is None:
            return False
        return not self.awaits_head or int(result, 16) >= int(awaited, 16)

    def is_notified(self, result: Json, awaited: str) -> bool:
        """True if a notification is about it."""
        return bool(result["number" if self.awaits_head else "transactionHash"] == awaited)


_FILTER: Final = {"address": format_data(chain.EMITTER_ADDRESS)}
KINDS: Final = {
    "newHeads": DeliveryKind(["newHeads"], awaits_head=True),
    "logs": DeliveryKind(["logs", _FILTER], awaits_head=False),
    "pendingLogs": DeliveryKind(["pendingLogs", _FILTER], awaits_head=False),
}


class BenchSubscriber:
    """A client with both connections."""

    def __init__(self, url: str, kind: DeliveryKind) -> None:
        self._url: Final = url
        self._kind: Final = kind
        self._http: Final = RawConnection(url)
        self._subscription: Final = BenchSubscription(url, kind.params)
        self._poll: Final = select.poll()
        for each in (self._http.socket, self._subscription.socket):
            self._poll.register(each, select.POLLIN)

    def ask(self, method: str, *params: Json) -> Json:
        """The result of a request; the subscription is not read."""
        return self._result(self._http.ask(request(self._url, method, params))[2])

    def send(self, transaction: Transaction) -> tuple[int, int, int]:
        """Send it; return when it was sent, when its effect was read, and when it was notified."""
        awaited = format_data(transaction.hash)
        if self._kind.awaits_head:
            awaited = hex(int(self.ask("eth_blockNumber"), 16) + 1)
        read_request = request(self._url, *self._kind.read_request(awaited))
        send = request(self._url, "eth_sendRawTransaction", [format_data(transaction.raw)])
        read = notifications = 0
        sent = time.monotonic_ns()
        self._http.send(send)
        is_accepted = False
        while not read or not notifications:
            for descriptor in self._ready():
                at = time.monotonic_ns()
                if descriptor == self._subscription.socket.fileno():
                    results = self._subscription.notifications()
                    if any(self._kind.is_notified(each, awaited) for each in results):
                        notifications = at
                    continue
                body = self._http.receive()[2]
                if not is_accepted:
                    self._result(body)
                    is_accepted = True
                elif self._kind.is_read(json.loads(body).get("result"), awaited):
                    read = at
                    continue
                self._http.send(read_request)
        return sent, read, notifications

    def close(self) -> None:
        for each in (self._http, self._subscription):
            each.socket.close()

    def _ready(self) -> list[int]:
        ready = [descriptor for descriptor, _ in self._poll.poll(PATIENCE_MS)]
        if not ready:
            raise NotAnAnswer(self._url, "neither a read nor a notification shows the transaction")
        return ready

    def _result(self, body: bytes) -> Json:
        answer = json.loads(body)
        if "error" in answer:
            raise NotAnAnswer(self._url, body.decode())
        return answer["result"]


def transaction(nonce: int) -> Transaction:
    """A call of the contract that logs."""
    message = Message(
        sender=chain.SENDER,
        to=chain.EMITTER_ADDRESS,
        data=nonce.to_bytes(32),
        gas=50_000,
        max_fee_per_gas=1_000 * GWEI,
        max_priority_fee_per_gas=GWEI,
    )
    return sign_transaction(message, DYNAMIC_FEE, chain.CHAIN_ID, nonce, KEY)


def samples(
    client: BenchSubscriber, seconds: float, least: int, pause: Callable[[], None]
) -> list[tuple[int, int, int]]:
    """Send for some seconds, and at least some transactions."""
    nonce = int(client.ask("eth_getTransactionCount", format_data(chain.SENDER), "pending"), 16)
    found: list[tuple[int, int, int]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(found) < least + WARM_UP:
        signed = transaction(nonce + len(found))
        pause()
        found.append(client.send(signed))
    return found[WARM_UP:]


def main() -> None:
    """Print for each transaction when it was sent, and when its effect was read and notified."""
    url, kind, seconds, least = sys.argv[1:]
    client = BenchSubscriber(url, KINDS[kind])
    generator = random.Random(15)  # noqa: S311 - the same moments each time
    wait_to_begin()
    print_results(samples(client, float(seconds), int(least),
                 lambda: time.sleep(generator.uniform(*PAUSES))))  # fmt: skip


if __name__ == "__main__":
    main()
