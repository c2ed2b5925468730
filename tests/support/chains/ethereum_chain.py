"""Dev chains with chosen rules, and transactions that only chains with Ethereum's rules take."""

import hashlib
from typing import Any

from foreblock._engine import Transaction, keccak256
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.rules.execution import CONSOLIDATION_REQUESTS, WITHDRAWAL_REQUESTS
from foreblock.ledger.rules.transaction_rules import BLOB_BYTES
from foreblock.sequencer.dev_genesis import DevGenesisOptions, dev_genesis
from support.chains.dev_chain import ACCOUNTS, GWEI, NOBODY, send
from support.payloads.signing import rlp, sign

ALICE = ACCOUNTS[0]


def genesis_of(rules: str, fork: str = "newest") -> Genesis:
    return dev_genesis(DevGenesisOptions(rules=rules, fork=fork))


def withdraw(nonce: int, amount: int) -> Transaction:
    """A request to the contract of EIP-7002: the key of a validator, and an amount."""
    data = bytes([nonce]) * 48 + amount.to_bytes(8)
    return send(ALICE, nonce, WITHDRAWAL_REQUESTS, 1_000, data=data, gas=300_000)


def consolidate(nonce: int) -> Transaction:
    """A request to the contract of EIP-7251: the keys of two validators."""
    data = bytes([nonce]) * 96
    return send(ALICE, nonce, CONSOLIDATION_REQUESTS, 1_000, data=data, gas=300_000)


def blob_transaction(
    who: int,
    nonce: int,
    blobs: int,
    *,
    blob_fee: int = 100,
    sidecar: bool = True,
    commits: bool = True,
) -> str:
    """A transaction of type 3 with that many blobs, as it is sent."""
    commitments = [bytes([nonce, at]) * 24 for at in range(blobs)]
    hashes = [b"\1" + hashlib.sha256(each).digest()[1:] for each in commitments]
    fields: list[Any] = [31337, nonce, GWEI, 100 * GWEI, 21_000, NOBODY, 1, b"", []]
    fields += [blob_fee, hashes]
    secret = int.from_bytes(ACCOUNTS[who].secret)
    body = [*fields, *sign(secret, keccak256(b"\3" + rlp(fields)))]
    if not sidecar:
        return "0x" + (b"\3" + rlp(body)).hex()
    contents = [bytes(BLOB_BYTES)] * blobs
    if not commits:
        commitments = [b"\xff" * 48] * blobs
    return "0x" + (b"\3" + rlp([body, contents, commitments, [bytes(48)] * blobs])).hex()
