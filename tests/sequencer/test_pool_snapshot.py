"""A snapshot of the pool, compared with a plain model of the same transactions."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.sequencer.pool_snapshot import PoolReader, PoolSnapshot
from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.types import Transaction
from support.chains.sequencing import SENDERS, TERMS, Accounts, transfer

PLACES = st.tuples(st.integers(0, 2), st.integers(0, 6))  # a sender and a nonce


def shown(look: PoolSnapshot) -> set[tuple[bytes, bool]]:
    assert look.size == sum(len(each.raw) for each, _ in look.transactions)
    assert len({each.hash for each, _ in look.transactions}) == len(look.transactions)
    return {(each.hash, can_run) for each, can_run in look.transactions}


def runs(places: set[tuple[int, int]], sender: int, nonce: int) -> bool:
    """Return whether the sender has all nonces up to this one."""
    return all((sender, each) in places for each in range(nonce + 1))


@given(st.sets(PLACES), st.sets(st.integers(0, 2)))
def test_all_that_waits_is_shown_with_whether_it_can_run(
    places: set[tuple[int, int]], asked: set[int]
) -> None:
    pool = TransactionPool(TERMS, Accounts())
    sent = {place: transfer(*place) for place in places}
    for transaction in sent.values():
        pool.add(transaction)
    window = PoolReader(pool, {})
    expected = {(each.hash, runs(places, *place)) for place, each in sent.items()}
    look = window.all()
    assert shown(look) == expected
    can_run = sum(can for _, can in expected)
    numbers = (can_run, len(expected) - can_run)
    assert (look.pending, look.queued) == window.numbers()[2:] == numbers
    chosen = {each.hash for place, each in sent.items() if place[0] in asked}
    of_senders = shown(window.of_senders([SENDERS[each] for each in asked]))
    assert of_senders == {each for each in expected if each[0] in chosen}
    some = [each.hash for each in sent.values()][:3]
    found = window.found([*some, b"\0" * 32])
    assert {each.hash for each, _ in found.transactions} == set(some)


def test_what_has_run_and_is_not_committed_still_waits() -> None:
    pool = TransactionPool(TERMS, Accounts())
    ran, next_one, other = transfer(0, 0), transfer(0, 1), transfer(1, 5)
    for each in (ran, next_one, other):
        pool.add(each)
    best = pool.best()
    assert best is not None
    pool.included(best)
    committed_later: dict[bytes, Transaction] = {ran.hash: ran}
    window = PoolReader(pool, committed_later)
    assert shown(window.all()) == {(ran.hash, True), (next_one.hash, True), (other.hash, False)}
    assert window.numbers()[2:] == (2, 1)
    assert shown(window.found([ran.hash])) == {(ran.hash, True)}
    assert shown(window.of_senders([SENDERS[0]])) == {(ran.hash, True), (next_one.hash, True)}
