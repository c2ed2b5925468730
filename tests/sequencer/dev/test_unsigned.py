"""Transactions without a signature on a dev chain: order, nonces, storage."""

from pathlib import Path

import pytest

from foreblock.bus.commands import (
    DropTransactions,
    Impersonate,
    ImpersonateAll,
    Mine,
    SendUnsigned,
    SetMining,
)
from foreblock.errors import RefusedCommand
from foreblock.ledger.rules.transaction_rules import is_from_user, unsigned_nonce
from foreblock.sequencer.commands.pool import MOST_IMPERSONATED
from foreblock.sequencer.saved_pool import save_pool, saved_pool
from foreblock.settings import ChainSettings
from foreblock.types import Transaction, decode_transactions
from sequencer.faults.test_chain_faults import Follow
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, GWEI, NOBODY, DevChain, send

ALICE, BOB = ACCOUNTS[:2]
STRANGER = b"\xaa" * 20
# A contract that creates an empty one on each call, so that its nonce rises.
CREATOR = bytes.fromhex("600060006000f000")
DEPLOY_CREATOR = bytes.fromhex("67") + CREATOR + bytes.fromhex("60005260086018f3")


def unsigned(
    sender: bytes = STRANGER, value: int = 0, nonce: int | None = None, gas: int = 50_000
) -> SendUnsigned:
    return SendUnsigned(sender, NOBODY, value.to_bytes(32), b"", gas, nonce, is_allowed=True)


def transactions(chain: DevChain) -> list[list[Transaction]]:
    """The users' transactions in each sealed block."""
    return [
        [each for each in decode_transactions(list(block.transactions)) if is_from_user(each)]
        for block in chain.sealed()
    ]


