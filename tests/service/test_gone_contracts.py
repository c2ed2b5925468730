"""Slots of a destroyed contract, at earlier blocks: never zero merely because they are unknown.

Rules before Cancun destroy it with its storage. The slot was never read before that, and proofs of
later blocks show that it is empty.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import Transaction, deposit_transaction, keccak256
from foreblock.errors import NoUpstream
from foreblock.ledger.reading.view import Ledger
from support.chains.following import Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import CANYON, DEPOSITOR, FACTORY, MAKES_MORTAL, MORTAL, SCRIBE
from support.payloads.bytecode import code
from support.servers.asking import asker
from support.servers.cold_follower import Follower, follower

ANCHOR, GONE, LATEST = 3, 6, 8
CONTRACT = "0x" + MORTAL.hex()
SLOT, UNSET = hex(9), hex(77)
# Returns slot 9 of the contract it overrides.
READS = code(9, "SLOAD", 0, "MSTORE", 32, 0, "RETURN")


def deposit(to: bytes, data: bytes) -> Transaction:
    return deposit_transaction(
        source_hash=keccak256(to + data),
        sender=DEPOSITOR,
        to=to,
        mint=0,
        value=0,
        gas_limit=500_000,
        input=data,
    )


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Truth(tmp_path / "truth", config=CANYON)) as truth:
        truth.seal(truth.job("made", [[]], upgrades=[deposit(FACTORY, MAKES_MORTAL)]))
        truth.grow(ANCHOR - 1, "before")
        partial = PartialFollowing(tmp_path / "store", truth, ANCHOR, config=CANYON)
        blocks = truth.grow(GONE - ANCHOR - 1, "alive")
        blocks.append(truth.seal(truth.job("gone", [[]], upgrades=[deposit(MORTAL, b"")])))
        blocks += truth.grow(LATEST - GONE, "after")
        partial.canonical(*blocks)
        partial.close()
        yield Ledger(truth.store)


@pytest.fixture
def cold(whole: Ledger, tmp_path: Path) -> Iterator[Follower]:
    with follower(whole, tmp_path / "store", is_begun=True) as made:
        yield made


def test_reads_are_those_of_a_whole_store(whole: Ledger, cold: Follower) -> None:
    with asker(whole) as everything:
        for number in map(hex, (GONE - 1, ANCHOR, ANCHOR + 1, GONE, LATEST)):
            for slot in (SLOT, UNSET):
                true = everything.ask("eth_getStorageAt", CONTRACT, slot, number)
                assert cold.ask("eth_getStorageAt", CONTRACT, slot, number) == true, number
            assert int(true, 16) == 0
    assert int(cold.ask("eth_getStorageAt", CONTRACT, SLOT, hex(GONE - 1)), 16) == 7
    assert cold.network.proofs_at == [CONTRACT] * 2, "one for each slot"
    assert cold.network.asked == [], "no request is about the latest block"


def test_calls_are_those_of_a_whole_store(whole: Ledger, cold: Follower) -> None:
    call = {"to": CONTRACT, "data": "0x01"}
    with asker(whole) as everything:
        for number in map(hex, (ANCHOR, GONE - 1, LATEST)):
            laid = {CONTRACT: {"code": READS}}
            true = everything.ask("eth_call", call, number, laid)
            assert cold.ask("eth_call", call, number, laid) == true
            assert int(true, 16) == (0 if number == hex(LATEST) else 7)


def test_a_batch_asks_for_both_kinds_together(whole: Ledger, cold: Follower) -> None:
    other = "0x" + SCRIBE.hex()
    asked = [(CONTRACT, SLOT, GONE - 1), (other, "0x63", GONE - 1), (CONTRACT, SLOT, LATEST)]
    body = json.dumps(
        [
            {
                "jsonrpc": "2.0",
                "id": at,
                "method": "eth_getStorageAt",
                "params": [address, slot, hex(number)],
            }
            for at, (address, slot, number) in enumerate(asked)
        ]
    ).encode()
    with asker(whole) as everything:
        true = json.loads(everything.reply(body).body)
    assert json.loads(cold.reply(body).body) == true
    assert (len(cold.network.asked), len(cold.network.proofs_at)) == (1, 1)


def test_what_nobody_proves_any_more_is_an_error(cold: Follower) -> None:
    def refuse(_: Any) -> Any:  # noqa: ANN401, JSON
        raise NoUpstream("the state of that block is not kept", 1)

    cold.network.change = refuse
    refused = cold.ask("eth_getStorageAt", CONTRACT, SLOT, hex(GONE - 1))
    assert refused["code"] == -32002
    assert "not kept" in refused["message"]


def test_a_false_proof_is_refused(cold: Follower) -> None:
    def lie(answer: Any) -> Any:  # noqa: ANN401, JSON
        (slot,) = answer["storageProof"]
        return {**answer, "storageProof": [{**slot, "value": "0x0", "proof": []}]}

    cold.network.change = lie
    assert cold.ask("eth_getStorageAt", CONTRACT, SLOT, hex(ANCHOR))["code"] == -32002
