import re

import pytest

from foreblock._engine import Transaction
from foreblock.errors import PoolRefusal
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.sequencer.transaction_pool import TransactionPool, TransactionPoolLimits
from support.chains.sequencing import ETHER, GWEI, NOBODY, SENDERS, TERMS, Accounts, terms, transfer


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


@pytest.fixture
def pool(accounts: Accounts) -> TransactionPool:
    return TransactionPool(TERMS, accounts)


def refuses(pool: TransactionPool, transaction: Transaction, text: str) -> None:
    before = list(pool)
    with pytest.raises(PoolRefusal, match="^" + re.escape(text) + "$"):
        pool.add(transaction)
    assert list(pool) == before


def run(pool: TransactionPool, accounts: Accounts, most: int = 10**6) -> list[Transaction]:
    """Remove the transactions of the next block."""
    taken: list[Transaction] = []
    while len(taken) < most and (best := pool.best()) is not None:
        accounts.nonces[best.sender] += 1
        pool.included(best)
        taken.append(best.transaction)
    return taken


# --- Order ---------------------------------------------------------------------------


def test_the_highest_tip_goes_first_and_of_equals_the_first(
    pool: TransactionPool, accounts: Accounts
) -> None:
    low, high = transfer(0, 0, tip=1), transfer(1, 0, tip=5)
    first, second = transfer(2, 0, tip=3), transfer(3, 0, tip=3)
    for each in (low, first, high, second):
        pool.add(each)
    assert run(pool, accounts) == [high, first, second, low]


def test_the_tip_that_counts_is_what_the_fee_cap_leaves(
    pool: TransactionPool, accounts: Accounts
) -> None:
    capped = transfer(0, 0, tip=9, cap=GWEI + 2)
    modest = transfer(1, 0, tip=3)
    pool.add(capped)
    pool.add(modest)
    assert run(pool, accounts) == [modest, capped]


def test_nonces_of_a_sender_run_in_order_whatever_they_offer(
    pool: TransactionPool, accounts: Accounts
) -> None:
    dear, cheap = transfer(0, 1, tip=9), transfer(0, 0, tip=1)
    other = transfer(1, 0, tip=5)
    for each in (dear, cheap, other):
        pool.add(each)
    assert run(pool, accounts) == [other, cheap, dear]


def test_a_fee_cap_below_the_base_fee_waits_until_it_falls(
    pool: TransactionPool, accounts: Accounts
) -> None:
    patient = transfer(0, 0, tip=1, cap=GWEI - 1)
    pool.add(patient)
    assert run(pool, accounts) == []
    pool.begin_block(terms(base_fee=GWEI - 1))
    assert run(pool, accounts) == [patient]


def test_what_does_not_fit_is_offered_again_in_the_next_index(
    pool: TransactionPool, accounts: Accounts
) -> None:
    large, small = transfer(0, 0, tip=9, gas=5_000_000), transfer(1, 0, tip=1)
    pool.add(large)
    pool.add(small)
    best = pool.best()
    assert best is not None
    assert best.transaction == large
    pool.defer(best)
    assert run(pool, accounts) == [small]
    pool.begin_index()
    assert run(pool, accounts) == [large]


def test_a_transaction_that_comes_while_an_index_is_filled_can_go_first(
    pool: TransactionPool, accounts: Accounts
) -> None:
    pool.add(transfer(0, 0, tip=1))
    urgent = transfer(1, 0, tip=9)
    pool.add(urgent)
    assert run(pool, accounts, most=1) == [urgent]


# --- Nonces --------------------------------------------------------------------------


def test_a_nonce_gap_is_held_until_it_is_filled(pool: TransactionPool, accounts: Accounts) -> None:
    third, second = transfer(0, 2), transfer(0, 1)
    pool.add(third)
    pool.add(second)
    assert (len(pool), pool.gapped) == (2, 2)
    assert pool.next_nonce(SENDERS[0]) == 0
    assert run(pool, accounts) == []
    first = transfer(0, 0)
    pool.add(first)
    assert pool.gapped == 0
    assert pool.next_nonce(SENDERS[0]) == 3
    assert run(pool, accounts) == [first, second, third]
    assert len(pool) == 0


def test_the_next_nonce_follows_the_account_and_what_can_run(
    pool: TransactionPool, accounts: Accounts
) -> None:
    accounts.nonces[SENDERS[0]] = 5
    assert pool.next_nonce(SENDERS[0]) == 5
    assert pool.next_nonce(NOBODY) == 0
    pool.add(transfer(0, 5))
    pool.add(transfer(0, 6))
    pool.add(transfer(0, 8))
    assert pool.next_nonce(SENDERS[0]) == 7
    run(pool, accounts, most=1)
    assert pool.next_nonce(SENDERS[0]) == 7


