"""A store with a partial base: missing keys of an execution, and fetched values."""

from collections.abc import Mapping, Sequence
from typing import Final, Self, final

from foreblock._engine.state import Account

@final
class StateBase:
    """The state below all blocks of a store, as of one block: the anchor.

    On a complete base, a key that is not in the store does not exist. On a partial base, the store
    only has the fetched values: a key that is not in it is unknown.
    """

    is_complete: Final[bool]
    number: Final[int]  # of the anchor; with a complete base, this and the rest are 0
    hash: Final[bytes]
    root: Final[bytes]  # the anchor's state root, from its header
    epoch: Final[int]  # raised by every new anchor; values of another epoch are not used

@final
class MissingKeys:
    """The keys that an execution needed and that are unknown."""

    accounts: Final[list[bytes]]
    slots: Final[dict[bytes, list[int]]]
    codes: Final[dict[bytes, bytes]]  # by hash: the address of an account that has it, or empty
    blocks: Final[list[int]]  # whose hashes are missing
    # Not keys: the preimages of some of the slots, by hash the two words (64 bytes) that were
    # hashed. Not pickled.
    hashed: Final[dict[bytes, bytes]]
    # Not keys: accounts that were destroyed after the anchor, each with a block before that. Only
    # proofs up to that block contain their slots.
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
        """The union of both."""

    def __bool__(self) -> bool: ...
    def __len__(self) -> int:
        """The number of keys."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class FetchedState:
    """Fetched values of the anchor's state that are not in the store, of one epoch.

    All threads may read and write it concurrently. The first value of a key is kept. Slots that
    follow from the nodes of other proofs are known too; reading one inserts it. Above `limit` bytes
    the oldest entries are evicted. After it was passed to `learn` of a store or a batch, entries
    are only evicted once they are stored.
    """

    def __new__(cls, epoch: int, *, limit: int = ..., nodes: bool = True) -> Self:
        """Create an empty one; the default limit is 64 MiB.

        Without `nodes`, proof nodes are verified but not stored; storage nodes are cached. Only
        roots need the nodes, and they are most of the data.
        """

    epoch: Final[int]
    @property
    def size(self) -> int:
        """The approximate size in bytes."""

    @property
    def unstored(self) -> int:
        """The number of values and nodes that no `learn` has stored yet."""

    def put_account(
        self, address: bytes, account: Account | None, storage_root: bytes | None = None
    ) -> None:
        """Insert an account as reported, None if it does not exist.

        The generation is ignored. With an empty storage root all its slots are known. A later root
        replaces the first, a later account does not.
        """

    def put_slots(self, address: bytes, values: Mapping[int, int]) -> None:
        """Insert slot values as reported."""

    def put_code(self, code: bytes) -> bytes:
        """Insert a code; return its hash."""

    def put_block(self, number: int, hash: bytes) -> None:
        """Insert the hash of a block below the anchor."""

    def remember_nodes_of(self, other: FetchedState) -> None:
        """Copy the nodes of another epoch, which are valid by their hashes.

        The slots of an account that is proven with the same storage root are then known without
        fetching them.
        """

    def put_nodes(self, nodes: Sequence[bytes]) -> None:
        """Insert trie nodes. They are used wherever their hashes are referenced."""

    def prove(
        self,
        root: bytes,
        address: bytes,
        account_proof: Sequence[bytes],
        slots: Sequence[tuple[int, Sequence[bytes]]],
        *,
        same_life: bool = True,
    ) -> tuple[Account | None, list[int]]:
        """Verify a proof, and insert the account and the slots that it proves.

        Returns the account and the values of the slots, in order. The nodes are inserted too.
        Raises `BadProof`, and inserts nothing, if a node does not match or the proof is for another
        key.

        `same_life` is `State.is_same_life_as_anchor` at the block of that root. If it is False, the
        proof does not apply to the anchor, and only its nodes are inserted.
        """
