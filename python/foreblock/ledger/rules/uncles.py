"""Rules for the uncles of a mined block.

An uncle is a block that lost: a valid header whose parent is an ancestor of ours, at
most six generations back, that is not itself an ancestor and was not named before.
The reward for naming one is in `execution`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foreblock._engine import Header
from foreblock.errors import BadBlock
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.header_rules import check_header
from foreblock.ledger.rules.profile import ChainProfile

MAXIMUM_UNCLES: Final = 2  # yellow paper
MAXIMUM_DEPTH: Final = 6  # yellow paper: generations between a block and its uncle


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A block before ours, with the hashes of the uncles it named."""

    header: Header
    uncles: tuple[bytes, ...]


# The parent of the oldest uncle is one generation further back.
ANCESTORS_NEEDED: Final = MAXIMUM_DEPTH + 1


def check_uncles(
    number: int, uncles: Sequence[Header], ancestors: Sequence[Ancestor], profile: ChainProfile
) -> None:
    """Check the uncles of block `number`, whose ancestors are given oldest first."""
    check = Check(number)
    check.at_most("number of uncles", MAXIMUM_UNCLES, len(uncles))
    headers = {ancestor.header.hash: ancestor.header for ancestor in ancestors[-ANCESTORS_NEEDED:]}
    named = {uncle for ancestor in ancestors[-ANCESTORS_NEEDED:] for uncle in ancestor.uncles}
    for index, uncle in enumerate(uncles):
        what = f"uncle {index}"
        check.within(f"number of {what}", max(number - MAXIMUM_DEPTH, 1), uncle.number, number - 1)
        if uncle.hash in headers:
            check.fail(what, "a block that is no ancestor", uncle.hash)
        if uncle.hash in named:
            check.fail(what, "a block not named before", uncle.hash)
        parent = headers.get(uncle.parent_hash)
        if parent is None:
            check.fail(f"parent hash of {what}", "a recent ancestor", uncle.parent_hash)
        _check_uncle_header(check, what, uncle, parent, profile)
        named.add(uncle.hash)


def _check_uncle_header(
    check: Check, what: str, uncle: Header, parent: Header, profile: ChainProfile
) -> None:
    rules = profile.rules(uncle.number, uncle.timestamp, merged=False)
    parent_rules = profile.rules(parent.number, parent.timestamp, merged=False)
    try:
        check_header(uncle, parent, rules, parent_rules, profile)
    except BadBlock as bad:
        check.fail(f"{bad.what} of {what}", bad.expected, bad.found)
