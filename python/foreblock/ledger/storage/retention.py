"""How much of the past a store keeps, in blocks behind the latest.

Blocks, their transactions and receipts stay. What goes are the states that calls and
balances are read from, the flashblocks that blocks were made of, and trie nodes, which only
reorganisations need. A value; the store prunes by it, and so do the rows of partials.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept; an import keeps all states."""

    states: int | None = None
    partials: int = 64
    nodes: int = 128
