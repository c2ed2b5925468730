"""A client that sends transactions at a constant rate, one per request.

They are signed beforehand: transfers and token transfers in turn, from every dev account but the
first. Like many clients together it does not wait for an answer before it sends the next, but
reads all answers.

    python -m foreblock.bench.preconf.sender URL SECONDS TPS ACCOUNTS
"""

import asyncio
import sys
import time
from typing import Final
from urllib.parse import urlsplit

from foreblock.bench.preconf.part import tell, wait_to_begin
from foreblock.bench.preconf.wire import request
from foreblock.clock import SECOND_NS
from foreblock.primitives import format_data
from foreblock.sequencer.load import PORTION, Load
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.types import Transaction

CHAIN_ID: Final = 31337
CONNECTIONS: Final = 64  # on each, requests are answered one after the other
PAUSE_SECONDS: Final = 0.005  # between two looks at what is due
PATIENCE: Final = 1.0  # seconds for answers, after the last was sent


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


async def _send(url: str, seconds: float, tps: int, requests: list[bytes]) -> list[int]:
    ways = [await _connect(url) for _ in range(CONNECTIONS)]
    wait_to_begin()
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        due = min(int(passed * tps), len(requests))
        for number in range(sent, due):
            ways[number % CONNECTIONS][0].write(requests[number])
        sent = due
        await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.sleep(PATIENCE)
    return [sent, sum(each.answers for _, each in ways), sum(each.errors for _, each in ways)]


def signed(load: Load, tps: int, count: int) -> list[Transaction]:
    """The first transactions of a load, in its order."""
    transactions: list[Transaction] = list(load.due(0))  # none: it begins with this question
    while len(transactions) < count:
        load.sign_some(lambda _: 0)
        transactions += load.due((len(transactions) + PORTION) * SECOND_NS // tps)
    return transactions


def main() -> None:
    """Print how many were sent and answered, and how many answers were errors."""
    url, seconds, tps, accounts = sys.argv[1:]
    _, *senders = dev_accounts(TEST_MNEMONIC, int(accounts))
    rate, time_s = int(tps), float(seconds)
    load = Load(rate, senders, CHAIN_ID)
    requests = [
        request(url, "eth_sendRawTransaction", [format_data(each.raw)])
        for each in signed(load, rate, int(rate * time_s))
    ]
    tell([asyncio.run(_send(url, time_s, rate, requests))])


if __name__ == "__main__":
    main()
