"""anvil_mine with intervals between blocks, and the base fee set for the next block."""

from pathlib import Path

import pytest

from foreblock.ledger.rules.transaction_rules import checksum_address
from support.chains.dev_chain import ACCOUNTS, GWEI, send
from support.chains.dev_service import dev_service
from support.servers.asking import Asker

PAYER = ACCOUNTS[1]
PAYMENT = {"from": f"0x{PAYER.address.hex()}", "to": f"0x{PAYER.address.hex()}", "gas": "0x5208"}


@pytest.mark.parametrize(
    ("params", "apart"), [(["0x3"], 9), (["0x3", "0x0"], 9), (["0x3", 0], 9), (["0x3", "0x4"], 4)]
)
def test_blocks_are_as_far_apart_as_was_set_unless_it_is_said(
    tmp_path: Path, params: list[object], apart: int
) -> None:
    """viem's test client sends 0 if no interval is given."""
    with dev_service(tmp_path / "store") as (_, client):
        client.ask("anvil_setBlockTimestampInterval", 9)
        client.ask("anvil_mine", *params)
        times = [
            int(client.ask("eth_getBlockByNumber", hex(number), False)["timestamp"], 16)
            for number in (2, 3)
        ]
    assert times[1] - times[0] == apart


def test_results_are_those_of_anvil(tmp_path: Path) -> None:
    with dev_service(tmp_path / "store") as (_, client):
        assert client.ask("evm_setAutomine", False) is None
        assert client.ask("evm_setIntervalMining", 5) is None
        assert client.ask("anvil_setBlockTimestampInterval", 9) is None
        removed = [client.ask("anvil_removeBlockTimestampInterval") for _ in range(2)]
    assert removed == [True, False]


@pytest.mark.parametrize("like_anvil", [True, False])
def test_senders_in_the_pool_are_written_as_by_anvil_or_by_geth(
    tmp_path: Path, *, like_anvil: bool
) -> None:
    chain = dev_service(tmp_path / "store", shows_sealed=like_anvil, mining="manual")
    lower = f"0x{PAYER.address.hex()}"
    spelled = lower if like_anvil else checksum_address(PAYER.address)
    with chain as (_, client):
        sent = send(PAYER, 0, PAYER.address)
        client.ask("eth_sendRawTransaction", f"0x{sent.raw.hex()}")
        assert list(client.ask("txpool_content")["pending"]) == [spelled]
        inspected = client.ask("txpool_inspect")["pending"]
        assert list(inspected) == [spelled]
        assert inspected[spelled]["0"].startswith(f"{spelled}: 1 wei")
        assert client.ask("txpool_content")["pending"][spelled]["0"]["from"] == lower


def history(client: Asker) -> int:
    return int(client.ask("eth_feeHistory", "0x1", "latest", [50])["baseFeePerGas"][-1], 16)


def base_fee(client: Asker) -> int:
    return int(client.ask("eth_baseFee"), 16)


def price(client: Asker) -> int:
    return int(client.ask("eth_gasPrice"), 16)


def filled(client: Asker) -> int:
    return int(client.ask("eth_fillTransaction", PAYMENT)["tx"]["maxFeePerGas"], 16)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("fee", [0, 7, GWEI // 2, 50 * GWEI])
def test_a_base_fee_that_was_set_is_predicted(tmp_path: Path, fee: int, *, sealed: bool) -> None:
    """A transaction with any of the suggested fees is sealed."""
    with dev_service(tmp_path / "store", sealed=sealed) as (chain, client):
        assert history(client) != fee
        for nonce, suggested in enumerate((history, base_fee, price, filled)):
            client.ask("hardhat_setNextBlockBaseFeePerGas", hex(fee))
            assert history(client) == base_fee(client) == fee
            sent = send(PAYER, nonce, tip=0, cap=suggested(client))
            assert (
                client.ask("eth_sendRawTransaction", f"0x{sent.raw.hex()}")
                == f"0x{sent.hash.hex()}"
            )
            assert sent.raw in chain.sealed()[-1].transactions
            latest = client.ask("eth_getBlockByNumber", "latest", False)
            assert latest["baseFeePerGas"] == hex(fee)
