"""A follower that begins at an anchor and learns missing state from the truth, by proofs."""

import random
from pathlib import Path
from typing import Any

from foreblock._engine import Block, FetchedState
from foreblock.clock import DrivenClock
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.storage.open_store import Anchor, begin_at, is_empty
from foreblock.types import Flashblock
from support.chains.following import Following, Truth
from support.chains.profiles import JOVIAN
from support.chains.writing import genesis

MOST_ROUNDS = 32


class PartialFollowing(Following):
    """A follower with a store that knows a part of its base."""

    def __init__(
        self,
        folder: Path,
        truth: Truth,
        anchor: int,
        seed: int = 0,
        config: dict[str, Any] = JOVIAN,
        run_bounds: RunBounds | None = None,
        clock: DrivenClock | None = None,
    ) -> None:
        self.truth = truth
        self.anchor = truth.headers[anchor]
        self.chance = random.Random(seed)
        self.rounds = 0
        super().__init__(folder, config=config, run_bounds=run_bounds, clock=clock)

    def begin(self) -> FetchedState:
        with self.store.view() as view:
            is_new = is_empty(view)
        if is_new:
            begin_at(self.store, Anchor(self.anchor), read_genesis(genesis(self.config)).config)
        with self.store.view() as view:
            self.learned = FetchedState(view.heads.base.epoch)
        self.store.set_fallback_state(self.learned)
        return self.learned

    def hear(self, *messages: Flashblock, feed: str = "a") -> None:
        """Receive messages one by one, and learn the state they need."""
        for message in messages:
            self.receive(message, feed=feed)
            self.learn()
            self.run_until_idle()

    def learn(self) -> None:
        """Learn until no waiting message needs more state."""
        for _ in range(MOST_ROUNDS):
            wanted = self.follower.take_wanted()
            if not wanted:
                return
            self.prove(wanted)
            self.follower.try_again(learned=True)
        raise AssertionError(f"still wanted: {wanted}")

    def canonical(self, *blocks: Block) -> None:
        """Receive sealed blocks, each as often as necessary."""
        for block in blocks:
            for _ in range(MOST_ROUNDS):
                self.follower.canonical(block)
                wanted = self.follower.take_wanted()
                if not wanted:
                    break
                self.prove(wanted)
            self.learn()
            self.run_until_idle()

    def prove(self, wanted: MissingState, at: int | None = None) -> None:
        """Prove keys against the state root of any block executed here."""
        self.rounds += 1
        if at is None:
            at = self.chance.randint(self.anchor.number, self.latest)
        root = self.truth.headers[at].state_root
        with self.truth.store.view() as view:
            state = view.state(at)
            for address in wanted.accounts | wanted.slots.keys():
                slots = sorted(wanted.slots.get(address, ()))
                proof = state.prove(address, slots)
                nodes = [(slot, proof.slot(place)[1]) for place, slot in enumerate(slots)]
                with self.store.view() as here:
                    same_life = here.state(at).is_same_life_as_anchor(address)
                self.learned.prove(root, address, proof.account_nodes, nodes, same_life=same_life)
            for address in wanted.contracts | set(wanted.codes.values()):
                if address:
                    self.learned.put_code(state.code(address))
            for number in wanted.blocks:
                self.learned.put_block(number, self.truth.headers[number].hash)