def test_nobody_sends_for_another_who_is_not_impersonated(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    asked = SendUnsigned(STRANGER, NOBODY, bytes(32), b"", 50_000)
    with pytest.raises(RefusedCommand, match="No Signer available"):
        chain.execute(asked)
    chain.execute(Impersonate(STRANGER))
    assert isinstance(chain.execute(asked), bytes)
    chain.execute(Impersonate(STRANGER, is_on=False))
    with pytest.raises(RefusedCommand):
        chain.execute(asked)
    chain.execute(ImpersonateAll(is_on=True))
    assert isinstance(chain.execute(asked), bytes)


def test_signed_and_unsigned_ones_of_an_account_take_turns(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    chain.submit(send(ALICE, 0), send(ALICE, 2))
    chain.execute(unsigned(ALICE.address, nonce=1))
    chain.execute(unsigned(ALICE.address))
    chain.execute(Mine())
    ((*four,),) = transactions(chain)
    nonces = [found if (found := unsigned_nonce(each)) is not None else each.nonce for each in four]
    assert nonces == [0, 1, 2, 3]
    check_by_import(chain, tmp_path / "check")


def test_equal_chains_give_equal_hashes_and_no_two_are_equal(tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "other"):
        chain = DevChain(tmp_path / name, mining="automine")
        hashes.append([chain.execute(unsigned()) for _ in range(5)])
        chain.kill()
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 5


def test_a_follower_verifies_them(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    follow = Follow(tmp_path / "follower", chain)
    chain.execute(unsigned())
    chain.submit(send(ALICE, 0, STRANGER, 100))
    chain.execute(SetMining("clock", 2))
    chain.execute(unsigned(value=30))
    chain.submit(send(BOB, 0))
    chain.run(5_000)
    follow.receive(chain.published)
    for block in chain.sealed():
        follow.follower.canonical(block)
    assert follow.follower.counters.get("Diverged", 0) == 0
    with follow.store.view() as view:
        assert view.heads.latest is not None
        number, found = view.heads.latest
        assert (number, found) == (len(chain.sealed()), chain.sealed()[-1].header.hash)
        assert view.state(number).balance(STRANGER) == 70
    follow.close()


def test_one_does_not_replace_another(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    assert isinstance(chain.execute(unsigned(nonce=0)), bytes)
    assert chain.execute(unsigned(nonce=0)) == "already known"
    assert chain.execute(unsigned(nonce=0, gas=60_000)) == "replacement transaction underpriced"


def test_a_nonce_that_is_passed_meanwhile_is_dropped(tmp_path: Path) -> None:
    """Execution of a deposit does not check its nonce: the sequencer must."""
    chain = DevChain(tmp_path / "store", mining="manual")
    chain.submit(send(ALICE, 0, None, 0, data=DEPLOY_CREATOR, gas=200_000))
    chain.execute(Mine())
    with chain.store.view() as view:
        state = view.state(1)
        (creator,) = (
            address
            for address, account in state.accounts(None, 1000)
            if state.code(address) == CREATOR
        )
        assert state.nonce(creator) == 1
    # A transaction with a higher fee runs first, and the contract creates another one: its nonce is
    # then 2.
    late = chain.execute(unsigned(creator))
    chain.submit(send(BOB, 0, creator, 0, gas=200_000, tip=5 * GWEI))
    chain.execute(Mine())
    assert [each.sender for each in transactions(chain)[-1]] == [BOB.address]
    assert late not in {each.hash for each in chain.sequencer.builder.pooled()}
    assert isinstance(chain.execute(unsigned(creator)), bytes)
    chain.execute(Mine())
    assert [each.sender for each in transactions(chain)[-1]] == [creator]
    check_by_import(chain, tmp_path / "check")


def test_value_that_is_spent_meanwhile_is_not_sent(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    chain.submit(send(ALICE, 0, STRANGER, 100))
    chain.execute(Mine())
    assert isinstance(chain.execute(unsigned(value=60)), bytes)
    assert "insufficient funds" in chain.execute(unsigned(value=60))
    chain.execute(Mine())
    assert chain.latest_balance(STRANGER) == 40
    check_by_import(chain, tmp_path / "check")


def test_they_go_back_to_the_pool_with_a_block_that_is_given_up(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", faults=("restart=0.5", "tail=0.5", "reorg=0.3"))
    sent = []
    for _ in range(12):
        sent.append(chain.execute(unsigned()))
        chain.run(900)
    chain.run(20_000)
    found = [each for block in transactions(chain) for each in block]
    assert [each.hash for each in found] == sent
    check_by_import(chain, tmp_path / "check")


def test_they_are_saved_with_the_pool(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    sent = [chain.execute(unsigned()) for _ in range(3)]
    save_pool(tmp_path / "pool", chain.sequencer.builder.pooled())
    chain.kill()
    chain.open()
    with saved_pool(tmp_path / "pool") as saved:
        chain.submit(*saved)
    chain.execute(Mine())
    assert [each.hash for each in transactions(chain)[-1]] == sent


def test_impersonation_outlives_a_kill(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    chain.execute(Impersonate(STRANGER))
    chain.execute(ImpersonateAll(is_on=True))
    chain.kill()
    chain.open()
    assert chain.sequencer.mining.state.impersonated == (STRANGER,)
    assert chain.sequencer.mining.state.impersonates_all


def test_impersonated_accounts_have_a_limit(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    some = tuple(number.to_bytes(20) for number in range(MOST_IMPERSONATED))
    chain.sequencer.mining.change(impersonated=some)
    with pytest.raises(RefusedCommand, match="1000 accounts are impersonated, which is the most"):
        chain.execute(Impersonate(STRANGER))
    chain.execute(Impersonate(some[0]))
    assert chain.sequencer.mining.state.impersonated == some


# --- The pool ----------------------------------------------------------------------------


def test_what_is_dropped_makes_later_ones_wait(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual")
    three = [send(ALICE, nonce) for nonce in range(3)]
    chain.submit(*three)
    assert chain.execute(DropTransactions(hash=three[1].hash)) == [three[1].hash]
    chain.execute(Mine())
    assert transactions(chain) == [[three[0]]]
    assert list(chain.sequencer.builder.pooled()) == [three[2]]
    assert chain.execute(DropTransactions(hash=b"\1" * 32)) == []
    assert chain.execute(DropTransactions(sender=ALICE.address)) == [three[2].hash]
    assert chain.execute(DropTransactions()) == []


def test_the_first_to_come_goes_first(tmp_path: Path) -> None:
    """With the order `fifo`, regardless of fees; each account still in nonce order."""
    chain = DevChain(tmp_path / "store", ChainSettings(order="fifo"), mining="manual")
    cheap, dear = send(ALICE, 0, tip=1), send(BOB, 0, tip=GWEI)
    late, gap = send(ALICE, 1, tip=9 * GWEI), send(BOB, 1, tip=GWEI)
    chain.submit(cheap, gap, dear, late)
    chain.execute(Mine())
    assert transactions(chain) == [[cheap, dear, gap, late]]


# --- Gas ---------------------------------------------------------------------------------


def test_a_transaction_may_ask_for_all_the_gas_of_a_block(tmp_path: Path) -> None:
    """Some tools do this: they send the gas limit of the latest block."""
    chain = DevChain(tmp_path / "store", mining="automine")
    first = chain.sequencer.builder.parent.gas_limit
    limits = []
    for nonce in range(3):
        limits.append(chain.sequencer.builder.parent.gas_limit)
        chain.submit(send(ALICE, nonce, gas=limits[-1]))
    assert [len(each) for each in transactions(chain)] == [1, 1, 1]
    assert all(0 < limit - first <= 500_000 for limit in limits[1:])
    chain.submit(send(ALICE, 3))
    assert chain.sequencer.builder.parent.gas_limit == first, "others have the usual gas"
    assert "exceeds block gas limit" in chain.execute(unsigned(gas=2 * first))
    check_by_import(chain, tmp_path / "check")


def test_by_the_clock_it_gets_a_block_of_its_own(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.run(4_000)
    limit = chain.sequencer.builder.base.gas_limit
    chain.submit(send(ALICE, 0, gas=limit))
    chain.run(6_000)
    (there,) = (block for block in chain.sealed() if len(block.transactions) > 1)
    assert there.header.gas_limit > limit
    assert chain.sequencer.builder.base.gas_limit == limit
    check_by_import(chain, tmp_path / "check")
