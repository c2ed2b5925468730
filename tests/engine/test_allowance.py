"""Limits of the transactions of a block: time, gas, and touched state."""

from threading import Thread

import pytest

from foreblock._engine import Allowance, Overlay, Transaction, deposit_transaction
from foreblock.errors import OverBudget
from support.each_case import each_case
from support.executing import Executed, execute
from support.payloads.bytecode import P256_LOOP, STORING_LOOP, loop
from support.payloads.small_store import env

SENDER = b"\x11" * 20
CONTRACT = b"\xc0" * 20
FAR = 2**62  # gas for a century
HOUR_US = 3_600 * 10**6


def deposit(*, gas: int, code: bytes = b"", to: bytes | None = None) -> Transaction:
    """An unsigned and unpaid transaction, which a feed can invent."""
    return deposit_transaction(
        source_hash=bytes(32),
        sender=SENDER,
        to=to,
        mint=0,
        value=0,
        gas_limit=gas,
        input=code,
    )


def run(overlay: Overlay, allowance: Allowance, *transactions: Transaction) -> list[Executed]:
    block = env("optimism:Jovian", gas_limit=2**63)
    return execute(overlay, block, transactions, allowance)


def over(overlay: Overlay, allowance: Allowance, *transactions: Transaction) -> tuple[int, str]:
    with pytest.raises(OverBudget) as raised:
        run(overlay, allowance, *transactions)
    return raised.value.index, raised.value.what


def is_untouched(overlay: Overlay) -> bool:
    return not overlay.take(1).accounts


LOOPS = {
    "jumps": loop(""),
    "stores": STORING_LOOP,
    "hashes": loop("61ffff5f2050"),
    "verifies signatures": P256_LOOP,
    "calls itself": bytes.fromhex("5f5f5f5f5f305af1505f5f5f5f5f305af1"),
    "logs": loop("5f5fa0"),
    "keeps for the transaction": loop("5a5a5d"),
}


@each_case("code", LOOPS.values(), ids=LOOPS)
def test_the_clock_stops_whatever_it_is(code: bytes) -> None:
    overlay = Overlay.empty()
    overlay.set(CONTRACT, code=code)
    overlay.take(0)
    at_once = Allowance(time_us=1_000)
    assert over(overlay, at_once, deposit(gas=FAR, to=CONTRACT)) == (0, "time")
    assert is_untouched(overlay)


@each_case("code", LOOPS.values(), ids=LOOPS)
def test_what_spends_more_gas_than_its_block_says_is_stopped_while_it_runs(code: bytes) -> None:
    """Its own gas would last for years."""
    overlay = Overlay.empty()
    overlay.set(CONTRACT, code=code)
    overlay.take(0)
    claimed = Allowance(gas=1_000_000)
    assert over(overlay, claimed, deposit(gas=FAR, to=CONTRACT)) == (0, "gas")
    assert is_untouched(overlay)


@pytest.mark.parametrize(
    "code", [LOOPS["stores"], LOOPS["logs"], LOOPS["keeps for the transaction"]]
)
def test_what_is_kept_in_memory_is_counted(code: bytes) -> None:
    overlay = Overlay.empty()
    allowance = Allowance(touched=1_000)
    creation = deposit(gas=FAR, code=code)
    assert over(overlay, allowance, creation) == (0, "accounts and slots")
    assert is_untouched(overlay)


def test_what_fits_is_not_touched_by_it() -> None:
    """A loop that runs out of gas has the same outcome with and without an allowance."""
    bounded, free = Overlay.empty(), Overlay.empty()
    creation = deposit(gas=1_000_000, code=LOOPS["stores"])
    allowance = Allowance(time_us=HOUR_US, gas=1_000_000, touched=1_000)
    (one,) = run(bounded, allowance, creation)
    (other,) = execute(free, env("optimism:Jovian", gas_limit=2**63), [creation])
    assert one == other
    assert (one.receipt.status, one.gas_used) == (False, 1_000_000)
    assert bounded.take(1).accounts == free.take(1).accounts


def test_those_before_the_one_too_many_stay() -> None:
    overlay = Overlay.empty()
    plain = deposit(gas=21_000, to=CONTRACT)
    allowance = Allowance(gas=60_000)
    assert over(overlay, allowance, plain, plain, plain) == (2, "gas")
    sender = overlay.account(SENDER)
    assert sender is not None
    assert sender.nonce == 2


def clearing() -> Overlay:
    """An overlay with a contract that clears five of its slots and gets the refund."""
    overlay = Overlay.empty()
    code = "".join(f"5f60{slot:02x}55" for slot in range(1, 6))
    overlay.set(CONTRACT, code=bytes.fromhex(code), state=dict.fromkeys(range(1, 6), 1))
    return overlay


def test_a_refund_may_make_it_fit() -> None:
    """More gas may be spent than used."""
    call = deposit(gas=FAR, to=CONTRACT)
    (free,) = run(clearing(), Allowance(), call)
    (exact,) = run(clearing(), Allowance(gas=free.gas_used), call)
    assert exact.gas_used == free.gas_used
    assert over(clearing(), Allowance(gas=free.gas_used - 1), call) == (0, "gas")


def test_calls_share_an_allowance() -> None:
    overlay = Overlay.empty()
    plain = deposit(gas=21_000, to=CONTRACT)
    allowance = Allowance(touched=20)
    assert over(overlay, allowance, *[plain] * 20)[1] == "accounts and slots"
    assert over(overlay, allowance, plain) == (0, "accounts and slots")
    # Small transactions never check the clock themselves.
    late = Allowance(time_us=0)
    assert over(overlay, late, plain) == (0, "time")


def test_a_little_is_done_however_late_it_is() -> None:
    """Rejecting a small transaction would not help a machine that was suspended."""
    overlay = Overlay.empty()
    plain = deposit(gas=21_000, to=CONTRACT)
    run(overlay, Allowance(time_us=0, least_us=1_000), plain)
    endless = deposit(gas=FAR, code=LOOPS["jumps"])
    assert over(overlay, Allowance(time_us=0, least_us=1_000), endless) == (0, "time")


def test_other_threads_go_on_meanwhile() -> None:
    """The interpreter lock is released; otherwise this thread could not count."""
    overlay = Overlay.empty()
    raised: list[tuple[int, str]] = []
    allowance = Allowance(time_us=50_000)
    creation = deposit(gas=FAR, code=LOOPS["jumps"])
    thread = Thread(target=lambda: raised.append(over(overlay, allowance, creation)))
    thread.start()
    counted = 0
    while thread.is_alive():
        counted += 1
    thread.join()
    assert raised == [(0, "time")]
    assert counted > 1
