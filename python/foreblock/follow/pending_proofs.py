"""Proofs of blocks that are not executed here yet: an upstream may be ahead, or prove its tip only.

Such a proof shows nothing by itself: at its block a key may have another value than here. If its
nodes fit a block that is here, it is rebased to that block. Otherwise it is kept until its own
block arrives. Requesting it again instead would never end with a tip that always moves on.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from foreblock.follow.fetch_result import ClaimedProof
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import keccak256

MOST_KEPT: Final = 2048  # proofs; those that came first are forgotten
LONGEST_KEPT: Final = 8  # blocks; one that has not come by then is of another branch

Fit = Callable[[ClaimedProof], ClaimedProof | None]


class _Early(NamedTuple):
    root: bytes
    came: int  # when this block was the latest
    at: float  # and at this time, in seconds
    proof: ClaimedProof

    def is_about(self, wanted: StateKeys) -> bool:
        address = self.proof.address
        slots = wanted.slots.get(address, ())
        return address in wanted.accounts or any(each.slot in slots for each in self.proof.slots)


class PendingProofs:
    """Those of one epoch."""

    def __init__(self, fit: Fit | None = None) -> None:
        """`fit` gives a proof of the same keys at a block that is here, if the nodes allow it."""
        self._fit: Final = fit
        self._kept: Final[deque[_Early]] = deque(maxlen=MOST_KEPT)

    def take(self, proof: ClaimedProof, latest: int, now: float) -> ClaimedProof | None:
        """Return the proof rebased to a block that is here; None if it is kept instead.

        `latest` is the latest block here, `now` the time in seconds.
        """
        if not proof.nodes:
            return None
        fitted = self._fit(proof) if self._fit is not None else None
        if fitted is None:
            self._kept.append(_Early(keccak256(proof.nodes[0]), latest, now, proof))
        return fitted

    def ready_for(
        self, wanted: StateKeys, roots: Collection[bytes], latest: int
    ) -> Iterator[ClaimedProof]:
        """Those about some of these keys whose block has come."""
        while self._kept and self._kept[0].came + LONGEST_KEPT < latest:
            self._kept.popleft()
        return (each.proof for each in self._kept if each.root in roots and each.is_about(wanted))

    def waited_for(self, roots: Collection[bytes], since: float) -> StateKeys:
        """The keys of those that came since then and wait for their block.

        To ask for them again would bring the same.
        """
        slots: dict[bytes, set[int]] = {}
        for each in self._kept:
            if each.at > since and each.root not in roots:
                known = slots.setdefault(each.proof.address, set())
                known.update(slot.slot for slot in each.proof.slots)
        accounts = frozenset(slots)
        keys = {address: frozenset(some) for address, some in slots.items() if some}
        return StateKeys(accounts, keys, codes_of=accounts)

    def may_settle(self, wanted: StateKeys, roots: Collection[bytes]) -> bool:
        """Return True if a proof of some of these keys waits for its block."""
        return any(each.root not in roots and each.is_about(wanted) for each in self._kept)
