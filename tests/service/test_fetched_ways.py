"""Proofs and simulated roots over an empty store: one upstream proof for each trie path."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.long_chain import EMITTER
from support.servers.asking import Asker, request
from support.servers.cold_follower import Follower, follower

SOMEBODY = EMITTER
KEYS = ["0x0", "0x1"]


@pytest.fixture
def cold(long_ledger: Ledger, tmp_path: Path) -> Iterator[Follower]:
    with follower(long_ledger, tmp_path / "store") as made:
        yield made


def test_a_cold_proof_is_one_request(cold: Follower, ethereum: Asker) -> None:
    body = request("eth_getProof", SOMEBODY, KEYS, "latest")
    found = json.loads(cold.reply(body).body)
    assert found == json.loads(ethereum.reply(body).body)
    assert cold.network.asked == [], "no value has to be learned for it"
    assert cold.network.proofs_at == [SOMEBODY]
    assert cold.ask("eth_getAccount", SOMEBODY, "latest") == ethereum.ask(
        "eth_getAccount", SOMEBODY, "latest"
    )
    assert cold.network.proofs_at == [SOMEBODY], "known state is not requested again"


def test_proofs_of_a_batch_are_asked_for_together(cold: Follower, ethereum: Asker) -> None:
    others = ["0x" + bytes([number] * 20).hex() for number in range(1, 9)]
    body = json.dumps(
        [
            {"jsonrpc": "2.0", "id": each, "method": "eth_getProof", "params": [each, [], "latest"]}
            for each in others
        ]
    ).encode()
    assert json.loads(cold.reply(body).body) == json.loads(ethereum.reply(body).body)
    assert sorted(cold.network.proofs_at) == others


@pytest.mark.parametrize("field", ["balance", "storageHash", "accountProof", "nonce"])
def test_a_false_proof_changes_nothing(cold: Follower, ethereum: Asker, field: str) -> None:
    body = request("eth_getProof", SOMEBODY, KEYS, "latest")

    def lie(answer: Any) -> Any:  # noqa: ANN401, JSON
        if field == "accountProof":
            return {**answer, field: answer[field][:-1]}
        return {**answer, field: "0x7" if field != "storageHash" else "0x" + "77" * 32}

    cold.network.change = lie
    found = json.loads(cold.reply(body).body)
    if field == "accountProof":
        assert found["error"]["code"] == -32002
        assert "do not fit" in found["error"]["message"]
    else:
        # The results come from the nodes.
        assert found == json.loads(ethereum.reply(body).body)


def test_a_simulation_that_changes_very_much_has_no_root(cold: Follower, ethereum: Asker) -> None:
    gas = {"value": "0x1", "gas": "0x5208"}
    calls = [{"to": "0x" + number.to_bytes(20).hex(), **gas} for number in range(1000, 1100)]
    rich = {"0x" + "00" * 20: {"balance": "0xffff"}}
    blocks = {"blockStateCalls": [{"stateOverrides": rich, "calls": calls}]}
    (found,) = cold.ask("eth_simulateV1", blocks, "latest")
    (true,) = ethereum.ask("eth_simulateV1", blocks, "latest")
    assert found["stateRoot"] == "0x" + "00" * 32
    assert found["calls"] == true["calls"]
    (few,) = cold.ask("eth_simulateV1", {"blockStateCalls": [{"calls": calls[:0]}]}, "latest")
    (true,) = ethereum.ask("eth_simulateV1", {"blockStateCalls": [{"calls": calls[:0]}]}, "latest")
    assert few == true
