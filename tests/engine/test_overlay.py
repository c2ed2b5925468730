"""Changes above a state: overrides, credits, and extracted changes."""

import pytest

from foreblock._engine import Account, Message, Overlay, Precompiles, keccak256
from foreblock.errors import InvalidArgument, NotAPrecompile
from support.each_case import each_case
from support.payloads.small_store import ALICE, BOB, CONTRACT, env, message, with_code, word

IDENTITY = bytes(19) + b"\x04"
SHA256 = bytes(19) + b"\x02"


def test_overrides_change_what_they_name_and_nothing_else() -> None:
    overlay = Overlay.empty()
    assert overlay.account(ALICE) is None
    overlay.set(ALICE)
    assert overlay.account(ALICE) is None, "nothing was overridden"
    overlay.set(ALICE, balance=5)
    overlay.set(ALICE, nonce=6)
    overlay.set(ALICE, code=b"\x00", state_diff={1: 2})
    overlay.set(ALICE, state_diff={3: 4})
    account = overlay.account(ALICE)
    assert account == Account(balance=5, nonce=6, code_hash=keccak256(b"\x00"))
    assert (overlay.code(ALICE), overlay.code(BOB)) == (b"\x00", b"")
    assert [overlay.storage(ALICE, slot) for slot in (1, 2, 3)] == [2, 0, 4]
    overlay.set(ALICE, state={7: 8})
    assert [overlay.storage(ALICE, slot) for slot in (1, 3, 7)] == [0, 0, 8]
    with pytest.raises(InvalidArgument, match="both 'state' and 'stateDiff'"):
        overlay.set(ALICE, state={}, state_diff={})


def test_credit_adds_and_touches() -> None:
    overlay = Overlay.empty()
    overlay.credit(ALICE, 0)
    assert overlay.account(ALICE) is None
    overlay.credit(ALICE, 3)
    overlay.credit(ALICE, 2**256 - 4)
    assert overlay.account(ALICE) == Account(balance=2**256 - 1)
    overlay.set(BOB, balance=0)
    assert overlay.account(BOB) == Account()
    overlay.credit(BOB, 0)
    assert overlay.account(BOB) is None, "an empty account that is touched is gone"


def test_take_gives_what_changed_since_and_names_new_lives() -> None:
    overlay = Overlay.empty()
    overlay.set(ALICE, balance=1)
    ((address, before, after, slots),) = overlay.take(7).accounts
    assert (address, before, slots) == (ALICE, None, {})
    assert after == overlay.account(ALICE) == Account(balance=1, generation=7)
    assert len(overlay.take(8)) == 0
    overlay.set(ALICE, state={1: 1})
    ((_, _, wiped, slots),) = overlay.take(9).accounts
    assert wiped == Account(balance=1, generation=9), "a wiped storage begins a new life"
    assert slots == {1: 1}


def test_call_keeps_nothing_and_run_keeps_its_effects() -> None:
    overlay = with_code("6001600055")  # SSTORE(0, 1)
    outcome = overlay.call(env(), message(value=5))
    assert outcome.status == "success"
    assert (overlay.storage(CONTRACT, 0), overlay.account(ALICE)) == (0, Account(balance=10**18))
    outcome = overlay.run(env(), message(value=5))
    assert outcome.status == "success"
    assert overlay.storage(CONTRACT, 0) == 1
    assert overlay.account(ALICE) == Account(balance=10**18 - 5, nonce=1)
    contract = overlay.account(CONTRACT)
    assert contract is not None
    assert contract.balance == 5


def test_block_hash_of_a_block_that_is_only_here() -> None:
    overlay = with_code("60054060005260206000f3")  # BLOCKHASH(5)
    assert overlay.call(env(), message()).output == bytes(32)
    overlay.set_block_hash(5, word(55))
    overlay.set_block_hash(5, word(56))
    assert overlay.call(env(), message()).output == word(56)


def test_system_call_needs_code_and_pays_nothing() -> None:
    overlay = with_code("33600055")  # SSTORE(0, CALLER)
    assert overlay.system_call(env(), BOB, b"data") is None
    assert overlay.account(BOB) is None
    outcome = overlay.system_call(env(), CONTRACT, b"data")
    assert outcome is not None
    assert outcome.status == "success"
    # The system's address (EIP-4788).
    assert overlay.storage(CONTRACT, 0) == int("ff" * 19 + "fe", 16)
    assert overlay.account(b"\xff" * 19 + b"\xfe") is None


def call_with_data(overlay: Overlay, to: bytes, precompiles: Precompiles | None) -> bytes:
    call = Message(sender=ALICE, to=to, gas=100_000, data=b"echo")
    return overlay.call(env(), call, precompiles=precompiles).output


def test_precompiles_are_moved_and_switched_off() -> None:
    overlay, elsewhere = Overlay.empty(), b"\x77" * 20
    assert call_with_data(overlay, IDENTITY, None) == b"echo"
    moved = Precompiles("ethereum:Prague", [], [(IDENTITY, elsewhere)])
    assert call_with_data(overlay, elsewhere, moved) == b"echo"
    assert call_with_data(overlay, IDENTITY, moved) == b""
    off = Precompiles("ethereum:Prague", [IDENTITY, ALICE], [])
    assert call_with_data(overlay, IDENTITY, off) == b""
    assert len(call_with_data(overlay, SHA256, off)) == 32
    assert call_with_data(overlay, IDENTITY, None) == b"echo", "only for the run that requests it"


def test_only_precompiles_can_be_moved() -> None:
    high, low = b"\x99" * 20, b"\x11" * 20
    with pytest.raises(NotAPrecompile) as caught:
        Precompiles("ethereum:Prague", [], [(high, ALICE), (IDENTITY, ALICE), (low, BOB)])
    assert caught.value.address == low, "the lowest is named"
    kzg = bytes(19) + b"\x0a"
    Precompiles("ethereum:Cancun", [], [(kzg, ALICE)])
    with pytest.raises(NotAPrecompile):
        Precompiles("ethereum:Shanghai", [], [(kzg, ALICE)])
    with pytest.raises(InvalidArgument, match="unknown Ethereum fork"):
        Precompiles("ethereum:Nowhere", [], [])


def test_failed_run_keeps_the_overlay_as_it_was() -> None:
    overlay = with_code("60016000556000600055fe")  # writes, then INVALID
    before = overlay.account(ALICE)
    outcome = overlay.run(env(), message(value=5))
    assert outcome.status == "halt"
    after = overlay.account(ALICE)
    assert before is not None
    assert after is not None
    assert (after.balance, after.nonce) == (before.balance, before.nonce + 1)
    assert overlay.storage(CONTRACT, 0) == 0


@each_case(
    "fields",
    [
        {"balance": 2**256},
        {"balance": -1},
        {"nonce": 2**64},
        {"state": {-1: 0}},
        {"state": {0: 2**256}},
        {"state_diff": {2**256: 0}},
    ],
)
def test_overrides_out_of_range_are_invalid(fields: dict[str, object]) -> None:
    overlay = Overlay.empty()
    with pytest.raises(InvalidArgument, match="between 0 and"):
        overlay.set(ALICE, **fields)  # type: ignore[arg-type]
    assert overlay.account(ALICE) is None


def test_nothing_made_by_the_engine_can_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Overlay()
