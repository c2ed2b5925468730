"""A genesis that is written is the genesis that was read."""

from dataclasses import replace
from pathlib import Path

from conftest import ChainFiles
from foreblock.ledger.genesis.genesis_file import Genesis, genesis_text, read_genesis


def read_again(path: Path) -> Genesis:
    read = read_genesis(path.read_bytes())
    assert read_genesis(genesis_text(read)) == read
    return read


def test_file_of_an_early_fork_states_no_later_fields(example: ChainFiles) -> None:
    assert read_again(example.genesis).base_fee is None
    text = genesis_text(read_genesis(example.genesis.read_bytes()))
    assert b"baseFeePerGas" not in text


def test_published_genesis_is_written_whole(published: ChainFiles) -> None:
    assert len(read_again(published.genesis).accounts) == 27


def test_text_is_the_same_however_accounts_were_ordered(example: ChainFiles) -> None:
    read = read_genesis(example.genesis.read_bytes())
    turned = dict(reversed(read.accounts.items()))
    assert list(turned) != list(read.accounts)
    assert genesis_text(replace(read, accounts=turned)) == genesis_text(read)