def test_a_used_nonce_is_refused(pool: TransactionPool, accounts: Accounts) -> None:
    accounts.nonces[SENDERS[0]] = 7
    refuses(pool, transfer(0, 5), "nonce too low: next nonce 7, tx nonce 5")


def test_a_known_transaction_is_refused(pool: TransactionPool) -> None:
    transaction = transfer(0, 0)
    pool.add(transaction)
    refuses(pool, transaction, "already known")


def test_a_nonce_that_moved_by_itself_lets_go_of_what_is_below(
    pool: TransactionPool, accounts: Accounts
) -> None:
    """An authorization raises the nonce of its signer (EIP-7702)."""
    below, after = transfer(0, 0), transfer(0, 1)
    pool.add(below)
    pool.add(after)
    accounts.nonces[SENDERS[0]] = 1
    best = pool.best()
    assert best is not None
    assert best.transaction == below
    pool.failed(best)
    assert list(pool) == [after]
    assert run(pool, accounts) == [after]


# --- Replacement ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tip", "cap", "replaces"),
    [
        (110, 10 * GWEI + GWEI, True),
        (109, 10 * GWEI + GWEI, False),
        (110, 10 * GWEI + GWEI - 1, False),
        (200, 10 * GWEI, False),
        (100, 20 * GWEI, False),
    ],
)
def test_a_replacement_needs_a_tenth_more_of_both_fee_fields(
    pool: TransactionPool, accounts: Accounts, tip: int, cap: int, replaces: bool
) -> None:
    old, new = transfer(0, 0, tip=100, cap=10 * GWEI), transfer(0, 0, tip=tip, cap=cap)
    pool.add(old)
    if replaces:
        assert [each.transaction for each in pool.add(new)] == [old]
        assert old.hash not in pool
    else:
        refuses(pool, new, "replacement transaction underpriced")
    assert run(pool, accounts) == [new if replaces else old]


def test_a_replacement_of_next_to_nothing_needs_more_than_nothing(pool: TransactionPool) -> None:
    pool.add(transfer(0, 0, tip=1, cap=2 * GWEI))
    refuses(pool, transfer(0, 0, tip=1, cap=3 * GWEI), "replacement transaction underpriced")
    pool.add(transfer(0, 0, tip=2, cap=3 * GWEI))


# --- Funds ---------------------------------------------------------------------------


def test_funds_are_for_value_gas_and_l1_fee(pool: TransactionPool, accounts: Accounts) -> None:
    cost = 7 + 21_000 * 10 * GWEI + 1_918_900_020
    accounts.balances[SENDERS[0]] = cost - 1
    text = "insufficient funds for gas * price + value: "
    refuses(pool, transfer(0, 0, value=7), f"{text}balance {cost - 1}, tx cost {cost}, overshot 1")
    accounts.balances[SENDERS[0]] = cost
    pool.add(transfer(0, 0, value=7))
    refuses(
        pool,
        transfer(0, 1, value=7),
        f"{text}balance {cost}, queued cost {cost}, tx cost {cost}, overshot {cost}",
    )


def test_a_replacement_does_not_pay_for_what_it_replaces(
    pool: TransactionPool, accounts: Accounts
) -> None:
    accounts.balances[SENDERS[0]] = 2 * 21_000 * 10 * GWEI
    pool.add(transfer(0, 0, tip=1))
    pool.add(transfer(0, 0, tip=2, cap=11 * GWEI))
    assert len(pool) == 1


def test_a_stranger_has_no_funds(accounts: Accounts, pool: TransactionPool) -> None:
    del accounts.nonces[SENDERS[0]]
    with pytest.raises(PoolRefusal, match=r"^insufficient funds .* balance 0, tx cost"):
        pool.add(transfer(0, 0))


def test_what_can_no_longer_pay_is_dropped_and_what_follows_waits(
    pool: TransactionPool, accounts: Accounts
) -> None:
    rich, modest = transfer(0, 0, value=50 * ETHER), transfer(0, 1)
    used = transfer(1, 0)
    for each in (rich, modest, used):
        pool.add(each)
    accounts.balances[SENDERS[0]] = ETHER
    accounts.nonces[SENDERS[1]] = 1
    assert {each.transaction for each in pool.drop_invalid()} == {rich, used}
    assert list(pool) == [modest]
    assert pool.gapped == 1


def test_what_fails_in_a_block_is_dropped(pool: TransactionPool, accounts: Accounts) -> None:
    pool.add(transfer(0, 0))
    pool.add(transfer(0, 1))
    best = pool.best()
    assert best is not None
    pool.failed(best)
    assert [each.nonce for each in pool] == [1]
    assert pool.best() is None
    again = transfer(0, 0, value=3)
    pool.add(again)
    assert [each.nonce for each in run(pool, accounts)] == [0, 1]


