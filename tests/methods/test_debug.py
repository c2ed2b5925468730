"""debug_getRawBlock against the bytes that were imported."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock._engine import decode_block
from foreblock.ledger.reading.view import Ledger
from support.chains.preconfirming import PreconfirmingChain
from support.servers.asking import Asker, asker, error


def test_every_block_comes_as_the_bytes_that_were_imported(
    preconf: Asker, long_chain: ChainFiles
) -> None:
    for number, item in enumerate(long_chain.items(), start=1):
        by_number = preconf.ask("debug_getRawBlock", hex(number))
        assert bytes.fromhex(by_number[2:]) == item
        block, _ = decode_block(item)
        assert preconf.ask("debug_getRawBlock", f"0x{block.hash.hex()}") == by_number


def test_block_zero_has_bytes_too(preconf: Asker) -> None:
    text = preconf.ask("debug_getRawBlock", "0x0")
    block, _ = decode_block(bytes.fromhex(text[2:]))
    assert f"0x{block.hash.hex()}" == preconf.ask("eth_getBlockByNumber", "0x0", False)["hash"]


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        (["0xffff"], -32000, "header not found"),
        (["0x" + "ab" * 32], -32000, "header for hash not found"),
        ([], -32602, "missing value for required argument 0 (block)"),
        ([None], -32602, "invalid argument 0: block is required, found null"),
        (["latest", True], -32602, "too many arguments, want at most 1"),
    ],
)
def test_what_is_not_there_is_an_error(
    preconf: Asker, params: list[object], code: int, message: str
) -> None:
    assert preconf.ask("debug_getRawBlock", *params) == error(code, message)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def test_a_block_made_of_flashblocks_is_one_block(chain: PreconfirmingChain) -> None:
    chain.begin()
    chain.extend([chain.pay(), chain.pay()])
    partial = chain.extend([chain.pay()])
    with asker(Ledger(chain.store)) as client:
        text = client.ask("debug_getRawBlock", f"0x{partial.diff.block_hash.hex()}")
        block, _ = decode_block(bytes.fromhex(text[2:]))
        assert block.hash == partial.diff.block_hash
        assert len(block.transactions) == 4
    chain.begin()
    with asker(Ledger(chain.store)) as client:
        text = client.ask("debug_getRawBlock", "0x1")
        sealed, _ = decode_block(bytes.fromhex(text[2:]))
        assert sealed.hash == chain.writer.latest.hash
        assert sealed.transactions == block.transactions
