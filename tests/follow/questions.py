"""Requests to a follower: every read method, about the contents of a busy chain.

A request has `BLOCK` instead of its block, so that the request to the follower can use a tag,
number or pin, and the one to the chain the identity of the same block.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from follow.batch_client import Identity, Request
from follow.busy_kinds import RECIPIENTS
from follow.busy_world import (
    CLONES,
    CONTRACTS,
    PAIRS,
    PROXY,
    ROUTER,
    authority,
    balances,
    number,
)
from foreblock._engine import keccak256
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.predeploys import MULTICALL, SEQUENCER_FEE_VAULT, TOKEN
from support.payloads.solidity import call_data

Json = Any
BLOCK = "<block>"  # placeholder of the block
HASH = "<hash>"  # placeholder of its hash
IMPLEMENTATION = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
NINE = 9  # calls of a small multicall


class Question(NamedTuple):
    """A request before its block is chosen."""

    kind: str
    method: str
    params: list[Json]

    @property
    def wants_hash(self) -> bool:
        """Return whether it needs the block's hash."""
        return HASH in str(self.params)

    def about(self, block: Json, hash: str = "") -> Request:
        """The request about a block."""
        return self.method, _filled(self.params, block, hash)

    def of(self, identity: Identity) -> Request:
        """The request if its response does not depend on time."""
        if self.method == "eth_getBlockByNumber" and identity.flashblock is None:
            return "eth_getBlockByHash", [identity.hash, *self.params[1:]]
        return self.about(identity.block, identity.hash)


def _filled(value: Json, block: Json, hash: str) -> Json:
    if isinstance(value, list):
        return [_filled(each, block, hash) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, block, hash) for key, each in value.items()}
    return block if value == BLOCK else hash if value == HASH else value


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


