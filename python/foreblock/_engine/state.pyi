"""State: accounts and storage as of a block, changes to them, and tries over both."""

from collections.abc import Mapping, Sequence
from typing import Final, Self, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay
from foreblock._engine.fetched_state import FetchedState, MissingKeys
from foreblock._engine.witness import Recording

@final
class Account:
    """An existing account; one that does not exist is None, an empty one is not."""

    nonce: Final[int]
    balance: Final[int]
    code_hash: Final[bytes]
    generation: Final[int]  # the number under which this life of the account began

    def __new__(
        cls,
        *,
        nonce: int = ...,
        balance: int = ...,
        code_hash: bytes | None = None,
        generation: int = ...,
    ) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class State:
    """State as of one block or partial block of a view.

    Above a partial base every read and every run may raise `StateMissing`.
    """

    @property
    def sealed_block(self) -> int:
        """The block that it is of, or the sealed one that its partial blocks stand on."""

    def with_learned(self, learned: FetchedState | None) -> State:
        """The same state above other learned values than those of `Store.set_fallback_state`."""

    def missing(
        self, accounts: Sequence[bytes], slots: Mapping[bytes, Sequence[int]] | None = None
    ) -> MissingKeys:
        """Which of these keys are unknown, and the codes of those accounts that are.

        None are above a complete base.
        """

    def is_same_life_as_anchor(self, address: bytes) -> bool:
        """Return whether, as far as is known, the account was not destroyed since the anchor.

        Only then a proof of this state says what its slots were at blocks before; true above a
        complete base.
        """

    def account(self, address: bytes) -> Account | None: ...
    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def block_hash(self, number: int) -> bytes:
        """The hash of a block at or below this one; 32 zero bytes when unknown."""

    def index(self, key: bytes) -> bytes | None:
        """A row that came with a block of this state's chain."""

    def accounts(self, after: bytes | None, limit: int) -> list[tuple[bytes, Account]]:
        """Up to `limit` existing accounts above the address `after`, in order.

        `IncompleteState` above a partial base, as for `slots`.
        """

    def slots(self, address: bytes, after: int | None, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` non-zero slots above the slot `after`, in order."""

    def overlay(self, *, remember: bool = False) -> Overlay:
        """An empty overlay above this state.

        With `remember` it reads each account and slot once, which pays for many blocks.
        """

    def trie(self, *, rebuild: bool = False, root: bytes | None = None) -> StateTrie:
        """The trie of this state, for roots after changes: `PrunedState`.

        Only nodes of the last blocks are kept. With `rebuild` it is built from an older state,
        in time proportional to the size of that state. Above a partial base `root` is that of
        the sealed block that the state is of, or stands on: `MissingTrieNodes`, `IncompleteState`.
        """

    def record(
        self,
        *,
        root: bytes | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Recording:
        """This state with notes of what is read of it; `DeadlineExceeded`, `root` as in `prove`."""

    def prove(
        self,
        address: bytes,
        slots: Sequence[int],
        *,
        root: bytes | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Proof:
        """An account and some of its slots, with the nodes that prove them (EIP-1186).

        With `step_us` only what is quick is begun: `DeadlineExceeded` for the rest. Below the
        window of nodes it takes in proportion to what has changed since, or to the whole state.
        Above a partial base `root` is as in `trie`: `MissingTrieNodes`, `IncompleteState`.
        """

    def call(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """`Overlay.call` on an empty overlay."""

@final
class Proof:
    """What a state says of an account and some slots, with nodes from the root down."""

    account: Final[Account | None]
    account_nodes: Final[list[bytes]]
    storage_root: Final[bytes]

    def slot(self, position: int) -> tuple[int, list[bytes]]:
        """The value of the slot that was asked for at this position, and its nodes."""

    def __len__(self) -> int:
        """The number of slots."""

@final
class Changes:
    """Changes of state by account, before and after."""

    # Address, account before and after, new values of its slots.
    accounts: Final[list[tuple[bytes, Account | None, Account | None, dict[int, int]]]]
    entries: Final[int]  # the number of accounts and slots that changed

    def touches(self, address: bytes) -> bool:
        """Whether something of this account changed."""

    def merge(self, later: Changes) -> Changes:
        """Both, one after the other."""

    def __len__(self) -> int:
        """The number of accounts that changed."""

@final
class StateTrie:
    """The trie of one state with changes applied above it.

    After an exception it must not be used again.
    """

    def apply(self, changes: Changes) -> None:
        """Apply changes that start from the current state of the trie.

        On that of a state above a partial base `MissingTrieNodes`; it can be used further then.
        """

    def root(self) -> bytes: ...
    def storage_root(self, address: bytes) -> bytes:
        """The current storage root of an account."""

    def storage_root_after(self, address: bytes, changes: Changes) -> bytes:
        """The storage root of an account after changes, which are not applied."""

    def needs(self, changes: Changes) -> ProofsNeeded:
        """The proofs without which `apply` and `root` raise `MissingNode`. Applies nothing.

        Apply the changes of a whole block at once: a slot that is set and cleared again in
        between may otherwise need a proof from amid the block, which nobody has.
        """

    def fill(self, nodes: Sequence[bytes], after: bytes | None = None) -> None:
        """Use nodes of proofs where the trie refers to their hashes, until the next `take`.

        They need not be checked before. Of a proof that a key is absent after the changes, the
        node beside the deleted one is made. That a node which is not known is a branch is
        taken from nodes only that the state root `after` the changes leads to.
        """

    def take(self) -> NodeWrites | None:
        """The nodes that changed since the last take, for `Batch.append` or `Batch.seal`.

        None for a trie of `State.trie`: only nodes of the latest block are written.
        """

@final
class ProofsNeeded:
    """Accounts with slots of theirs, of which proofs are needed for a root."""

    # Whose path in the trie is not known; a proof of any state in which the unknown part of the
    # path is as it was before the changes will do.
    before: Final[dict[bytes, list[int]]]
    # That vanish from beside a node that is not known: proofs that they are absent after the
    # changes. Empty as long as `before` is not.
    after: Final[dict[bytes, list[int]]]

    def preimages_for_paths(self) -> dict[bytes, list[int]] | None:
        """Keys whose proofs before the changes do as well as those of `after`.

        They are found by search, in up to a second, and mostly belong to no account. None if a
        node is too deep in its trie.
        """

    def __bool__(self) -> bool: ...

@final
class NodeWrites:
    """Trie nodes to be written or removed."""

    def __len__(self) -> int: ...

@final
class GrowingRoot:
    """The root of an ordered list that grows; adding costs the same at any length.

    For the transactions and receipts of a block in progress.
    """

    def __new__(cls) -> Self: ...
    def push(self, item: bytes) -> None:
        """Add the next item, encoded as in the trie."""

    def root(self) -> bytes: ...
    def __len__(self) -> int: ...
