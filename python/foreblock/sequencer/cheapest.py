"""Who makes room in a full pool, and in which order: the lowest tip first, of equals the last.

What waits for a nonce goes before what can run, and of what can run only the last of each
sender, which leaves no gap. Candidates are named one after the other and nothing goes
meanwhile, so that a newcomer may still be refused. Orders are made when they are first needed
in a block and kept up to date from then on.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import closing
from typing import Final

from foreblock.errors import Underpriced
from foreblock.sequencer.pooled import Pooled
from foreblock.sequencer.ranking import Ranking
from foreblock.sequencer.sender_queue import SenderQueue


class Cheapest:
    """The order in which the members of a pool's queues would go."""

    def __init__(self, queues: Mapping[bytes, SenderQueue], base_fee: int) -> None:
        """`queues` are the pool's own, by sender, and change with it."""
        self._queues: Final = queues
        self._base_fee = base_fee
        self._gapped: Ranking | None = None
        self._tails: Ranking | None = None

    def begin_block(self, base_fee: int) -> None:
        """Tips are others now."""
        self._base_fee = base_fee
        self.forget()

    def forget(self) -> None:
        """Make the orders anew when they are needed again."""
        self._gapped = None
        self._tails = None

    def came(self, pooled: Pooled, queue: SenderQueue) -> None:
        """One is in its queue."""
        if pooled.nonce >= queue.end:
            _push(self._gapped, pooled)
        else:
            _push(self._tails, queue.tail)

    def went(self, queue: SenderQueue) -> None:
        """One has left its queue, which may have another tail now."""
        _push(self._tails, queue.tail)

    def of_gapped(self) -> Pooled | None:
        """The cheapest of those that wait for a nonce."""
        return self._rank_gapped().first()

    def for_gapped(self, newcomer: Pooled, spared: Collection[Pooled | None]) -> Generator[Pooled]:
        """Who may go for what cannot run: what cannot either. Raises `Underpriced`."""
        with closing(self._rank_gapped().in_turn()) as waiting:
            for each in waiting:
                if each not in spared:
                    self._refuse_unless_above(newcomer, each)
                    yield each

    def for_ready(self, newcomer: Pooled) -> Generator[Pooled]:
        """Who may go for what can run: of others, what cannot, then what can.

        Never its own sender's, on which it may build. Raises `Underpriced`.
        """
        with closing(self._rank_gapped().in_turn()) as waiting:
            for each in waiting:
                if each.sender != newcomer.sender:
                    yield each
        with closing(self._rank_tails().in_turn(self._before)) as tails:
            for each in tails:
                if each.sender != newcomer.sender:
                    self._refuse_unless_above(newcomer, each)
                    yield each

    def _refuse_unless_above(self, newcomer: Pooled, victim: Pooled) -> None:
        if newcomer.tip(self._base_fee) <= victim.tip(self._base_fee):
            raise Underpriced

    def _before(self, pooled: Pooled) -> Pooled | None:
        """The one that is its sender's last to run when this one has gone."""
        queue = self._queues[pooled.sender]
        return queue.get(pooled.nonce - 1) if pooled.nonce > queue.first else None

    def _rank_gapped(self) -> Ranking:
        if self._gapped is None:
            members = (each for queue in self._queues.values() for each in queue)
            self._gapped = self._rank(filter(self._is_gapped, members), self._is_gapped)
        return self._gapped

    def _rank_tails(self) -> Ranking:
        if self._tails is None:
            tails = (queue.tail for queue in self._queues.values())
            self._tails = self._rank((each for each in tails if each is not None), self._is_tail)
        return self._tails

    def _rank(self, members: Iterable[Pooled], holds: Callable[[Pooled], bool]) -> Ranking:
        base_fee = self._base_fee
        return Ranking(members, lambda each: (each.tip(base_fee), -each.arrival), holds)

    def _is_tail(self, pooled: Pooled) -> bool:
        queue = self._queues.get(pooled.sender)
        return queue is not None and queue.tail is pooled

    def _is_gapped(self, pooled: Pooled) -> bool:
        queue = self._queues.get(pooled.sender)
        return queue is not None and pooled.nonce >= queue.end and queue.get(pooled.nonce) is pooled


def _push(ranking: Ranking | None, pooled: Pooled | None) -> None:
    if ranking is not None and pooled is not None:
        ranking.push(pooled)
