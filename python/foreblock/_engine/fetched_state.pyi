"""A store that knows only a part of its base: the keys that a run missed, and fetched values."""

from collections.abc import Mapping, Sequence
from typing import Final, Self, final

from foreblock._engine.state import Account

@final
class StateBase:
    """The state below everything that a store holds, as of one block: the anchor.

    A complete base has all of it: what is not in the store does not exist. Of a partial one the
    store knows what was learned: what is not in it is unknown.
    """

    is_complete: Final[bool]
    number: Final[int]  # of the anchor; 0 with a complete base, as the rest
    hash: Final[bytes]
    root: Final[bytes]  # of the anchor's state, as its header has it
    epoch: Final[int]  # raised by every new anchor; values of another epoch are not used

@final
class MissingKeys:
    """The keys that a run wanted and did not find."""

    accounts: Final[list[bytes]]
    slots: Final[dict[bytes, list[int]]]
    codes: Final[dict[bytes, bytes]]  # by hash: an account that has it, or no address
    blocks: Final[list[int]]  # whose hashes were wanted
    # No keys: how the numbers of some of the slots came about, by a hash the two words (64 bytes)
    # that the run has hashed. It stays in its process.
    hashed: Final[dict[bytes, bytes]]
    # Not keys either: accounts that were destroyed after the anchor, each with a block before that.
    # Only proofs up to that block have their slots.
    destroyed_after: Final[dict[bytes, int]]

    def __new__(
        cls,
        accounts: Sequence[bytes] = ...,
        slots: Mapping[bytes, Sequence[int]] | None = None,
        codes: Mapping[bytes, bytes] | None = None,
        blocks: Sequence[int] = ...,
        destroyed_after: Mapping[bytes, int] | None = None,
    ) -> Self: ...
    def also(self, other: MissingKeys) -> MissingKeys:
        """The keys of both."""

    def __bool__(self) -> bool: ...
    def __len__(self) -> int:
        """The number of keys."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class FetchedState:
    """Values of the anchor's state that are known beside the store, of one epoch.

    Any thread may fill and read it at any time. What is known stays: a second value of a key is
    not taken. Known are also slots that follow from the nodes of proofs of others; one of them
    that is read is learned as any other. With more than `limit` bytes, what was learned first is
    forgotten. Once `learn` of a store or a batch was given it, nothing goes before it is stored.
    """

    def __new__(cls, epoch: int, *, limit: int = ..., nodes: bool = True) -> Self:
        """An empty one; the limit is 64 MiB if none is given.

        Without `nodes` those of proofs are checked and not stored; those of storage are
        remembered. Only roots need them, and they are most of what is learned.
        """

    epoch: Final[int]
    @property
    def size(self) -> int:
        """The bytes that it takes, about."""

    @property
    def unstored(self) -> int:
        """Values and nodes that no `learn` has stored yet."""

    def put_account(
        self, address: bytes, account: Account | None, storage_root: bytes | None = None
    ) -> None:
        """Take an account as it is said to be, None for one that does not exist.

        The generation is not looked at. With the root of no storage all its slots are known.
        A later root takes the place of the first, the account does not.
        """

    def put_slots(self, address: bytes, values: Mapping[int, int]) -> None:
        """Take values of slots as they are said to be."""

    def put_code(self, code: bytes) -> bytes:
        """Take a code; gives its hash."""

    def put_block(self, number: int, hash: bytes) -> None:
        """Take the hash of a block below the anchor."""

    def remember_nodes_of(self, other: FetchedState) -> None:
        """Remember the storage nodes of another epoch, which are right by their hashes.

        An account that is proven with the same root has the same slots then, without asking.
        """

    def put_nodes(self, nodes: Sequence[bytes]) -> None:
        """Take trie nodes, whatever their places: they are used where their hashes stand."""

    def prove(
        self,
        root: bytes,
        address: bytes,
        account_proof: Sequence[bytes],
        slots: Sequence[tuple[int, Sequence[bytes]]],
        *,
        same_life: bool = True,
    ) -> tuple[Account | None, list[int]]:
        """Check nodes from the root down, and take the account and the slots that they prove.

        Gives what is proven: the account and the values of the slots, in order. The nodes are
        taken too, by their hashes. `BadProof`, and nothing is taken, where one of them does not
        fit; so is a proof of another key.

        `same_life` is `State.is_same_life_as_anchor` at the block of that root; if it is false,
        the proof says nothing about the anchor, and only its nodes are taken.
        """
