"""The transaction pool: the transactions that wait for a block, and which is next.

Each sender's transactions run in the order of their nonces. Among the senders the one
goes first whose transaction pays the highest tip above the base fee, and among equals
the one that came first, so equal submissions give equal blocks; with the order `fifo` always
the one that came first. A transaction that offers less than the base fee waits for it to fall.

Accounts are looked up through a function, as of the block in progress. Nothing here
waits, keeps time, runs a transaction or is kept over a restart.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from msgspec import Struct

from foreblock.errors import (
    AlreadyKnown,
    InsufficientFunds,
    NonceTooLow,
    Overdrawn,
    ReplacementUnderpriced,
    SenderLimitReached,
    TransactionPoolFull,
)
from foreblock.sequencer.admission import Pooled, Terms, admit
from foreblock.sequencer.ranking import Cheapest, Order, Ranking, SenderQueue, run_key
from foreblock.types import Account, Transaction

Accounts = Callable[[bytes], Account | None]


class TransactionPoolLimits(Struct, frozen=True):
    """How many transactions may wait, and how many bytes they may have as they are encoded."""

    of_a_sender: int = 1_024
    in_all: int = 10_000
    gapped: int = 2_500  # of all, those that wait for a nonce
    size: int = 64 << 20
    gapped_size: int = 16 << 20


class TransactionPool:
    """The transactions that wait, under the terms of the block in progress."""

    def __init__(
        self,
        terms: Terms,
        accounts: Accounts,
        limits: TransactionPoolLimits | None = None,
        order: Order = "fees",
        dropped: Callable[[Transaction, str], None] = lambda _, __: None,
    ) -> None:
        """`dropped` gets those that are dropped without a command, and why."""
        self._order: Order = order
        self._terms = terms
        self._accounts = accounts
        self._dropped = dropped
        self._limits = limits or TransactionPoolLimits()
        self._arrivals = 0
        self._queues: dict[bytes, SenderQueue] = {}
        self._by_hash: dict[bytes, Pooled] = {}
        self._gapped = 0
        self._size = 0
        self._gapped_size = 0

        # Which comes next, and which do not fit into the index that is being filled.
        self._next = self._rank_heads()
        self._deferred: list[Pooled] = []

        # Which is dropped first from a full pool.
        self._cheapest = Cheapest(self._queues, terms.base_fee)

    def __len__(self) -> int:
        return len(self._by_hash)

    def __iter__(self) -> Iterator[Transaction]:
        """All of them, in the order in which they came."""
        by_arrival = sorted(self._by_hash.values(), key=lambda each: each.arrival)
        return (each.transaction for each in by_arrival)

    def __contains__(self, hash: object) -> bool:
        return hash in self._by_hash

    @property
    def gapped(self) -> int:
        """How many wait for a nonce before theirs."""
        return self._gapped

    @property
    def size(self) -> int:
        """Bytes of all, as they are encoded."""
        return self._size

    @property
    def gapped_size(self) -> int:
        """Bytes of those that wait for a nonce before theirs."""
        return self._gapped_size

    def get(self, hash: bytes) -> Transaction | None:
        """The transaction with this hash, if it waits."""
        pooled = self._by_hash.get(hash)
        return None if pooled is None else pooled.transaction

    def of_sender(self, sender: bytes) -> list[tuple[Transaction, bool]]:
        """A sender's transactions, each with whether it waits for no nonce."""
        queue = self._queues.get(sender)
        return (
            [] if queue is None else [(each.transaction, each.nonce < queue.end) for each in queue]
        )

    def senders(self) -> Iterator[bytes]:
        """Those whose transactions wait."""
        return iter(self._queues)

    def content(self) -> list[tuple[Transaction, bool]]:
        """All transactions, each with whether it waits for no nonce."""
        return [
            (each.transaction, each.nonce < queue.end)
            for queue in self._queues.values()
            for each in queue
        ]

    def next_nonce(self, sender: bytes) -> int:
        """The nonce that follows the sender's account and all that can run after it."""
        queue, _ = self._look_up(sender)
        return queue.end

    # --- Coming in -------------------------------------------------------------------

    def add(self, transaction: Transaction, *, may_replace: bool = True) -> list[Pooled]:
        """Add a transaction, or raise a `PoolRefusal`; returns those dropped for it."""
        if transaction.hash in self._by_hash:
            raise AlreadyKnown
        pooled = admit(transaction, self._terms, self._arrivals)
        queue, balance = self._look_up(pooled.sender)
        old = queue.get(pooled.nonce)
        _check_account(pooled, queue, balance, old)
        if old is not None and not (may_replace and outbids(pooled, old)):
            raise ReplacementUnderpriced
        gone = self._victims(pooled, queue, old)
        for each in gone:
            self._remove(each)
            self._dropped(each.transaction, "the pool is full")
        if old is not None:
            gone.append(old)
            self._forget(old)
            self._dropped(old.transaction, f"replaced by 0x{transaction.hash.hex()}")
        self._arrivals += 1
        self._put(pooled, queue)
        return gone

    def _look_up(self, sender: bytes) -> tuple[SenderQueue, int]:
        """A sender's queue, brought up to its account, and its balance."""
        account = self._accounts(sender)
        nonce, balance = (account.nonce, account.balance) if account else (0, 0)
        queue = self._queues.get(sender)
        if queue is None:
            return SenderQueue(nonce), balance
        if queue.first != nonce:
            self._move_to(queue, nonce)
        return queue, balance

    def _put(self, pooled: Pooled, queue: SenderQueue) -> None:
        self._queues[pooled.sender] = queue
        self._count_out(queue)
        queue.put(pooled)
        self._count_in(queue)
        self._by_hash[pooled.hash] = pooled
        self._size += pooled.size
        if queue.head is pooled:
            self._push_head(queue)
        self._cheapest.came(pooled, queue)

    def _victims(self, newcomer: Pooled, queue: SenderQueue, old: Pooled | None) -> list[Pooled]:
        """The transactions to drop for it, besides the one that it replaces.

        Nothing is removed yet, so a refused newcomer leaves the pool as it was.
        """
        gapped = newcomer.nonce > queue.end
        number, size = self._overshoot(newcomer, old, gapped=gapped)
        victims = []
        if old is None and len(queue) >= self._limits.of_a_sender:
            last = queue.last
            if newcomer.nonce > last.nonce:
                raise SenderLimitReached(len(queue))
            victims.append(last)
            number, size = number - 1, size - last.size
        if number <= 0 and size <= 0:
            return victims
        spared = (old, *victims)
        cheapest = self._cheapest
        with closing(
            cheapest.for_gapped(newcomer, spared) if gapped else cheapest.for_ready(newcomer)
        ) as candidates:
            for each in candidates:
                victims.append(each)
                number, size = number - 1, size - each.size
                if number <= 0 and size <= 0:
                    return victims
        raise TransactionPoolFull

    def _overshoot(self, newcomer: Pooled, old: Pooled | None, *, gapped: bool) -> tuple[int, int]:
        """By how many transactions and bytes the newcomer exceeds the limits."""
        limits = self._limits
        number, size = (1, newcomer.size) if old is None else (0, newcomer.size - old.size)
        too_many = len(self) + number - limits.in_all
        too_large = self._size + size - limits.size
        if gapped:
            too_many = max(too_many, self._gapped + number - limits.gapped)
            too_large = max(too_large, self._gapped_size + size - limits.gapped_size)
        return too_many, too_large

    # --- Into a block ----------------------------------------------------------------

    def begin_block(self, terms: Terms) -> None:
        """Order everything by the terms of the next block."""
        self._terms = terms
        self._deferred.clear()
        self._next = self._rank_heads()
        self._cheapest.begin_block(terms.base_fee)

    def begin_index(self) -> None:
        """Give those that did not fit another chance: the block has more space."""
        for each in self._deferred:
            self._next.push(each)
        self._deferred.clear()

    def best(self) -> Pooled | None:
        """The one to run next."""
        return self._next.first()

    def defer(self, pooled: Pooled) -> None:
        """Put the best one aside, which does not fit into this index."""
        self._next.pop()
        self._deferred.append(pooled)

    def included(self, pooled: Pooled) -> None:
        """Remove the best one, which has run; the next of its sender may follow."""
        self._next.pop()
        self._forget(pooled)
        queue = self._queues[pooled.sender]
        queue.take_head()
        self._push_head(queue)
        self._forget_if_empty(pooled.sender, queue)

    def failed(self, pooled: Pooled, why: str = "it cannot run") -> None:
        """Drop the best one, which cannot run, unless it was only out of turn."""
        self._next.pop()
        queue, _ = self._look_up(pooled.sender)
        if queue.head is pooled:
            self._remove(pooled)
            self._dropped(pooled.transaction, why)
            self._cheapest.forget()
            self._trim_gapped()

    # --- Dropping --------------------------------------------------------------------

    def drop(self, hashes: Iterable[bytes]) -> list[bytes]:
        """Drop these transactions, which wait; returns their hashes."""
        dropped = list(hashes)
        for each in dropped:
            self._remove(self._by_hash[each])
        self._cheapest.forget()
        self._trim_gapped()
        return dropped

    def drop_invalid(self) -> list[Pooled]:
        """Drop the transactions that no block will take, as accounts are now; returns them."""
        before = dict(self._by_hash)
        cap = self._terms.transaction_gas_cap  # a fork may have brought it
        for sender in list(self._queues):
            queue, balance = self._look_up(sender)
            for each in list(queue):
                if each.cost > balance or (cap is not None and each.gas_limit > cap):
                    self._remove(each)
                    self._dropped(each.transaction, "its sender cannot pay for it any more")
        self._cheapest.forget()
        self._trim_gapped()
        return [each for hash_, each in before.items() if hash_ not in self._by_hash]

    def _move_to(self, queue: SenderQueue, nonce: int) -> None:
        self._count_out(queue)
        below = queue.move_to(nonce)
        self._count_in(queue)
        for each in below:
            self._forget(each)
            self._dropped(each.transaction, f"nonce too low: next nonce {nonce}, tx {each.nonce}")
            self._forget_if_empty(each.sender, queue)
        self._push_head(queue)
        self._cheapest.forget()

    def _remove(self, pooled: Pooled) -> None:
        queue = self._queues[pooled.sender]
        self._count_out(queue)
        queue.remove(pooled.nonce)
        self._count_in(queue)
        self._forget(pooled)
        self._cheapest.went(queue)
        self._forget_if_empty(pooled.sender, queue)

    def _trim_gapped(self) -> None:
        """Dropping one makes those after it wait, and they may be too many then."""
        limits = self._limits
        while self._gapped > limits.gapped or self._gapped_size > limits.gapped_size:
            victim = self._cheapest.of_gapped()
            assert victim is not None
            self._remove(victim)
            self._dropped(victim.transaction, "too many wait for a nonce")

    def _forget(self, pooled: Pooled) -> None:
        del self._by_hash[pooled.hash]
        self._size -= pooled.size

    def _count_out(self, queue: SenderQueue) -> None:
        """Take a queue out of the totals before it changes; `_count_in` adds it again."""
        self._gapped -= queue.gapped
        self._gapped_size -= queue.gapped_size

    def _count_in(self, queue: SenderQueue) -> None:
        self._gapped += queue.gapped
        self._gapped_size += queue.gapped_size

    def _forget_if_empty(self, sender: bytes, queue: SenderQueue) -> None:
        if not queue:
            self._queues.pop(sender, None)

    # --- Orders ----------------------------------------------------------------------

    def _push_head(self, queue: SenderQueue) -> None:
        head = queue.head
        if head is not None and head.pays(self._terms.base_fee):
            self._next.push(head)

    def _rank_heads(self) -> Ranking:
        base_fee = self._terms.base_fee
        heads = (queue.head for queue in self._queues.values())
        paying = (each for each in heads if each is not None and each.pays(base_fee))
        return Ranking(paying, run_key(self._order, base_fee), self._is_head)

    def _is_head(self, pooled: Pooled) -> bool:
        queue = self._queues.get(pooled.sender)
        return queue is not None and queue.head is pooled


def _check_account(pooled: Pooled, queue: SenderQueue, balance: int, old: Pooled | None) -> None:
    """Check a transaction against its sender's account, in geth's order."""
    if pooled.nonce < queue.first:
        raise NonceTooLow(queue.first, pooled.nonce)
    if pooled.cost > balance:
        raise InsufficientFunds(balance, pooled.cost)
    queued = queue.cost
    if old is not None and old.nonce < queue.end:
        queued -= old.cost
    if queued + pooled.cost > balance:
        raise Overdrawn(balance, queued, pooled.cost)


def outbids(new: Pooled, old: Pooled) -> bool:
    """Return True if both fee fields exceed the old ones by at least a tenth."""
    return all(
        after > before and after >= before * 110 // 100
        for after, before in ((new.fee_cap, old.fee_cap), (new.tip_cap, old.tip_cap))
    )
