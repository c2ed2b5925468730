"""Accounts edited by hand: a separate index, visible at `latest`, correct roots."""

from pathlib import Path

import pytest

from foreblock.bus.commands import AddBalance, IncreaseTime, Mine, SetAccount, SetMining
from foreblock.errors import RefusedCommand
from foreblock.ledger.reading.blocks import ByIndex
from foreblock.ledger.reading.view import Ledger
from foreblock.sequencer.block_changes import MOST_EDITED
from support.chains.dev_chain import ACCOUNTS, ETHER, DevChain, indices, send
from support.chains.whole_state import check_roots

ALICE, BOB = ACCOUNTS[:2]
SOMEBODY = b"\xab" * 20
CODE = bytes.fromhex("60005460005260206000f3")  # returns its slot 0


def word(value: int) -> bytes:
    return value.to_bytes(32)


def balance_at(chain: DevChain, name: object, address: bytes = SOMEBODY) -> int:
    ledger = Ledger(chain.store, clock=chain.clock)
    view = ledger.view()
    try:
        return view.state(view.resolve(name)).balance(address)  # type: ignore[arg-type]
    finally:
        view.close()


def test_a_state_edit_is_an_index_without_transactions(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, word(7)))
    assert indices(auto.published) == [(1, 0), (1, 1)]
    first, second = auto.published
    assert second.diff.transactions == ()
    assert second.diff.block_hash != first.diff.block_hash, "a hash names one state"
    assert (balance_at(auto, ByIndex(1, 0)), balance_at(auto, ByIndex(1, 1))) == (0, 7)


@pytest.mark.parametrize("mining", ["automine", "manual"])
def test_latest_is_read_through_state_edits(tmp_path: Path, mining: str) -> None:
    chain = DevChain(tmp_path / "store", mining=mining)  # type: ignore[arg-type]
    chain.execute(SetAccount(SOMEBODY, word(7)))
    names = ("latest", "pending", 0)
    assert [balance_at(chain, name) for name in names] == [7, 7, 0]
    chain.execute(Mine())
    assert [balance_at(chain, name) for name in ("latest", 1, 0)] == [7, 7, 0]


def test_by_the_clock_the_seal_brings_state_edits_to_latest(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.run(500)
    chain.execute(SetAccount(SOMEBODY, word(7)))
    assert [balance_at(chain, name) for name in ("latest", "pending")] == [0, 7]
    chain.run(2_000)
    assert balance_at(chain, "latest") == 7


def test_transactions_after_a_state_edit_do_not_hide_it(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    chain.execute(SetAccount(SOMEBODY, word(7)))
    chain.submit(send(ALICE, 0, SOMEBODY, 5))
    chain.run(1_000)
    assert [balance_at(chain, name) for name in ("latest", "pending")] == [7, 12]
    chain.execute(SetAccount(SOMEBODY, word(100)))
    assert [balance_at(chain, name) for name in ("latest", "pending")] == [7, 100]
    chain.execute(Mine())
    assert balance_at(chain, "latest") == 100
    check_roots(chain)


def test_a_block_that_is_begun_anew_keeps_its_state_edits(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, word(7), storage={word(1): word(2)}))
    auto.execute(SetAccount(SOMEBODY, nonce=3, storage={word(1): word(5)}))
    auto.execute(IncreaseTime(3_600))
    assert balance_at(auto, "latest") == 7
    auto.run(5_000)
    auto.submit(send(ALICE, 0))
    with auto.store.view() as view:
        state = view.state(1)
        assert (state.balance(SOMEBODY), state.nonce(SOMEBODY)) == (7, 3)
        assert state.storage(SOMEBODY, 1) == 5
    assert auto.sealed()[0].header.timestamp >= auto.clock.wall_ns() // 10**9 + 3_600 - 1
    check_roots(auto)


def test_a_transaction_can_run_at_once_after_an_edit(auto: DevChain) -> None:
    """A transaction with a nonce gap is mined when an edit sets its sender's nonce."""
    auto.submit(send(ALICE, 5))
    assert auto.sealed() == []
    auto.execute(SetAccount(ALICE.address, nonce=5))
    auto.run_until_idle()
    assert len(auto.sealed()) == 1
    check_roots(auto)


def test_nonces_never_fall_and_balances_have_256_bits(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, nonce=5))
    with pytest.raises(RefusedCommand, match="New nonce \\(4\\) must not be smaller"):
        auto.execute(SetAccount(SOMEBODY, nonce=4))
    auto.execute(SetAccount(SOMEBODY, word(2**256 - 1)))
    auto.execute(AddBalance(SOMEBODY, word(1)))
    assert balance_at(auto, "latest") == 2**256 - 1, "as anvil has it"


def test_a_killed_chain_goes_on_with_its_state_edits(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, word(7)))
    auto.execute(AddBalance(SOMEBODY, word(3)))
    auto.kill()
    auto.open()
    assert balance_at(auto, "latest") == 10
    auto.run(5_000)
    auto.execute(Mine())
    assert balance_at(auto, 1) == 10
    check_roots(auto)


def test_many_state_edits_are_put_together(auto: DevChain) -> None:
    """No block has more indices than followers accept, for any number of edits."""
    for slot in range(2 * MOST_EDITED + 50):
        auto.execute(SetAccount(SOMEBODY, storage={word(slot): word(slot + 1)}))
    assert max(each.index for each in auto.published) <= MOST_EDITED
    auto.execute(SetMining("manual"))
    auto.execute(Mine())
    with auto.store.view() as view:
        values = [view.state(1).storage(SOMEBODY, slot) for slot in range(2 * MOST_EDITED + 50)]
    assert values == [slot + 1 for slot in range(2 * MOST_EDITED + 50)]
    check_roots(auto)


@pytest.mark.parametrize("fault", ["restart=0.5", "tail=0.5", "reorg=0.5"])
def test_faults_lose_no_state_edit(tmp_path: Path, fault: str) -> None:
    chain = DevChain(tmp_path / "store", faults=(fault,))
    for value in range(1, 12):
        chain.run(900)
        chain.execute(SetAccount(SOMEBODY, word(value)))
        assert balance_at(chain, "pending") == value
        chain.run(300)
        assert balance_at(chain, "pending") == value
    chain.run(4_000)
    assert balance_at(chain, "latest") == 11
    check_roots(chain)


def test_nothing_set_to_zero_is_no_account(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, word(0)))
    auto.execute(Mine())
    with auto.store.view() as view:
        assert view.state(1).account(SOMEBODY) is None
    check_roots(auto)


def test_code_is_run_and_paid_for(auto: DevChain) -> None:
    auto.execute(SetAccount(SOMEBODY, code=CODE, storage={word(0): word(42)}))
    auto.execute(SetAccount(b"\xcd" * 20, word(ETHER)))
    auto.submit(send(ALICE, 0, SOMEBODY, 0, gas=50_000))
    assert len(auto.sealed()) == 1
    check_roots(auto)