def test_what_a_fork_forbids_is_dropped(pool: TransactionPool, accounts: Accounts) -> None:
    pool.add(transfer(0, 0, gas=2**24))
    pool.add(transfer(1, 0, gas=2**24 + 1))
    karst = Rules(EthereumFork.OSAKA, OptimismFork.KARST)
    pool.begin_block(terms(rules=karst, transaction_gas_cap=karst.transaction_gas_cap))
    (dropped,) = pool.drop_invalid()
    assert dropped.gas_limit == 2**24 + 1
    assert [each.gas_limit for each in run(pool, accounts)] == [2**24]


# --- Limits --------------------------------------------------------------------------


def small(
    accounts: Accounts, of_a_sender: int = 3, in_all: int = 4, gapped: int = 2
) -> TransactionPool:
    return TransactionPool(TERMS, accounts, TransactionPoolLimits(of_a_sender, in_all, gapped))


def test_limits_are_those_that_are_documented() -> None:
    limits = TransactionPoolLimits()
    assert (limits.of_a_sender, limits.in_all, limits.gapped) == (1_024, 10_000, 2_500)
    assert (limits.size, limits.gapped_size) == (64 * 2**20, 16 * 2**20)


def test_a_sender_may_have_so_many(accounts: Accounts) -> None:
    pool = small(accounts)
    for nonce in range(3):
        pool.add(transfer(0, nonce))
    refuses(pool, transfer(0, 3), "account limit exceeded: pooled 3 txs")
    pool.add(transfer(1, 0))


def test_a_sender_at_its_limit_can_fill_a_gap(accounts: Accounts) -> None:
    pool = small(accounts)
    for nonce in (0, 2, 3):
        pool.add(transfer(0, nonce))
    (gone,) = pool.add(transfer(0, 1))
    assert gone.nonce == 3
    assert (len(pool), pool.gapped) == (3, 0)


def test_in_a_full_pool_the_lowest_tip_goes_first(accounts: Accounts) -> None:
    pool = small(accounts)
    for who, tip in enumerate((5, 3, 4, 6)):
        pool.add(transfer(who, 0, tip=tip))
    refuses(pool, transfer(4, 0, tip=3), "transaction underpriced")
    (gone,) = pool.add(transfer(4, 0, tip=4))
    assert gone.sender == SENDERS[1]
    (gone,) = pool.add(transfer(5, 0, tip=9))
    assert gone.sender == SENDERS[4], "of equal tips the last that came"


def test_in_a_full_pool_what_cannot_run_goes_before_what_can(accounts: Accounts) -> None:
    pool = small(accounts)
    for who in range(3):
        pool.add(transfer(who, 0, tip=5))
    pool.add(transfer(3, 7, tip=9))
    (gone,) = pool.add(transfer(4, 0, tip=1))
    assert (gone.sender, gone.nonce) == (SENDERS[3], 7)


def test_what_can_run_never_goes_for_what_cannot(accounts: Accounts) -> None:
    pool = small(accounts)
    for who in range(4):
        pool.add(transfer(who, 0, tip=1))
    refuses(pool, transfer(4, 7, tip=9), "txpool is full")


def test_only_so_many_may_wait_for_a_nonce(accounts: Accounts) -> None:
    pool = small(accounts)
    pool.add(transfer(0, 5, tip=5))
    pool.add(transfer(1, 5, tip=3))
    refuses(pool, transfer(2, 5, tip=3), "transaction underpriced")
    (gone,) = pool.add(transfer(2, 5, tip=4))
    assert gone.sender == SENDERS[1]
    assert pool.gapped == 2


def test_of_what_can_run_the_last_of_a_sender_goes(accounts: Accounts) -> None:
    pool = small(accounts)
    for nonce, tip in enumerate((1, 5, 7)):
        pool.add(transfer(0, nonce, tip=tip))
    pool.add(transfer(1, 0, tip=8))
    (gone,) = pool.add(transfer(2, 0, tip=9))
    assert (gone.sender, gone.nonce) == (SENDERS[0], 2)
    assert pool.gapped == 0


def test_a_sender_does_not_push_out_what_it_builds_on(accounts: Accounts) -> None:
    pool = small(accounts)
    pool.add(transfer(0, 0, tip=1))
    for who in (1, 2, 3):
        pool.add(transfer(who, 0, tip=2))
    (gone,) = pool.add(transfer(0, 1, tip=9))
    assert gone.sender == SENDERS[3]
    assert pool.next_nonce(SENDERS[0]) == 2


def test_what_begins_to_wait_keeps_to_the_limit_too(accounts: Accounts) -> None:
    pool = small(accounts, of_a_sender=9, in_all=9)
    for nonce in range(6):
        pool.add(transfer(0, nonce, tip=nonce + 1))
    best = pool.best()
    assert best is not None
    pool.failed(best)
    assert [each.nonce for each in pool] == [4, 5]