class Questions:
    """A seeded generator of requests."""

    def __init__(
        self, senders: Sequence[DevAccount], seed: int, leave_out: Sequence[str] = (),
        repeated: int | None = None,
    ) -> None:  # fmt: skip
        """Generates ever new requests, or repeats a fixed number."""
        self._pick = random.Random(seed)
        self._senders = [each.address for each in senders]
        self._authorities = [authority(each).address for each in senders]
        self._makers: list[Callable[[], Question]] = [
            each for each in self._all() if each.__name__.strip("_") not in leave_out
        ]
        self._repeated: list[Question] = []
        self._repeated = [self.next() for _ in range(repeated or 0)]

    def next(self) -> Question:
        """The next request, of any kind."""
        if self._repeated:
            return self._pick.choice(self._repeated)
        return self._pick.choice(self._makers)()

    def _all(self) -> list[Callable[[], Question]]:
        return [
            self._block, self._block, self._block_full, self._receipts, self._logs,
            self._balance, self._balance, self._balance, self._nonce, self._nonce, self._code,
            self._storage, self._storage, self._storage_values, self._proof, self._account,
            self._call, self._call, self._call, self._call_proxy, self._call_proxy, self._nine,
            self._multicall, self._sell, self._estimate, self._simulate, self._access_list,
        ]  # fmt: skip

    def _somebody(self) -> bytes:
        """A sender, a paid account, an account that may be unused, or a contract."""
        choice = self._pick.random()
        if choice < 0.3:
            return self._pick.choice(self._senders)
        if choice < 0.7:
            return keccak256(b"busy %d" % self._pick.randrange(RECIPIENTS))[12:]
        if choice < 0.8:
            return self._pick.choice([*CONTRACTS, MESSAGE_PASSER, SEQUENCER_FEE_VAULT])
        if choice < 0.9:
            return self._pick.choice(self._authorities)
        return self._pick.randbytes(20)

    def _slot(self) -> tuple[bytes, int]:
        """A contract and one of its slots."""
        owner = self._somebody()
        choices = (
            (PROXY, IMPLEMENTATION),
            (PROXY, _mapping(owner, 0)),
            (self._pick.choice(CLONES), _mapping(owner, 0)),
            (TOKEN, _mapping(owner, 0)),
            (self._pick.choice(PAIRS), self._pick.randrange(4)),
            (ROUTER, 0),
            (MESSAGE_PASSER, self._pick.randrange(3)),
            (L1_BLOCK, self._pick.randrange(9)),
            (self._somebody(), self._pick.randrange(2)),
        )
        return self._pick.choice(choices)

    # --- Blocks ----------------------------------------------------------------------------

    def _block(self) -> Question:
        return Question("block", "eth_getBlockByNumber", [BLOCK, False])

    def _block_full(self) -> Question:
        return Question("block with transactions", "eth_getBlockByNumber", [BLOCK, True])

    def _receipts(self) -> Question:
        return Question("receipts", "eth_getBlockReceipts", [BLOCK])

    def _logs(self) -> Question:
        about: dict[str, Json] = {"blockHash": HASH}
        if self._pick.random() < 0.7:
            about["address"] = _hex(self._pick.choice([PROXY, TOKEN, *CLONES[:3], *PAIRS]))
        return Question("logs", "eth_getLogs", [about])

    # --- State -----------------------------------------------------------------------------

    def _balance(self) -> Question:
        return Question("balance", "eth_getBalance", [_hex(self._somebody()), BLOCK])

    def _nonce(self) -> Question:
        return Question("nonce", "eth_getTransactionCount", [_hex(self._somebody()), BLOCK])

    def _code(self) -> Question:
        choices = [*CONTRACTS, *self._authorities, self._somebody()]
        return Question("code", "eth_getCode", [_hex(self._pick.choice(choices)), BLOCK])

    def _account(self) -> Question:
        return Question("account", "eth_getAccountInfo", [_hex(self._somebody()), BLOCK])

    def _storage(self) -> Question:
        address, slot = self._slot()
        return Question("storage", "eth_getStorageAt", [_hex(address), f"0x{slot:064x}", BLOCK])

    def _storage_values(self) -> Question:
        wanted: dict[str, list[str]] = {}
        for _ in range(self._pick.randrange(1, 6)):
            address, slot = self._slot()
            wanted.setdefault(_hex(address), []).append(f"0x{slot:064x}")
        return Question("storage values", "eth_getStorageValues", [wanted, BLOCK])

    def _proof(self) -> Question:
        address, slot = self._slot()
        return Question("proof", "eth_getProof", [_hex(address), [f"0x{slot:064x}"], BLOCK])

    # --- Calls -----------------------------------------------------------------------------

    def _to(self, to: bytes, data: bytes, sender: bytes | None = None) -> dict[str, str]:
        call = {"to": _hex(to), "data": _hex(data)}
        return call if sender is None else {"from": _hex(sender), **call}

    def _balance_of(self) -> bytes:
        return call_data("balanceOf(address)", number(self._somebody()))

    def _call(self) -> Question:
        token = self._pick.choice([TOKEN, *CLONES])
        return Question("call", "eth_call", [self._to(token, self._balance_of()), BLOCK])

    def _call_proxy(self) -> Question:
        return Question("call through a proxy", "eth_call",
                        [self._to(PROXY, self._balance_of()), BLOCK])  # fmt: skip

    def _nine(self) -> Question:
        tokens = self._pick.sample(CLONES, NINE)
        call = self._to(MULTICALL, balances(self._somebody(), tokens))
        return Question("multicall of 9", "eth_call", [call, BLOCK])

    def _multicall(self) -> Question:
        call = self._to(MULTICALL, balances(self._somebody()))
        return Question("multicall of 200", "eth_call", [call, BLOCK])

    def _selling(self) -> dict[str, str]:
        data = call_data(
            "sell(address,uint256,address,address,bool)", number(CLONES[0]),
            self._pick.randrange(1, 10**15), number(PAIRS[0]), number(PAIRS[1]), 1,
        )  # fmt: skip
        return self._to(ROUTER, data, self._pick.choice(self._senders))

    def _sell(self) -> Question:
        return Question("swap", "eth_call", [self._selling(), BLOCK])

    def _estimate(self) -> Question:
        return Question("estimate", "eth_estimateGas", [self._selling(), BLOCK])

    def _access_list(self) -> Question:
        return Question("access list", "eth_createAccessList", [self._selling(), BLOCK])

    def _simulate(self) -> Question:
        calls = [self._selling(), self._to(PROXY, self._balance_of())]
        payload = {"blockStateCalls": [{"calls": calls}], "traceTransfers": True}
        return Question("simulation", "eth_simulateV1", [payload, BLOCK])


def _mapping(owner: bytes, slot: int) -> int:
    """The slot of a mapping's value in Solidity's layout."""
    return int.from_bytes(keccak256(owner.rjust(32, b"\0") + slot.to_bytes(32)))
