"""Networks that only show sealed blocks: transactions wait until a command seals their block."""

from pathlib import Path

import pytest

from foreblock.bus.commands import (
    AddBalance,
    DropTransactions,
    Mine,
    NextBlock,
    SetAccount,
    SetMining,
)
from foreblock.errors import (
    AlreadyKnown,
    FeeCapBelowBaseFee,
    NonceTooLow,
    RefusedCommand,
    ReplacementUnderpriced,
)
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.dev_rows import Mining
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.types import decode_transactions
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, GWEI, NOBODY, DevChain, send
from support.chains.whole_state import check_roots

ALICE, BOB = ACCOUNTS[:2]
STRANGER = b"\x77" * 20
Sent = tuple[DevAccount, int, bytes, int]  # sender, nonce, recipient, amount
FIRST, SECOND = (ALICE, 0, NOBODY, 1), (ALICE, 1, NOBODY, 2)
OF_BOB = (BOB, 0, NOBODY, 4)


@pytest.fixture
def chain(tmp_path: Path) -> DevChain:
    """Two transactions of Alice and one of Bob have been executed, and wait for a command."""
    chain = DevChain(tmp_path / "store", shows_sealed=True, mining="manual")
    chain.submit(send(*FIRST), send(*SECOND), send(*OF_BOB))
    assert chain.pending_balance(NOBODY) == 7, "at once"
    return chain


def mined(chain: DevChain) -> set[bytes]:
    """The users' transactions of the block sealed by a command."""
    chain.execute(Mine())
    sealed = decode_transactions(list(chain.sealed()[-1].transactions[1:]), 1)
    return {each.hash for each in sealed}


def test_one_that_has_run_is_replaced_by_one_that_pays_more(
    chain: DevChain, tmp_path: Path
) -> None:
    other = send(ALICE, 0, value=8, tip=2 * GWEI, cap=200 * GWEI)
    chain.submit(other)
    assert chain.pending_balance(NOBODY) == 14
    assert mined(chain) == {other.hash, send(*SECOND).hash, send(*OF_BOB).hash}
    assert chain.latest_balance(NOBODY) == 14
    check_by_import(chain, tmp_path / "import")


def test_it_is_not_replaced_by_one_that_pays_as_much_or_is_itself(chain: DevChain) -> None:
    with pytest.raises(ReplacementUnderpriced):
        chain.submit(send(ALICE, 0, value=8))
    with pytest.raises(AlreadyKnown):
        chain.submit(send(*FIRST))
    assert chain.pending_balance(NOBODY) == 7, "no block was restarted"
    chain.execute(Mine())
    with pytest.raises(NonceTooLow):
        chain.submit(send(ALICE, 0, value=8, tip=2 * GWEI, cap=200 * GWEI))


@pytest.mark.parametrize(
    ("command", "dropped", "left"),
    [
        (DropTransactions(hash=send(*FIRST).hash), [FIRST], [OF_BOB]),
        (DropTransactions(hash=send(*SECOND).hash), [SECOND], [FIRST, OF_BOB]),
        (DropTransactions(sender=BOB.address), [OF_BOB], [FIRST, SECOND]),
        (DropTransactions(), [FIRST, SECOND, OF_BOB], []),
        (DropTransactions(hash=b"\1" * 32), [], [FIRST, SECOND, OF_BOB]),
    ],
)
def test_those_that_have_run_are_dropped(
    chain: DevChain, command: DropTransactions, dropped: list[Sent], left: list[Sent]
) -> None:
    def hashes(rows: list[Sent]) -> set[bytes]:
        return {send(*each).hash for each in rows}

    assert set(chain.execute(command)) == hashes(dropped)
    assert mined(chain) == hashes(left)


def test_accounts_set_by_hand_in_the_block_stay_set(chain: DevChain) -> None:
    chain.execute(SetAccount(STRANGER, balance=(77).to_bytes(32)))
    chain.execute(DropTransactions())
    assert (chain.pending_balance(STRANGER), chain.pending_balance(NOBODY)) == (77, 0)


def word(value: int) -> bytes:
    return value.to_bytes(32)


