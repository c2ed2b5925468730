"""States, accounts and changes, as seen from Python."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Account, Message, Overlay, State, Store, keccak256
from foreblock.errors import (
    DeadlineExceeded,
    InvalidArgument,
    InvalidMessage,
    MissingCode,
    StoreClosed,
)
from support.payloads.small_store import ALICE, BOB, CONTRACT, append, balance, env, message, word

CODE = bytes.fromhex("602a60005260206000f3")  # returns 42
NO_CODE = keccak256(b"")


def genesis(overlay: Overlay) -> None:
    overlay.set(ALICE, balance=2**256 - 1, nonce=2**64 - 1)
    overlay.set(CONTRACT, nonce=1, code=CODE, state={0: 1, 2**256 - 1: 2**256 - 1, 5: 0})


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, genesis)
        append(store, balance(BOB, 3))
        with store.view() as view:
            yield view.state(1)


def test_accounts_are_read_field_by_field_and_whole(state: State) -> None:
    assert (state.balance(ALICE), state.nonce(ALICE)) == (2**256 - 1, 2**64 - 1)
    assert (state.code(ALICE), state.code(CONTRACT)) == (b"", CODE)
    account = state.account(CONTRACT)
    assert account is not None
    assert (account.nonce, account.balance, account.code_hash) == (1, 0, keccak256(CODE))
    assert account.generation == 1, "the number its changes were taken under"
    assert repr(account).startswith("Account(nonce=1, balance=0, code_hash=0x")


def test_account_that_does_not_exist_reads_as_nothing(state: State) -> None:
    nobody = b"\xee" * 20
    assert state.account(nobody) is None
    assert (state.balance(nobody), state.nonce(nobody), state.code(nobody)) == (0, 0, b"")
    assert (state.storage(nobody, 0), state.slots(nobody, None, 10)) == (0, [])


def test_slots_are_read_one_by_one_and_in_order(state: State) -> None:
    highest = 2**256 - 1
    assert [state.storage(CONTRACT, slot) for slot in (0, 1, 5, highest)] == [1, 0, 0, highest]
    assert state.slots(CONTRACT, None, 10) == [(0, 1), (highest, highest)]
    assert state.slots(CONTRACT, None, 1) == [(0, 1)]
    assert state.slots(CONTRACT, 0, 10) == [(highest, highest)]
    assert state.slots(CONTRACT, highest, 10) == []
    assert state.slots(CONTRACT, None, 0) == []
    assert state.slots(ALICE, None, 2**64 - 1) == []


def test_accounts_are_listed_in_the_order_of_their_addresses(state: State) -> None:
    listed = state.accounts(None, 10)
    assert [address for address, _ in listed] == [ALICE, BOB, CONTRACT]
    assert dict(listed)[BOB] == state.account(BOB)
    assert state.accounts(ALICE, 1) == listed[1:2]
    assert state.accounts(b"\xff" * 20, 10) == []


def test_hashes_of_blocks_up_to_this_one_are_known(state: State) -> None:
    assert (state.block_hash(0), state.block_hash(1)) == (word(0), word(1))
    assert state.block_hash(2) == state.block_hash(2**64 - 1) == bytes(32)


def test_index_rows_belong_to_the_chain_of_a_state(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store)
        for block in (1, 2):
            batch = store.batch()
            changed = Overlay.empty().take(batch.draw())
            batch.append(block, word(block), changed, None, {b"k": b"%d" % block})
            store.commit(batch)
        with store.view() as view:
            found = [view.state(block).index(b"k") for block in range(3)]
    assert found == [None, b"1", b"2"]


def test_call_runs_on_a_state_and_leaves_nothing(state: State) -> None:
    outcome = state.call(env(), message())
    assert (outcome.status, outcome.output) == ("success", word(42))
    assert outcome.collected is None
    with pytest.raises(InvalidMessage, match="lack of funds"):
        state.call(env(), Message(sender=BOB, to=ALICE, gas=21_000, value=4))
    with pytest.raises(InvalidMessage, match="gas limit"):
        state.call(env(), message(gas=30_000_001), check_block_gas_limit=True)
    identity = bytes(19) + b"\x04"
    with pytest.raises(DeadlineExceeded):
        state.call(env(), message(identity), step_us=0)
    assert state.call(env(), message(identity), step_us=1).status == "success"


def test_accounts_are_equal_by_value() -> None:
    account = Account(nonce=1, balance=2, code_hash=word(3), generation=4)
    assert account == Account(nonce=1, balance=2, code_hash=word(3), generation=4)
    for other in (Account(), Account(nonce=1, balance=2, code_hash=word(3)), None, 1):
        assert account != other
    empty = Account()
    assert (empty.nonce, empty.balance, empty.generation) == (0, 0, 0)
    assert empty.code_hash == NO_CODE


def test_code_that_an_account_names_must_be_there(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        store.load([(ALICE, Account(code_hash=word(5)))])
        append(store)
        with store.view() as view, pytest.raises(MissingCode) as missing:
            view.state(0).code(ALICE)
        assert missing.value.hash == word(5)
        with store.view() as view, pytest.raises(MissingCode):
            view.state(0).call(env(), message(ALICE))


def test_overlay_of_a_closed_view_says_so(state: State, tmp_path: Path) -> None:
    del state
    with Store(str(tmp_path / "other"), write=True) as store:
        append(store, genesis)
        with store.view() as view:
            state = view.state(0)
            overlay = state.overlay()
        for attempt in (overlay, state):
            with pytest.raises(StoreClosed):
                attempt.call(env(), message())


def test_changes_say_what_was_and_what_is(state: State) -> None:
    overlay = state.overlay()
    overlay.set(BOB, balance=4)
    overlay.set(CONTRACT, state_diff={0: 9, 1: 0, 2: 7})
    overlay.set(ALICE, balance=2**256 - 1)
    changes = overlay.take(50)
    assert len(changes) == 2, "an account with its old values has not changed"
    (bob, before, after, slots), contract = changes.accounts
    assert (bob, slots) == (BOB, {})
    assert before == state.account(BOB)
    assert after is not None
    assert (after.balance, after.generation) == (4, before.generation if before else None)
    assert contract[0] == CONTRACT
    assert contract[3] == {0: 9, 2: 7}


def test_merged_changes_are_both_one_after_the_other(state: State) -> None:
    overlay = state.overlay()
    overlay.set(BOB, balance=4)
    overlay.set(CONTRACT, state_diff={0: 9})
    first = overlay.take(50)
    overlay.set(BOB, balance=5)
    overlay.set(CONTRACT, state_diff={2: 7})
    merged = first.merge(overlay.take(51))
    ((_, before, after, _), (_, _, _, slots)) = merged.accounts
    assert before == state.account(BOB)
    assert after is not None
    assert (after.balance, slots) == (5, {0: 9, 2: 7})
    assert len(first) == 2, "merging makes a new value"


@pytest.mark.parametrize("address", [b"", bytes(19), bytes(21), bytes(32)])
def test_addresses_have_twenty_bytes(state: State, address: bytes) -> None:
    why = f"an address has 20 bytes, not {len(address)}"
    for read in (state.account, state.balance, state.nonce, state.code):
        with pytest.raises(InvalidArgument, match=why):
            read(address)
    with pytest.raises(InvalidArgument, match=why):
        state.storage(address, 0)
    with pytest.raises(InvalidArgument, match=why):
        state.accounts(address, 1)
    with pytest.raises(InvalidArgument, match=why):
        state.slots(address, None, 1)


@pytest.mark.parametrize("number", [-1, 2**256, -(10**100)])
def test_slots_have_256_bits(state: State, number: int) -> None:
    with pytest.raises(InvalidArgument, match=r"between 0 and 2\*\*256 - 1"):
        state.storage(CONTRACT, number)
    with pytest.raises(InvalidArgument, match="between 0 and"):
        state.slots(CONTRACT, number, 1)
    with pytest.raises(InvalidArgument, match="between 0 and"):
        state.block_hash(number)
    with pytest.raises(InvalidArgument, match="between 0 and"):
        state.accounts(None, number)
