"""Many blocks mined at once: the same stored rows, and no slowdown afterwards."""

from pathlib import Path

import pytest

from foreblock.bus.commands import Mine, Revert, TakeSnapshot
from foreblock.ledger.building.chain_rewriting import FEW_NODES, LONG
from foreblock.ledger.building.parent_state import OpenTrie, StateRoots
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.ledger.storage.dev_rows import Mining
from foreblock.sequencer.sequencer import MOST_STACKED
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, genesis_of, send
from support.payloads.bytecode import code

ALICE, BOB = ACCOUNTS[:2]


def not_folded(chain: DevChain) -> int:
    with chain.store.view() as view:
        assert view.heads.latest is not None
        return view.heads.latest[0] - view.heads.folded


@pytest.mark.parametrize("rules", ["optimism", "ethereum"])
def test_blocks_of_a_long_run_pass_the_rules_of_the_import(tmp_path: Path, rules: str) -> None:
    chain = DevChain(tmp_path / "store", genesis=genesis_of(rules), mining="manual")
    chain.submit(send(ALICE, 0))
    chain.execute(Mine(blocks=2 * MOST_STACKED, interval=3))
    chain.submit(send(ALICE, 1), send(BOB, 0))
    chain.execute(Mine(blocks=2 * LONG))
    chain.kill()
    chain.open()
    chain.submit(send(BOB, 1))
    chain.execute(Mine())
    assert chain.latest_balance(NOBODY) == 4
    check_by_import(chain, tmp_path / "imported")


def test_a_long_run_is_folded_with_its_commit(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    chain.execute(Mine(blocks=LONG - 1))
    assert not_folded(chain) == LONG - 1
    chain.execute(Mine(blocks=LONG))
    assert not_folded(chain) == 0


def test_no_view_of_the_store_is_open_for_long(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    for nonce in range(2 * MOST_STACKED):  # within a second, so that no block is restarted
        chain.submit(send(ALICE, nonce))
        assert chain.sequencer.builder.block.stacked < MOST_STACKED
    chain.execute(Mine(blocks=3 * MOST_STACKED))
    assert chain.sequencer.builder.block.stacked == 0
    chain.submit(send(ALICE, 2 * MOST_STACKED))
    assert chain.latest_balance(NOBODY) == 2 * MOST_STACKED + 1
    check_by_import(chain, tmp_path / "imported")


# Sets the slot of its block, and clears that of the third block before it.
STORING = bytes.fromhex(
    code("NUMBER", "NUMBER", "SSTORE", 0, 3, "NUMBER", "SUB", "SSTORE").removeprefix("0x")
)
STORE = bytes.fromhex(
    code(STORING, 0, "MSTORE", len(STORING), 32 - len(STORING), "RETURN").removeprefix("0x")
)


@pytest.mark.parametrize("rules", ["optimism", "ethereum"])
@pytest.mark.parametrize("few_nodes", [FEW_NODES, 0])
def test_a_trie_that_goes_on_from_block_to_block_has_the_roots_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, few_nodes: int
) -> None:
    monkeypatch.setattr("foreblock.ledger.building.chain_rewriting.FEW_NODES", few_nodes)
    restart, restarts = StateRoots.restart, list[StateRoots]()

    def counted(roots: StateRoots, open_trie: OpenTrie) -> None:
        restarts.append(roots)
        restart(roots, open_trie)

    monkeypatch.setattr(StateRoots, "restart", counted)
    chain = DevChain(
        tmp_path / "store",
        genesis=genesis_of(rules),
        mining="automine",
        keep_states=8,
        keep_partials=4,
    )
    chain.submit(send(ALICE, 0, None, data=STORE, gas=100_000))
    contract = created_address(ALICE.address, 0)
    count = MOST_STACKED + 20
    for nonce in range(1, count):
        chain.submit(send(ALICE, nonce, contract, 0, gas=100_000))
        if nonce % 7 == 0:
            chain.run(20)  # in which old states and their nodes are removed
        if nonce == MOST_STACKED // 2:
            chain.execute(Revert(chain.execute(TakeSnapshot())))
    assert len(restarts) >= count if few_nodes == 0 else len(restarts) < count // 10
    check_by_import(chain, tmp_path / "imported")


@pytest.mark.parametrize("mining", ["automine", "manual"])
def test_nor_while_nothing_is_sent(tmp_path: Path, mining: Mining) -> None:
    chain = DevChain(tmp_path / "store", mining=mining)
    before = chain.sequencer.builder.block
    chain.run(20_000)
    after = chain.sequencer.builder.block
    assert after is not before
    assert after.header == before.header
    chain.submit(send(ALICE, 0))
    chain.run(20_000)
    chain.execute(Mine())
    assert chain.latest_balance(NOBODY) == 1
    check_by_import(chain, tmp_path / "imported")
