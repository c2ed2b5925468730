"""What a state root costs when little has changed of much."""

import random
from dataclasses import replace
from functools import partial

from foreblock._engine import Changes, StateTrie, Store
from foreblock.bench.measure import Figure, milliseconds

CHANGED = 1000
ROUNDS = 9


def state_roots(store: Store, accounts: list[bytes]) -> list[Figure]:
    """Roots after 1,000 random accounts changed, nodes read from the store each time.

    The nodes of the whole state are built first, which is timed as well. The first round
    after that brings their pages in and is not counted.
    """
    built = milliseconds(lambda: _store_all_nodes(store))
    generator = random.Random(5)  # noqa: S311 - a fixed sample, not a secret
    samples = []
    for _ in range(ROUNDS + 1):
        changes = _credit(store, generator.sample(accounts, CHANGED))
        trie = store.trie()
        samples.append(milliseconds(partial(_root, trie, changes)))
    root = Figure(
        f"state root, {CHANGED:,} of {len(accounts):,} accounts changed", "ms", samples[1:]
    )
    return [
        Figure("all trie nodes built and stored", "ms", [built]),
        replace(root, aim="at most 20 ms", met=root.median <= 20),
    ]


def _root(trie: StateTrie, changes: Changes) -> bytes:
    trie.apply(changes)
    return trie.root()


def _store_all_nodes(store: Store) -> None:
    store.trie()
    batch = store.batch()
    batch.settle()
    store.commit(batch)


def _credit(store: Store, changed: list[bytes]) -> Changes:
    with store.view() as view:
        latest = view.heads.latest
        assert latest is not None
        overlay = view.state(latest[0]).overlay()
        for address in changed:
            overlay.credit(address, 1)
        return overlay.take(view.heads.commit + 1)
