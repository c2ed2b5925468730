"""A client that pays a new account and polls `pending` until the payment is visible.

Payments start at random moments of the interval, one after the other.

    python -m foreblock.bench.preconf.payer URL SECONDS
"""

import json
import random
import sys
import time
from typing import Final

from foreblock.bench.preconf.part import tell, wait_to_begin
from foreblock.bench.preconf.wire import RawConnection, request
from foreblock.errors import NotAnAnswer
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.primitives import format_data
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, DevAccount, dev_accounts
from foreblock.types import Message, sign_transaction

GWEI: Final = 10**9
PAUSE_SECONDS: Final = 0.2  # at most, between two payments


def main() -> None:
    """Print when each payment was sent, accepted and readable."""
    url, seconds = sys.argv[1], float(sys.argv[2])
    (account,) = dev_accounts(TEST_MNEMONIC, 1)
    connection = RawConnection(url)
    _, _, answer = connection.ask(request(url, "eth_chainId", []))
    chain_id = int(json.loads(answer)["result"], 16)
    generator = random.Random(6)  # noqa: S311 - the same moments each time
    paid: list[tuple[int, int, int]] = []
    wait_to_begin()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        to = generator.randbytes(20)
        paid.append(_pay(connection, account, chain_id, len(paid), to))
        time.sleep(generator.random() * PAUSE_SECONDS)
    tell(paid)


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
    look = request(connection.url, "eth_getBalance", [format_data(to), "pending"])
    sent_ns = time.monotonic_ns()
    accepted_ns, _, answer = connection.ask(send)
    if b'"result"' not in answer:
        raise NotAnAnswer(connection.url, answer.decode())
    while True:
        at_ns, _, answer = connection.ask(look)
        if json.loads(answer)["result"] != "0x0":
            return sent_ns, accepted_ns, at_ns


if __name__ == "__main__":
    main()
