"""The pool against a plain model that searches everything anew at each step."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from foreblock._engine import Transaction
from foreblock.errors import PoolRefusal
from foreblock.sequencer.pool import Pool, PoolLimits
from foreblock.sequencer.pooled import Terms
from sequencing import ETHER, GWEI, SENDERS, TERMS, Accounts, transfer

LIMITS = PoolLimits(of_a_sender=4, in_all=7, gapped=3)
WHO = st.integers(0, 3)


@dataclass(frozen=True)
class Item:
    who: int
    nonce: int
    tip_cap: int
    fee_cap: int
    cost: int
    arrival: int


class No(Exception):
    """The pool is full."""


@dataclass
class Model:
    """The rules as sentences: a list, and nothing that has to be kept up to date."""

    accounts: Accounts
    terms: Terms = TERMS
    items: list[Item] = field(default_factory=list)
    arrivals: int = 0

    def nonce(self, who: int) -> int:
        return self.accounts.nonces[SENDERS[who]]

    def balance(self, who: int) -> int:
        return self.accounts.balances[SENDERS[who]]

    def of(self, who: int) -> dict[int, Item]:
        return {each.nonce: each for each in self.items if each.who == who}

    def end(self, who: int) -> int:
        nonce, own = self.nonce(who), self.of(who)
        while nonce in own:
            nonce += 1
        return nonce

    def tip(self, item: Item) -> int:
        return min(item.tip_cap, item.fee_cap - self.terms.base_fee)

    def is_ready(self, item: Item) -> bool:
        return item.nonce < self.end(item.who)

    @property
    def gapped(self) -> list[Item]:
        return [each for each in self.items if not self.is_ready(each)]

    @property
    def tails(self) -> list[Item]:
        return [each for each in self.items if each.nonce == self.end(each.who) - 1]

    def cheapest(self, items: list[Item]) -> Item | None:
        return min(items, key=lambda each: (self.tip(each), -each.arrival), default=None)

    def synchronise(self, who: int) -> None:
        self.items = [
            each for each in self.items if each.who != who or each.nonce >= self.nonce(who)
        ]

    def add(self, item: Item) -> str:
        """Take it in, or tell why not."""
        self.synchronise(item.who)
        own, end = self.of(item.who), self.end(item.who)
        old = own.get(item.nonce)
        for why in self.reasons(item, own, end):
            return why
        try:
            victim = old or self.victim(item, own, end)
        except No as no:
            return str(no)
        self.items = [each for each in self.items if each is not victim]
        self.items.append(item)
        self.arrivals += 1
        return "taken"

    def reasons(self, item: Item, own: dict[int, Item], end: int) -> Iterator[str]:
        if any(replace(each, arrival=item.arrival) == item for each in self.items):
            yield "already known"
        if item.fee_cap < self.terms.minimum_base_fee:
            yield "max fee per gas less than block base fee"
        if item.nonce < self.nonce(item.who):
            yield "nonce too low"
        ready = [
            each.cost for each in own.values() if each.nonce < end and each.nonce != item.nonce
        ]
        if item.cost + sum(ready) > self.balance(item.who):
            yield "insufficient funds"
        old = own.get(item.nonce)
        if old is not None:
            for new_fee, old_fee in ((item.fee_cap, old.fee_cap), (item.tip_cap, old.tip_cap)):
                if new_fee <= old_fee or new_fee * 100 < old_fee * 110 - 99:
                    yield "replacement transaction underpriced"

    def victim(self, item: Item, own: dict[int, Item], end: int) -> Item | None:
        """Who goes for a newcomer, if anybody has to."""
        if len(own) == LIMITS.of_a_sender:
            if item.nonce > max(own):
                raise No("account limit exceeded")
            return own[max(own)]
        full = len(self.items) == LIMITS.in_all
        victim = None
        if item.nonce > end:
            if full or len(self.gapped) == LIMITS.gapped:
                victim = self.cheapest(self.gapped)
                if victim is None:
                    raise No("txpool is full")
        elif full:
            victim = self.cheapest([each for each in self.gapped if each.who != item.who])
            if victim is not None:
                return victim
            victim = self.cheapest([each for each in self.tails if each.who != item.who])
        if victim is not None and self.tip(victim) >= self.tip(item):
            raise No("transaction underpriced")
        return victim

    def best(self) -> Item | None:
        heads = [
            each
            for each in self.items
            if each.nonce == self.nonce(each.who) and each.fee_cap >= self.terms.base_fee
        ]
        return max(heads, key=lambda each: (self.tip(each), -each.arrival), default=None)

    def drop_invalid(self) -> None:
        for who in range(4):
            self.synchronise(who)
        self.items = [each for each in self.items if each.cost <= self.balance(each.who)]
        self.trim()

    def trim(self) -> None:
        while len(self.gapped) > LIMITS.gapped:
            victim = self.cheapest(self.gapped)
            assert victim is not None
            self.items.remove(victim)


class PoolMachine(RuleBasedStateMachine):
    """The same steps on both, compared after each."""

    @initialize()
    def begin(self) -> None:
        self.accounts = Accounts(balance=ETHER)
        self.pool = Pool(TERMS, self.accounts, LIMITS)
        self.model = Model(self.accounts)

    @rule(
        who=WHO,
        ahead=st.integers(-1, 5),
        tip=st.integers(0, 12),
        cap=st.sampled_from([GWEI // 2 - 1, GWEI // 2, GWEI - 1, GWEI, GWEI + 3, 2 * GWEI]),
        value=st.sampled_from([0, 0, ETHER // 4, ETHER // 2]),
    )
    def submit(self, who: int, ahead: int, tip: int, cap: int, value: int) -> None:
        nonce = max(self.model.nonce(who) + ahead, 0)
        transaction = transfer(who, nonce, tip=tip, cap=cap, value=value)
        cost = value + 21_000 * cap + 1_918_900_020
        item = Item(who, nonce, tip, cap, cost, self.model.arrivals)
        assert self.add(transaction).startswith(self.model.add(item))

    def add(self, transaction: Transaction) -> str:
        try:
            self.pool.add(transaction)
        except PoolRefusal as refusal:
            return str(refusal)
        return "taken"

    @rule()
    def run_the_best(self) -> None:
        best, expected = self.pool.best(), self.model.best()
        assert (best is None) == (expected is None)
        if best is not None and expected is not None:
            assert best.arrival == expected.arrival
            self.accounts.nonces[best.sender] += 1
            self.pool.included(best)
            self.model.items.remove(expected)

    @rule()
    def let_the_best_fail(self) -> None:
        best, expected = self.pool.best(), self.model.best()
        if best is not None and expected is not None:
            self.pool.failed(best)
            self.model.items.remove(expected)
            self.model.trim()

    @rule(base_fee=st.sampled_from([GWEI // 2, GWEI, GWEI + 3, 3 * GWEI]))
    def begin_block(self, base_fee: int) -> None:
        self.model.terms = replace(TERMS, base_fee=base_fee)
        self.pool.begin_block(self.model.terms)

    @rule()
    def set_the_best_aside(self) -> None:
        best = self.pool.best()
        if best is not None:
            self.pool.set_aside(best)
            self.pool.begin_index()

    @rule(who=WHO, steps=st.integers(1, 3), balance=st.sampled_from([0, ETHER // 3, ETHER]))
    def change_an_account(self, who: int, steps: int, balance: int) -> None:
        self.accounts.nonces[SENDERS[who]] += steps
        self.accounts.balances[SENDERS[who]] = balance
        self.pool.drop_invalid()
        self.model.drop_invalid()

    @invariant()
    def same_content(self) -> None:
        expected = sorted(self.model.items, key=lambda each: each.arrival)
        found = [(SENDERS.index(each.sender), each.nonce) for each in self.pool]
        assert found == [(each.who, each.nonce) for each in expected]
        assert self.pool.gapped == len(self.model.gapped)
        for who in range(4):
            assert self.pool.next_nonce(SENDERS[who]) == self.model.end(who)

    @invariant()
    def limits_hold(self) -> None:
        assert len(self.pool) <= LIMITS.in_all
        assert self.pool.gapped <= LIMITS.gapped

    @invariant()
    def same_next(self) -> None:
        best, expected = self.pool.best(), self.model.best()
        assert (best and best.arrival) == (expected and expected.arrival)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=60)