def account_at(chain: DevChain, name: BlockId, address: bytes) -> tuple[int, int, bytes, int]:
    """Balance, nonce, code and slot 0 of an account."""
    view = Ledger(chain.store, clock=chain.clock).view()
    try:
        state = view.state(view.resolve(name))
        account = state.balance(address), state.nonce(address), state.code(address)
        return *account, state.storage(address, 0)
    finally:
        view.close()


def test_accounts_are_set_at_latest_at_once_and_before_those_that_wait(chain: DevChain) -> None:
    chain.execute(SetAccount(NOBODY, word(100), 5, b"\x00", {word(0): word(9)}))
    assert account_at(chain, "latest", NOBODY) == (100, 5, b"\x00", 9)
    assert account_at(chain, "pending", NOBODY) == (107, 5, b"\x00", 9), "they ran again"
    assert account_at(chain, 0, NOBODY) == (0, 0, b"", 0)
    chain.execute(AddBalance(NOBODY, word(1_000)))
    assert account_at(chain, "latest", NOBODY)[0] == 1_100
    assert account_at(chain, "pending", NOBODY)[0] == 1_107
    assert mined(chain) == {send(*each).hash for each in (FIRST, SECOND, OF_BOB)}
    assert account_at(chain, "latest", NOBODY) == (1_107, 5, b"\x00", 9)
    check_roots(chain)


def test_a_nonce_that_is_set_takes_the_place_of_those_that_wait(chain: DevChain) -> None:
    chain.execute(SetAccount(ALICE.address, nonce=2))
    assert account_at(chain, "latest", ALICE.address)[1] == 2
    assert mined(chain) == {send(*OF_BOB).hash}


def test_one_who_can_no_longer_pay_waits_in_vain(chain: DevChain) -> None:
    chain.execute(SetAccount(BOB.address, word(5)))
    assert account_at(chain, "latest", BOB.address)[0] == 5
    assert mined(chain) == {send(*FIRST).hash, send(*SECOND).hash}


def test_a_refused_command_changes_nothing(chain: DevChain) -> None:
    chain.execute(SetAccount(ALICE.address, nonce=1))  # her first transaction can no longer run
    commit = chain.sequencer.builder.writer.last_commit
    with pytest.raises(RefusedCommand):
        chain.execute(SetAccount(ALICE.address, nonce=0))
    assert chain.sequencer.builder.writer.last_commit == commit
    assert mined(chain) == {send(*SECOND).hash, send(*OF_BOB).hash}


@pytest.mark.parametrize("mining", ["automine", "clock"])
def test_they_are_set_at_latest_at_once_however_blocks_are_sealed_then(
    chain: DevChain, mining: Mining
) -> None:
    chain.execute(SetMining(mining, 2))
    chain.execute(SetAccount(NOBODY, word(100)))
    assert account_at(chain, "latest", NOBODY)[0] == 100
    assert account_at(chain, "pending", NOBODY)[0] == 107
    chain.execute(SetAccount(STRANGER, word(3)))
    assert account_at(chain, "latest", STRANGER)[0] == 3
    assert mined(chain) == {send(*each).hash for each in (FIRST, SECOND, OF_BOB)}


@pytest.mark.parametrize(("sealed", "mining"), [(False, "manual"), (True, "clock")])
def test_preconfirmed_ones_stay(tmp_path: Path, mining: Mining, *, sealed: bool) -> None:
    """If flashblocks are shown, or a clock seals blocks."""
    chain = DevChain(tmp_path / "store", shows_sealed=sealed, mining=mining)
    chain.submit(send(ALICE, 0))
    chain.run(1_000)
    assert chain.pending_balance(NOBODY) == 1
    with pytest.raises(NonceTooLow):
        chain.submit(send(ALICE, 0, value=8, tip=2 * GWEI, cap=200 * GWEI))
    assert chain.execute(DropTransactions()) == []
    assert chain.pending_balance(NOBODY) == 1


def test_a_fee_below_the_base_fee_is_refused(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", shows_sealed=True, mining="automine")
    chain.execute(NextBlock(base_fee=50 * GWEI))
    with pytest.raises(FeeCapBelowBaseFee, match="max fee per gas less than block base fee"):
        chain.submit(send(ALICE, 0, cap=49 * GWEI))
    chain.submit(send(ALICE, 0, cap=50 * GWEI))
    assert chain.latest_balance(NOBODY) == 1