def large(who: int, nonce: int, tip: int, size: int = 1_000) -> Transaction:
    """A transfer with this many bytes of data."""
    return transfer(who, nonce, tip=tip, data=bytes(size), gas=21_000 + 10 * size)


def of_size(accounts: Accounts, size: int, gapped_size: int = 10**6) -> TransactionPool:
    return TransactionPool(
        TERMS, accounts, TransactionPoolLimits(size=size, gapped_size=gapped_size)
    )


def test_a_large_one_takes_the_place_of_as_many_as_it_needs(accounts: Accounts) -> None:
    pool = of_size(accounts, 1_200)
    for who, tip in enumerate((5, 3, 4, 6)):
        pool.add(transfer(who, 0, tip=tip))
    gone = pool.add(large(4, 0, tip=9))
    assert [each.sender for each in gone] == [SENDERS[who] for who in (1, 2, 0, 3)]
    assert pool.size == sum(len(each.raw) for each in pool) <= 1_200


def test_a_large_one_must_offer_more_than_each_that_goes_for_it(accounts: Accounts) -> None:
    pool = of_size(accounts, 1_350)
    for who, tip in enumerate((5, 3, 4, 6)):
        pool.add(transfer(who, 0, tip=tip))
    refuses(pool, large(4, 0, tip=4), "transaction underpriced")
    assert len(pool.add(large(4, 0, tip=5))) == 2


def test_when_the_last_of_a_sender_goes_the_one_before_may_be_next(accounts: Accounts) -> None:
    pool = of_size(accounts, 1_300)
    for nonce, tip in enumerate((1, 2, 3)):
        pool.add(transfer(0, nonce, tip=tip))
    pool.add(transfer(1, 0, tip=8))
    gone = pool.add(large(2, 0, tip=5, size=900))
    assert [(each.sender, each.nonce) for each in gone] == [(SENDERS[0], 2), (SENDERS[0], 1)]
    assert pool.gapped == 0


def test_a_replacement_that_is_larger_makes_room_too(accounts: Accounts) -> None:
    pool = of_size(accounts, 1_300)
    for who, tip in enumerate((5, 3, 4)):
        pool.add(transfer(who, 0, tip=tip))
    gone = pool.add(transfer(0, 0, tip=6, cap=20 * GWEI, data=bytes(1_000), gas=31_000))
    assert [each.sender for each in gone] == [SENDERS[1], SENDERS[0]]
    refuses(
        pool,
        transfer(2, 0, tip=5, cap=20 * GWEI, data=bytes(1_000), gas=31_000),
        "transaction underpriced",
    )


def test_only_so_many_bytes_may_wait_for_a_nonce(accounts: Accounts) -> None:
    pool = of_size(accounts, 10**6, gapped_size=2_400)
    pool.add(large(0, 5, tip=5))
    pool.add(large(1, 5, tip=3))
    refuses(pool, large(2, 5, tip=3), "transaction underpriced")
    (gone,) = pool.add(large(2, 5, tip=4))
    assert gone.sender == SENDERS[1]
    pool.add(large(3, 0, tip=1))


def test_who_goes_for_its_own_sender_goes_once(accounts: Accounts) -> None:
    """The highest nonce of a sender at its limit, for any fee, and others for the byte limit."""
    pool = TransactionPool(TERMS, accounts, TransactionPoolLimits(of_a_sender=2, gapped_size=1_350))
    for who, nonce, tip in ((0, 5, 9), (0, 7, 1), (1, 5, 2)):
        pool.add(transfer(who, nonce, tip=tip))
    gone = pool.add(large(0, 6, tip=5, size=1_000))
    assert [(each.sender, each.nonce) for each in gone] == [(SENDERS[0], 7)]
    pool = TransactionPool(TERMS, accounts, TransactionPoolLimits(of_a_sender=2, gapped_size=1_250))
    for who, nonce, tip in ((0, 5, 9), (0, 7, 1), (1, 5, 2)):
        pool.add(transfer(who, nonce, tip=tip))
    gone = pool.add(large(0, 6, tip=5, size=1_000))
    assert [(each.sender, each.nonce) for each in gone] == [(SENDERS[0], 7), (SENDERS[1], 5)]


def test_what_begins_to_wait_keeps_to_the_bytes_too(accounts: Accounts) -> None:
    pool = of_size(accounts, 10**6, gapped_size=250)
    for nonce in range(6):
        pool.add(transfer(0, nonce, tip=nonce + 1))
    best = pool.best()
    assert best is not None
    pool.failed(best)
    assert [each.nonce for each in pool] == [4, 5]
