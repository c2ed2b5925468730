"""A proof that somebody else has made, checked against the root of a block.

It is used like one that the engine makes (`proofs`).
"""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Account, Learned, keccak256
from foreblock.errors import BadProof, UntrueState
from foreblock.ledger.reading.learned_state import AccountProof
from foreblock.ledger.rules.empty_roots import EMPTY_ROOT

_HASH: Final = b"\xa0"  # before 32 bytes in RLP


class GivenProof:
    """An account and some of its slots, proven."""

    def __init__(
        self, account: Account | None, given: AccountProof, storage_root: bytes, values: list[int]
    ) -> None:
        self.account: Final = account
        self.account_nodes: Final[Sequence[bytes]] = given.nodes
        self.storage_root: Final = storage_root
        self._slots: Final = {
            each.slot: (value, each.nodes) for each, value in zip(given.slots, values, strict=True)
        }

    def of(self, slots: Sequence[int]) -> list[tuple[int, Sequence[bytes]]]:
        """The values of these slots, each with its nodes."""
        return [self._slots[slot] for slot in slots]


def check_proof(given: AccountProof, storage_root: bytes, root: bytes) -> GivenProof:
    """The proof, if it leads from this root and has this storage root; raises `UntrueState`."""
    wanted = [(each.slot, list(each.nodes)) for each in given.slots]
    try:
        account, values = Learned(0, nodes=False).prove(
            root, given.address, list(given.nodes), wanted
        )
    except BadProof as why:
        raise UntrueState(str(why)) from None
    if account is None:
        return GivenProof(None, given, EMPTY_ROOT, values)
    # A leaf ends with the root of the storage and the hash of the code.
    if not given.nodes[-1].endswith(_HASH + storage_root + _HASH + account.code_hash):
        raise UntrueState("the storage root is another one")
    for each in given.slots:
        if each.nodes and keccak256(each.nodes[0]) != storage_root:
            raise UntrueState("the proof of a slot begins elsewhere")
    return GivenProof(account, given, storage_root, values)
