"""A chain that is followed over a partial base: how far it is believed.

The base is in the heads of every commit; how what is known of it was learned, the writer has noted
(`storage.follow_rows`), and every answer says it.
"""

from foreblock._engine import StateBase


def header_members(base: StateBase, trust: str) -> str:
    """What the `Foreblock-Snapshot` header says of a partial base."""
    return f"; base={base.number:#x}:0x{base.hash.hex()}; trust={trust}"


def base_fact(base: StateBase, trust: str) -> str:
    """The base as a fact for operators."""
    place = f"block {base.number}, epoch {base.epoch}, 0x{base.hash.hex()}"
    return f"base: {place}; what is learned of its state is {trust}"
