"""The genesis of a dev chain; its file begins the same chain."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from foreblock._engine import Header, Store
from foreblock.errors import BadGenesis, DifferentGenesis
from foreblock.ledger.genesis.genesis_file import (
    Genesis,
    GenesisAccount,
    genesis_text,
    read_genesis,
)
from foreblock.ledger.rules.check import EMPTY_ROOT
from foreblock.ledger.rules.execution import HISTORY_STORAGE
from foreblock.ledger.rules.fees import decode_extra_data, next_optimism_base_fee
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.dev_genesis import DENOMINATOR, ELASTICITY, dev_genesis, read_dev_genesis
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.sequencer.predeploys import TOKEN
from foreblock.settings import LARGEST_BALANCE, ChainSettings
from support.chains.builder import ChainBuilder
from support.chains.importing import import_bytes
from support.chains.profiles import OSAKA
from support.payloads.dev_state import COINBASE, Attributes, attributes_deposit

DEFAULT = ChainSettings()
GENESIS = dev_genesis(DEFAULT)
BLOCK_0 = "d07f003baac44f40aaa0b754152486b654a91f90183e4415888bb7a8b498881c"


def first_header(folder: Path, genesis: Genesis) -> Header:
    with Store(str(folder), write=True) as store:
        begin_chain(store, genesis)
        with store.view() as view:
            header, _ = read_header(view, 0)
            return header


def test_header_of_block_0(tmp_path: Path) -> None:
    header = first_header(tmp_path, GENESIS)
    assert header.beneficiary.hex() == "4200000000000000000000000000000000000011"
    assert header.extra_data.hex() == "010000006400000005000000003b9aca00"
    assert (header.base_fee_per_gas, header.gas_limit) == (10**9, 400_000_000)
    assert (header.blob_gas_used, header.excess_blob_gas) == (0, 0)
    assert header.withdrawals_root not in (None, EMPTY_ROOT)
    assert header.parent_beacon_block_root == bytes(32)
    assert header.timestamp == 1_767_225_600


def test_block_0_of_the_default_chain_is_always_the_same(tmp_path: Path) -> None:
    """Stored chains begin with it: a changed hash would break them on upgrade."""
    assert first_header(tmp_path, GENESIS).hash.hex() == BLOCK_0


def test_file_begins_the_same_chain(tmp_path: Path) -> None:
    text = genesis_text(GENESIS)
    read = read_dev_genesis(text)
    assert read == GENESIS
    assert first_header(tmp_path / "made", GENESIS) == first_header(tmp_path / "read", read)


def test_store_knows_its_genesis_from_the_file(tmp_path: Path) -> None:
    first_header(tmp_path, GENESIS)
    first_header(tmp_path, read_dev_genesis(genesis_text(GENESIS)))
    with pytest.raises(DifferentGenesis, match="accounts"):
        first_header(tmp_path, structs.replace(GENESIS, accounts={}))


options = st.builds(
    ChainSettings,
    chain_id=st.integers(1, 2**63 - 37),
    timestamp=st.integers(1, 2**63 - 1),
    gas_limit=st.integers(2_000_000, 2**63 - 1),
    base_fee=st.integers(0, 2**63 - 1),
    accounts=st.integers(1, 3),
    balance=st.integers(1, LARGEST_BALANCE),
)


@given(options)
def test_file_of_any_options_is_read_as_what_it_was(choice: ChainSettings) -> None:
    genesis = dev_genesis(choice)
    assert read_genesis(genesis_text(genesis)) == genesis
    fees = decode_extra_data(genesis.extra_data, OptimismFork.JOVIAN)
    assert (fees.denominator, fees.elasticity) == (DENOMINATOR, ELASTICITY)
    assert fees.minimum_base_fee == genesis.base_fee == choice.base_fee
    assert genesis.profile.chain_id == choice.chain_id


def test_idle_chain_keeps_its_base_fee(tmp_path: Path) -> None:
    header = first_header(tmp_path, GENESIS)
    for used, fee in (
        (0, 10**9),
        (50_000, 10**9),
        (80_000_000, 10**9),
        (400_000_000, 1_040_000_000),
    ):
        parent = header.replace(gas_used=used)
        assert next_optimism_base_fee(parent, GENESIS.rules, (5, 100)) == fee


def test_chain_goes_on_from_its_file(tmp_path: Path) -> None:
    """Two blocks with only their attributes: they import, and prices do not rise."""
    text = genesis_text(GENESIS)
    chain = ChainBuilder(tmp_path / "built", text)
    for number in (1, 2):
        attributes = attributes_deposit(Attributes(number=number)).raw
        block = chain.add([attributes], beneficiary=COINBASE)
        assert block.header.base_fee_per_gas == 10**9
        assert 0 < block.header.gas_used < 200_000
    blocks = b"".join(block.encode() for block in chain.blocks)
    assert import_bytes(tmp_path / "imported", text, blocks).blocks == 2
    state = chain.store.view().state(2)
    assert state.storage(L1_BLOCK, 0) & (2**64 - 1) == 2
    assert state.storage(HISTORY_STORAGE, 1) == int.from_bytes(chain.blocks[0].hash)


def test_newest_fork_that_is_in_use_is_in_force_from_the_start() -> None:
    assert GENESIS.rules.engine_name == "optimism:Jovian"


def test_accounts_are_funded_as_chosen() -> None:
    words = "abandon " * 11 + "about"
    genesis = dev_genesis(replace(DEFAULT, mnemonic=words, accounts=3, balance=7))
    funded = {address for address, each in genesis.accounts.items() if each.balance}
    assert funded == {each.address for each in dev_accounts(words, 3)}
    # The first account of this mnemonic in every wallet.
    first = bytes.fromhex("9858effd232b4033e47d90003d41ec34ecaeda94")
    assert genesis.accounts[first] == GenesisAccount(balance=7 * 10**18)


def test_token_is_there_and_accounts_have_the_default_balance() -> None:
    assert TOKEN in GENESIS.accounts
    owners = [each.address for each in dev_accounts(TEST_MNEMONIC, 10)]
    assert all(GENESIS.accounts[owner].balance == 10_000 * 10**18 for owner in owners)


def test_mnemonic_is_not_shown() -> None:
    assert "junk" not in repr(DEFAULT)


def test_file_must_be_one_that_the_sequencer_can_go_on_from() -> None:
    document = json.loads(genesis_text(GENESIS))
    ethereum = document | {"config": OSAKA}
    before = document | {"config": document["config"] | {"jovianTime": 1 << 40}}
    before["extraData"] = document["extraData"][:20].replace("0x01", "0x00")
    mined = ethereum | {"config": OSAKA | {"terminalTotalDifficulty": 1}}
    for text, why in (
        (ethereum, "blocks of Prague need the contract 0x00000961"),
        (before, "Jovian has to be in force at block 0, or never"),
        (mined, "a dev chain needs a chain after the merge"),
    ):
        with pytest.raises(BadGenesis, match=why):
            read_dev_genesis(json.dumps(text).encode())


def test_docs_name_every_contract(checkout: Path) -> None:
    text = (checkout / "docs" / "dev-chain.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(0x\w{40})` \|", text, flags=re.MULTILINE))
    contracts = {address for address, each in GENESIS.accounts.items() if each.code}
    assert documented == {checksum_address(address) for address in contracts}


def test_docs_show_defaults_that_no_setting_shows(checkout: Path) -> None:
    text = (checkout / "docs" / "dev-chain.md").read_text("utf-8")
    assert f"    {DEFAULT.mnemonic}\n" in text
    assert f"elasticity ({ELASTICITY}) and denominator ({DENOMINATOR})" in text
