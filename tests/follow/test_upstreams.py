"""Other implementations serve as upstreams: they support a follower's requests, with proofs."""

from pathlib import Path

import pytest

from follow.test_witness_upstream import check
from follow.upstreams import anvil_upstream, ask, geth_upstream
from follow.witness_files import data, header_hash
from foreblock._engine import keccak256
from support.servers.dev_processes import Dev

LATEST = 54  # of the published chain
ANCHOR = 20  # the anchor of its follower
HISTORY = "0x0000f90827f1c53a10cb7a02335b175320002935"  # from Prague on
RICH = "0x" + "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"


def test_geth_proves_the_published_chain_at_every_block(conformance: Path, tmp_path: Path) -> None:
    with geth_upstream(conformance, tmp_path / "geth") as url:
        assert ask(url, "eth_blockNumber") == hex(LATEST)
        for number in (ANCHOR, LATEST):
            block = ask(url, "eth_getBlockByNumber", hex(number), True)
            assert "0x" + header_hash(block).hex() == block["hash"]
            raw = ask(url, "debug_getRawHeader", hex(number))
            assert "0x" + keccak256(data(raw)).hex() == block["hash"]
        proof = ask(url, "eth_getProof", HISTORY, ["0x0"], block["hash"])
        check(data(block["stateRoot"]), HISTORY, proof)


def test_anvil_proves_the_latest_block() -> None:
    with anvil_upstream() as url:
        ask(url, "anvil_mine", "0x1")  # the first block has the root of an empty state
        block = ask(url, "eth_getBlockByNumber", "latest", False)
        check(data(block["stateRoot"]), RICH, ask(url, "eth_getProof", RICH, [], "latest"))


@pytest.mark.heavy
def test_anvil_forks_a_dev_chain(upstream: Dev) -> None:
    with anvil_upstream("--fork-url", upstream.main.url, "--no-storage-caching") as url:
        assert ask(url, "eth_chainId") == upstream.main.ask("eth_chainId")
        assert ask(url, "eth_getBalance", RICH, "latest") == upstream.main.ask(
            "eth_getBalance", RICH, ask(url, "eth_blockNumber")
        )
