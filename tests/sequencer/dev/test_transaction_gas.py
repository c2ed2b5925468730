"""Dev chains whose transactions may have more gas than Osaka allows (EIP-7825)."""

from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import GasLimitTooHigh
from foreblock.ledger.genesis.genesis_file import Genesis, genesis_text, read_genesis
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, send
from support.chains.dev_service import dev_service

ALICE, BOB = ACCOUNTS[:2]
CAP = 2**24
# Spends gas until little remains: a loop that ends below 100,000.
SPENDS = bytes.fromhex("5b620186a05a1160005700")


def genesis(**options: Any) -> Genesis:  # noqa: ANN401, of the genesis
    return dev_genesis(ChainSettings(gas_limit=30_000_000, **options))


@pytest.mark.parametrize(
    "chosen",
    [
        genesis(rules="ethereum", transaction_gas=2**40),
        genesis(fork="karst", transaction_gas=CAP + 1),
    ],
    ids=["ethereum", "karst"],
)
def test_a_transaction_may_have_more_gas_than_the_fork_says(
    tmp_path: Path, chosen: Genesis
) -> None:
    with dev_service(tmp_path, genesis=chosen) as (chain, client):
        created = send(ALICE, 0, None, 0, data=SPENDS, gas=CAP + 1)
        sent = client.ask("eth_sendRawTransaction", "0x" + created.raw.hex())
        receipt = client.ask("eth_getTransactionReceipt", sent)
        assert receipt["status"] == "0x1"
        assert int(receipt["gasUsed"], 16) > CAP - 200_000
        check_by_import(chain, tmp_path / "imported")
    assert read_genesis(genesis_text(chosen)) == chosen


@pytest.mark.parametrize("options", [{"rules": "ethereum"}, {"fork": "karst"}])
def test_otherwise_the_fork_decides(tmp_path: Path, options: dict[str, str]) -> None:
    with dev_service(tmp_path, genesis=genesis(**options)) as (chain, _):
        chain.submit(send(ALICE, 0, BOB.address, 0, gas=CAP))
        with pytest.raises(GasLimitTooHigh):
            chain.submit(send(ALICE, 1, BOB.address, 0, gas=CAP + 1))


def test_estimates_go_as_far_as_a_transaction_may(tmp_path: Path) -> None:
    """The call needs more than 2^24 gas: it stores to 800 slots."""
    call = {"from": "0x" + ALICE.address.hex(), "data": "0x" + _stores(800).hex()}
    for limit, is_found in ((2**40, True), (0, False)):
        chosen = genesis(rules="ethereum", transaction_gas=limit)
        with dev_service(tmp_path / str(limit), genesis=chosen) as (_, client):
            found = client.ask("eth_estimateGas", call)
            assert isinstance(found, str) == is_found, found


def _stores(slots: int) -> bytes:
    """Code that sets this many slots, counting down."""
    # PUSH2 n; JUMPDEST; DUP1; DUP1; SSTORE; PUSH1 1; SWAP1; SUB; DUP1; PUSH1 3; JUMPI; STOP
    return bytes.fromhex(f"61{slots:04x}5b808055600190038060035700")
