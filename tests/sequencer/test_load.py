from pathlib import Path

import pytest

from foreblock._engine import Transaction
from foreblock.errors import InvalidArgument
from foreblock.sequencer.load import Load, Mix
from foreblock.sequencer.predeploys import TOKEN
from support.chains.dev_chain import ACCOUNTS, MS, SECOND, DevChain, places, send
from support.each_case import each_case

SENDERS = ACCOUNTS[5:]


def load(tps: int = 50, mix: Mix | None = None) -> Load:
    return Load(tps, SENDERS, 31337, mix)


def signed(of: Load, count: int) -> list[Transaction]:
    """The first transactions of a load, from new accounts."""
    while len(of.ready) < count:
        of.sign_some(lambda _: 0)
    list(of.due(0))
    return list(of.due(10**4 * SECOND))[:count]


def test_a_load_is_the_same_each_time() -> None:
    assert signed(load(), 20) == signed(load(), 20)


def test_senders_take_turns_with_nonces_without_gaps() -> None:
    transactions = signed(load(), 20)
    for turn, each in enumerate(transactions):
        assert each.sender == SENDERS[turn % 5].address
        assert each.nonce == turn // 5


@each_case(("mix", "tokens"), [(Mix(), 10), (Mix(0, 1), 0), (Mix(1, 1), 20),
                                             (Mix(1, 4), 5), (Mix(3, 4), 15)])  # fmt: skip
def test_so_many_are_token_transfers(mix: Mix, tokens: int) -> None:
    assert sum(each.to == TOKEN for each in signed(load(mix=mix), 20)) == tokens


def test_so_many_are_due_a_second_and_no_more() -> None:
    of = load(tps=50)
    for _ in range(20):
        of.sign_some(lambda _: 0)
    assert list(of.due(7 * SECOND)) == [], "it begins with the first question"
    assert len(list(of.due(7 * SECOND + 200 * MS))) == 10
    assert len(list(of.due(7 * SECOND + 210 * MS))) == 0
    assert len(list(of.due(7 * SECOND + 399 * MS))) == 9


def test_a_portion_is_due_when_it_has_come_together() -> None:
    assert load().next_due_ns is None, "nothing is signed"
    of = load(tps=160)
    while of.wants_to_sign:
        of.sign_some(lambda _: 0)
    list(of.due(7 * SECOND))
    for portion in (1, 2):
        due = 7 * SECOND + portion * 100 * MS
        assert of.next_due_ns == due
        assert len(list(of.due(due))) == 16


def test_what_was_missed_for_long_is_left_out() -> None:
    of = load(tps=50)
    for _ in range(20):
        of.sign_some(lambda _: 0)
    list(of.due(0))
    assert len(list(of.due(3_600 * SECOND))) == 50
    assert len(list(of.due(3_600 * SECOND + 200 * MS))) == 10


def test_it_is_signed_ahead_in_portions() -> None:
    of = load(tps=50)
    portions = 0
    while of.wants_to_sign:
        of.sign_some(lambda _: 0)
        portions += 1
    assert portions == 7, "two seconds, sixteen at a time"


@pytest.mark.parametrize("tps", [0, -1])
def test_load_of_nothing_is_refused(tps: int) -> None:
    with pytest.raises(InvalidArgument):
        load(tps=tps)
    with pytest.raises(InvalidArgument):
        Load(1, [], 31337)


def test_a_chain_under_load_takes_all_of_it(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", load=load(tps=50))
    chain.run(4_125)
    counts = [len(each.diff.transactions) for each in chain.published if each.index]
    assert sum(counts) == 50 * 4_125 // 1_000
    assert max(counts) == 10
    with chain.store.view() as view:
        assert view.heads.latest is not None
        supply = view.state(view.heads.latest[0]).storage(TOKEN, 2)
        assert supply == 10 * 10**24


def test_a_load_goes_on_when_somebody_else_uses_its_accounts(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", load=load(tps=50))
    chain.run(1_000)
    own = send(SENDERS[0], chain.sequencer.next_nonce(SENDERS[0].address))
    chain.submit(own)
    before = len(chain.published)
    chain.run(3_000)
    place = places(chain.published[before:])
    assert own.raw in place
    assert len(place) > 50 * 3 - 40


def test_a_load_goes_on_over_a_restart(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", load=load(tps=50))
    chain.run(2_000)
    chain.kill()
    chain.load = load(tps=50)
    chain.open()
    before = len(chain.published)
    chain.run(1_000)
    assert len(places(chain.published[before:])) >= 40
