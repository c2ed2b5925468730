"""Dev chains on which contracts may be longer than the fork allows, or missing."""

from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import InitCodeTooLarge
from foreblock.ledger.genesis.genesis_file import Genesis, genesis_text, read_genesis
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.sequencer.predeploys import DETERMINISTIC_DEPLOYER
from foreblock.settings import ChainSettings
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, send
from support.chains.dev_service import dev_service

ALICE = ACCOUNTS[0]
LARGE = 40_000


def genesis(**options: Any) -> Genesis:  # noqa: ANN401, of the genesis
    return dev_genesis(ChainSettings(**options))


def creation(size: int) -> bytes:
    """Code that creates a contract of this many zero bytes."""
    return bytes.fromhex(f"62{size:06x}6000f3")


@pytest.mark.parametrize("rules", ["optimism", "ethereum"])
@pytest.mark.parametrize(("limit", "status"), [(0, "0x0"), (LARGE, "0x1"), (LARGE - 1, "0x0")])
def test_code_may_be_as_long_as_the_chain_says(
    tmp_path: Path, rules: str, limit: int, status: str
) -> None:
    chosen = genesis(rules=rules, code_size=limit)
    with dev_service(tmp_path, genesis=chosen) as (chain, client):
        raw = send(ALICE, 0, None, 0, data=creation(LARGE), gas=12_000_000)
        sent = client.ask("eth_sendRawTransaction", "0x" + raw.raw.hex())
        assert client.ask("eth_getTransactionReceipt", sent)["status"] == status
        call = {"from": "0x" + ALICE.address.hex(), "data": "0x" + creation(LARGE).hex()}
        answer = client.ask("eth_estimateGas", call)
        assert isinstance(answer, str) == (status == "0x1"), answer
        trace = client.ask("debug_traceTransaction", sent, {"tracer": "callTracer"})
        assert ("error" in trace) == (status == "0x0")
        check_by_import(chain, tmp_path / "imported")


def test_code_that_creates_may_be_twice_as_long(tmp_path: Path) -> None:
    large, larger = creation(1).ljust(2 * LARGE, b"\0"), creation(1).ljust(2 * LARGE + 1, b"\0")
    with dev_service(tmp_path, genesis=genesis(code_size=LARGE)) as (chain, client):
        chain.submit(send(ALICE, 0, None, 0, data=large, gas=3_000_000))
        assert client.ask("eth_blockNumber") == "0x1"
        with pytest.raises(InitCodeTooLarge, match="limit 80000"):
            chain.submit(send(ALICE, 1, None, 0, data=larger, gas=3_000_000))
        found = client.ask("eth_call", {"data": "0x" + larger.hex()})
        assert "code size 80001 limit 80000" in found["message"]
        check_by_import(chain, tmp_path / "imported")


def test_the_limit_is_part_of_the_genesis_file() -> None:
    written = read_genesis(genesis_text(genesis(code_size=LARGE)))
    assert written.profile.code_size == LARGE
    assert read_genesis(genesis_text(genesis())).profile.code_size is None


def test_the_deployer_can_be_left_out() -> None:
    assert DETERMINISTIC_DEPLOYER in genesis().accounts
    assert DETERMINISTIC_DEPLOYER not in genesis(create2_deployer=False).accounts
