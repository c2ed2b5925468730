"""The chain of the benchmark equals the result of its builder, and matches the requests'
assumptions.
"""

from pathlib import Path

from foreblock._engine import decode_transactions, keccak256
from foreblock.bench.rpc import chain
from foreblock.ledger.importing.importer import import_files
from support.chains import bench_chain
from support.payloads import signing


def test_blocks_are_those_of_the_builder(tmp_path: Path) -> None:
    assert bench_chain.build(tmp_path) == chain.BLOCKS.read_bytes()


def test_chain_imports(tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_bytes(chain.genesis())
    imported = import_files(genesis, chain.BLOCKS, tmp_path / "store", None, lambda _: None)
    assert imported.progress.transactions == chain.TRANSFERS + chain.LOGS + 1
    assert imported.heads.latest is not None
    assert imported.heads.latest[0] == chain.FULL_BLOCK + 2


def test_signer_makes_the_signature_of_the_specification() -> None:
    """EIP-155's example: key 0x46…46, the signed hash, and r and s as published there."""
    digest = bytes.fromhex("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53")
    parity, r, s = signing.sign(bench_chain.KEY, digest)
    assert parity == 0
    assert r == 0x28EF61340BD939BC2195FE537567866003E1A15D3C71FF63E1590620AA636276
    assert s == 0x67CBE9D8997F761AECB703304B3800CCF555C9F3DC64214B297FB1966A3B6D83


def test_sender_is_recovered_by_the_engine() -> None:
    assert signing.address(bench_chain.KEY) == chain.SENDER
    (transaction,) = decode_transactions([bench_chain.transfer(7, 8)])
    assert (transaction.sender, transaction.nonce) == (chain.SENDER, 7)
    assert transaction.hash == keccak256(bench_chain.transfer(7, 8))
