"""A fork, and a full copy of the chain, do the same: random reads and transactions on both."""

import random
from typing import Any

import pytest

from foreblock import DevChain
from foreblock.errors import ForeblockError
from support.upstreams.forked import Rules

PEOPLE = [bytes([number]) * 20 for number in range(1, 20)]
CREATES = "0x60016000556001601055"  # stores two words, and returns no code


class Copies:
    """Chains with the same history; a fork of one joins them."""

    def __init__(self, chains: list[DevChain], code: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.chains = chains
        made = [[bytes(each.deploy(code).address) for _ in range(3)] for each in chains]
        self.tokens = made[0]
        self.differences: list[object] = []

    def change(self) -> None:
        """Send the same transaction to all."""
        person, token = self.random.choice(PEOPLE), self.random.choice(self.tokens)
        value, kind = self.random.randrange(1, 40), self.random.random()
        found = []
        for chain in self.chains:
            options: dict[str, Any] = {"check": False, "gas": 200_000}
            if kind < 0.4:
                sent = chain.send(person, value=value, **options)
            elif kind < 0.9:
                data = f"0xa9059cbb{person.hex():0>64}{value:064x}"
                sent = chain.send(token, data=data, **options)
            else:
                sent = chain.send(None, data=CREATES, **options)
            receipt = sent.receipt
            assert receipt is not None
            logs = [(each.topics, each.data) for each in receipt.logs]
            found.append((receipt.status, receipt.gas_used, receipt.block_number, logs))
        self.compare("receipt", found)

    def read(self, latest: int) -> None:
        """Read the same from all."""
        person, other = (f"0x{self.random.choice(PEOPLE).hex()}" for _ in range(2))
        token = f"0x{self.random.choice(self.tokens).hex()}"
        block = self.random.choice(["latest", hex(self.random.randrange(latest + 1))])
        amount = self.random.randrange(40)
        balance = {"to": token, "data": f"0x70a08231{person[2:]:0>64}"}
        transfer = f"0xa9059cbb{other[2:]:0>64}{amount:064x}"
        requests: list[tuple[Any, ...]] = [
            ("eth_getBalance", person, block),
            ("eth_getTransactionCount", self.random.choice([person, token]), block),
            ("eth_getStorageAt", token, hex(amount), block),
            ("eth_getCode", self.random.choice([person, token]), block),
            ("eth_call", balance, block),
            ("eth_call", {"from": person, "to": token, "data": transfer}, block),
            ("eth_estimateGas", {"from": person, "to": other}, block),
            ("debug_traceCall", balance, block, {"tracer": "prestateTracer"}),
            ("eth_getLogs", {"fromBlock": block, "address": token, "toBlock": "latest"}),
        ]
        method, *params = self.random.choice(requests)
        found = []
        for chain in self.chains:
            try:
                found.append(chain.rpc(method, *params))
            except ForeblockError as why:
                found.append(str(why))
        if method == "eth_getLogs":  # roots of local blocks are not known, so their hashes differ
            assert all(isinstance(each, list) for each in found), found
            found = [[(log["topics"], log["data"]) for log in each] for each in found]
        self.compare((method, params), found)

    def compare(self, what: object, found: list[Any]) -> None:
        if any(each != found[0] for each in found):
            self.differences.append((what, found))


@pytest.mark.parametrize(
    ("rules", "proofs", "seed"),
    [("ethereum", "on", 1), ("optimism", "off", 2), ("ethereum", "off", 3)],
)
def test_a_fork_does_what_a_full_copy_does(
    rules: Rules, proofs: str, seed: int, compiled: dict[str, Any]
) -> None:
    with DevChain(rules=rules) as upstream, DevChain(rules=rules) as full:
        copies = Copies([upstream, full], compiled["initCode"], seed)
        for _ in range(25):
            copies.change()
        with (
            upstream.serve() as server,
            DevChain(fork={"url": server.url, "cache": False, "proofs": proofs}) as fork,
        ):
            copies.chains = [upstream, fork]
            for _ in range(60):
                copies.read(int(upstream.rpc("eth_blockNumber"), 16))
            copies.chains = [full, fork]
            for _ in range(30):
                copies.change()
                copies.read(int(full.rpc("eth_blockNumber"), 16))
                copies.read(int(full.rpc("eth_blockNumber"), 16))
    assert not copies.differences
