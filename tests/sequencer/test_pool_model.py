"""The pool, compared with a plain model that searches everything at each step."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import structs

from foreblock._engine import Transaction
from foreblock.errors import PoolRefusal
from foreblock.sequencer.admission import Terms
from foreblock.sequencer.transaction_pool import TransactionPool, TransactionPoolLimits
from foreblock.types import estimated_compressed_size
from support.chains.sequencing import ETHER, FEES, GWEI, SENDERS, TERMS, Accounts, transfer

# A transfer has some 110 bytes. One pool reaches its limit of transactions first, the other its
# limit of bytes.
NUMBERS = TransactionPoolLimits(of_a_sender=4, in_all=7, gapped=3)
BYTES = TransactionPoolLimits(of_a_sender=6, in_all=50, gapped=30, size=800, gapped_size=350)
WHO = st.integers(0, 3)


@dataclass(frozen=True)
class Item:
    who: int
    nonce: int
    tip_cap: int
    fee_cap: int
    cost: int
    arrival: int
    size: int


class No(Exception):
    """The pool is full."""


@dataclass
class Model:
    """The rules as plain sentences: a list, and no derived state."""

    accounts: Accounts
    limits: TransactionPoolLimits
    terms: Terms = TERMS
    items: list[Item] = field(default_factory=list)
    arrivals: int = 0

    def nonce(self, who: int) -> int:
        return self.accounts.nonces[SENDERS[who]]

    def balance(self, who: int) -> int:
        return self.accounts.balances[SENDERS[who]]

    def of(self, who: int) -> dict[int, Item]:
        return {each.nonce: each for each in self.items if each.who == who}

    def end(self, who: int, items: list[Item] | None = None) -> int:
        found = self.items if items is None else items
        nonce, own = self.nonce(who), {each.nonce for each in found if each.who == who}
        while nonce in own:
            nonce += 1
        return nonce

    def tip(self, item: Item) -> int:
        return min(item.tip_cap, item.fee_cap - self.terms.base_fee)

    @property
    def gapped(self) -> list[Item]:
        return self.gapped_of(self.items)

    def gapped_of(self, items: list[Item]) -> list[Item]:
        return [each for each in items if each.nonce >= self.end(each.who, items)]

    def tails_of(self, items: list[Item]) -> list[Item]:
        return [each for each in items if each.nonce == self.end(each.who, items) - 1]

    def cheapest(self, items: list[Item]) -> Item | None:
        return min(items, key=lambda each: (self.tip(each), -each.arrival), default=None)

    def synchronise(self, who: int) -> None:
        self.items = [
            each for each in self.items if each.who != who or each.nonce >= self.nonce(who)
        ]

    def add(self, item: Item) -> str:
        """Add a transaction, or return the reason of its rejection."""
        self.synchronise(item.who)
        own, end = self.of(item.who), self.end(item.who)
        old = own.get(item.nonce)
        for why in self.reasons(item, own, end):
            return why
        try:
            self.items = self.with_room(item, old, own)
        except No as no:
            return str(no)
        self.items = [each for each in self.items if each is not old]
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

    def with_room(self, item: Item, old: Item | None, own: dict[int, Item]) -> list[Item]:
        """The transactions that remain beside a new one, and the replaced one."""
        left = list(self.items)
        gapped = item.nonce > self.end(item.who)
        if old is None and len(own) == self.limits.of_a_sender:
            if item.nonce > max(own):
                raise No("account limit exceeded")
            left.remove(own[max(own)])
        while self.too_much(item, old, left) or (gapped and self.too_much_gapped(item, old, left)):
            victim = self.victim(item, old, left, gapped=gapped)
            if victim is None:
                raise No("txpool is full")
            left.remove(victim)
        return left

    def too_much(self, item: Item, old: Item | None, left: list[Item]) -> bool:
        after = [each for each in left if each is not old] + [item]
        return too_much(after, self.limits.in_all, self.limits.size)

    def too_much_gapped(self, item: Item, old: Item | None, left: list[Item]) -> bool:
        after = [each for each in self.gapped_of(left) if each is not old] + [item]
        return too_much(after, self.limits.gapped, self.limits.gapped_size)

    def victim(
        self, item: Item, old: Item | None, left: list[Item], *, gapped: bool
    ) -> Item | None:
        """The next transaction to evict for a new one, if any."""
        waiting = self.gapped_of(left)
        if gapped:
            victim = self.cheapest([each for each in waiting if each is not old])
        else:
            victim = self.cheapest([each for each in waiting if each.who != item.who])
            if victim is not None:
                return victim
            tails = self.tails_of(left)
            victim = self.cheapest([each for each in tails if each.who != item.who])
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
        while too_much(self.gapped, self.limits.gapped, self.limits.gapped_size):
            victim = self.cheapest(self.gapped)
            assert victim is not None
            self.items.remove(victim)


def too_much(items: list[Item], number: int, size: int) -> bool:
    return len(items) > number or sum(each.size for each in items) > size


class PoolMachine(RuleBasedStateMachine):
    """Run each step on the pool and the model, and compare."""

    limits = NUMBERS
    most_data = 0

    @initialize()
    def begin(self) -> None:
        self.accounts = Accounts(balance=ETHER)
        self.pool = TransactionPool(TERMS, self.accounts, self.limits)
        self.model = Model(self.accounts, self.limits)

    @rule(
        who=WHO,
        ahead=st.integers(-1, 5),
        tip=st.integers(0, 12),
        cap=st.sampled_from([GWEI // 2 - 1, GWEI // 2, GWEI - 1, GWEI, GWEI + 3, 2 * GWEI]),
        value=st.sampled_from([0, 0, ETHER // 4, ETHER // 2]),
        # Run the steps with bytes as the limit; a large transaction replaces several.
        share=st.sampled_from([0, 0, 0, 1, 4]),
    )
    def submit(self, who: int, ahead: int, tip: int, cap: int, value: int, share: int) -> None:
        nonce, data = max(self.model.nonce(who) + ahead, 0), self.most_data * share // 4
        transaction = transfer(
            who, nonce, tip=tip, cap=cap, value=value, data=bytes(data), gas=21_000 + 10 * data
        )
        cost = value + transaction.gas_limit * cap
        cost += FEES.data_fee(estimated_compressed_size(transaction.raw))
        size = len(transaction.raw)
        item = Item(who, nonce, tip, cap, cost, self.model.arrivals, size)
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
        self.model.terms = structs.replace(TERMS, base_fee=base_fee)
        self.pool.begin_block(self.model.terms)

    @rule()
    def set_the_best_aside(self) -> None:
        best = self.pool.best()
        if best is not None:
            self.pool.defer(best)
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
        assert self.pool.size == sum(each.size for each in expected)
        assert self.pool.gapped_size == sum(each.size for each in self.model.gapped)
        for who in range(4):
            assert self.pool.next_nonce(SENDERS[who]) == self.model.end(who)

    @invariant()
    def limits_hold(self) -> None:
        assert len(self.pool) <= self.limits.in_all
        assert self.pool.gapped <= self.limits.gapped
        assert self.pool.size <= self.limits.size
        assert self.pool.gapped_size <= self.limits.gapped_size

    @invariant()
    def same_next(self) -> None:
        best, expected = self.pool.best(), self.model.best()
        assert (best and best.arrival) == (expected and expected.arrival)


class MachineOfBytes(PoolMachine):
    """Limit the pool by bytes; a large transaction replaces several."""

    limits = BYTES
    most_data = 300


TestPool = PoolMachine.TestCase
TestPool.settings = settings(stateful_step_count=60)
TestPoolOfBytes = MachineOfBytes.TestCase
TestPoolOfBytes.settings = settings(stateful_step_count=60)
