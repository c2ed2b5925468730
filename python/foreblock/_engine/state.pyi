"""State: accounts and storage as of a block, changes to them, and tries of both."""

from collections.abc import Mapping, Sequence
from typing import Final, Self, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay
from foreblock._engine.fetched_state import MissingKeys
from foreblock._engine.witness import Recording

@final
class Account:
    """An existing account, possibly empty. None is used for one that does not exist."""

    nonce: Final[int]
    balance: Final[int]
    code_hash: Final[bytes]
    generation: Final[int]  # the number at which the account was created

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
    """The state as of one block or partial block of a view.

    On a partial base every read and every execution may raise `StateMissing`.
    """

    @property
    def sealed_block(self) -> int:
        """The state's block, or the sealed block that its partial blocks are based on."""

    def missing(
        self, accounts: Sequence[bytes], slots: Mapping[bytes, Sequence[int]] | None = None
    ) -> MissingKeys:
        """Return the unknown keys among these, and the unknown codes of these accounts.

        Empty on a complete base.
        """

    def is_same_life_as_anchor(self, address: bytes) -> bool:
        """Return True unless the account is known to have been destroyed since the anchor.

        Only then does a proof of this state apply to its slots at earlier blocks. Always True on a
        complete base.
        """

    def account(self, address: bytes) -> Account | None: ...
    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def block_hash(self, number: int) -> bytes:
        """The hash of a block at or below this one; 32 zero bytes if unknown."""

    def index(self, key: bytes) -> bytes | None:
        """A row that was committed with a block of this state's chain."""

    def accounts(self, after: bytes | None, limit: int) -> list[tuple[bytes, Account]]:
        """Up to `limit` existing accounts above the address `after`, in order.

        Raises `IncompleteState` on a partial base, as does `slots`.
        """

    def slots(self, address: bytes, after: int | None, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` non-zero slots above the slot `after`, in order."""

    def overlay(self, *, remember: bool = False) -> Overlay:
        """Return an empty overlay on this state.

        With `remember` it caches each account and slot, which pays off over many blocks.
        """

    def trie(self, *, rebuild: bool = False, root: bytes | None = None) -> StateTrie:
        """The trie of this state, for roots after changes; raises `PrunedState`.

        Only the nodes of the last blocks are kept. With `rebuild` the trie of an older state is
        computed by reverting the changes since; above 20,000 changed accounts and slots, it is
        built in time proportional to the size of that state. On a partial base `root` is the state
        root of the sealed block that the state belongs to or is based on; raises `MissingTrieNodes`
        and `IncompleteState`.
        """

    def record(
        self,
        *,
        root: bytes | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Recording:
        """Record what is read of this state; raises `DeadlineExceeded`. `root` is as in `trie`."""

    def prove(
        self,
        address: bytes,
        slots: Sequence[int],
        *,
        root: bytes | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Proof:
        """Prove an account and some of its slots (EIP-1186).

        With `step_us`, longer operations are not started and raise `DeadlineExceeded`. Below the
        node window, the time is proportional to the changes since, or to the whole state. On a
        partial base `root` is as in `trie`; raises `MissingTrieNodes` and `IncompleteState`.
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
        """Equivalent to `Overlay.call` on an empty overlay."""

@final
class Proof:
    """The values of an account and some slots, with their nodes from the root down."""

    account: Final[Account | None]
    account_nodes: Final[list[bytes]]
    storage_root: Final[bytes]

    def slot(self, position: int) -> tuple[int, list[bytes]]:
        """The value and the nodes of the slot requested at this position."""

    def __len__(self) -> int:
        """The number of slots."""

@final
class Changes:
    """State changes by account, before and after."""

    # Address, account before and after, new slot values.
    accounts: Final[list[tuple[bytes, Account | None, Account | None, dict[int, int]]]]
    entries: Final[int]  # the number of accounts and slots that changed

    def touches(self, address: bytes) -> bool:
        """True if the account or its storage changed."""

    def merge(self, later: Changes) -> Changes:
        """Both changes, in sequence."""

    def __len__(self) -> int:
        """The number of accounts that changed."""

@final
class StateTrie:
    """The trie of one state with changes applied.

    After an exception it must not be used again.
    """

    def apply(self, changes: Changes) -> None:
        """Apply changes that are based on the current state of the trie.

        On a partial base it raises `MissingTrieNodes`; the trie remains usable then.
        """

    def root(self) -> bytes: ...
    def storage_root(self, address: bytes) -> bytes:
        """The current storage root of an account."""

    def needs(self, changes: Changes) -> ProofsNeeded:
        """Return the proofs without which `apply` and `root` raise `MissingNode`. Applies nothing.

        Apply the changes of a whole block at once: a slot that is set and then cleared might
        otherwise need a proof from within the block, which does not exist.
        """

    def fill(self, nodes: Sequence[bytes], after: bytes | None = None) -> None:
        """Use proof nodes wherever the trie refers to their hashes, until the next `take`.

        They need not be verified. From a proof that a key is absent after the changes, the sibling
        of the deleted node is reconstructed. A missing node is only accepted as a branch if this
        follows from nodes reachable from the state root `after` the changes.
        """

    def take(self) -> NodeWrites | None:
        """The nodes that changed since the last `take`, for `Batch.append` or `Batch.seal`.

        None for a trie of `State.trie`: only nodes of the latest block are written.
        """

@final
class ProofsNeeded:
    """Accounts and slots whose proofs are needed for a root."""

    # Keys whose path in the trie has unknown nodes. A proof is usable from any state in which the
    # unknown part of the path is the same as before the changes.
    before: Final[dict[bytes, list[int]]]
    # Deleted keys with an unknown sibling node: proofs that they are absent after the changes are
    # needed. Empty unless `before` is empty.
    after: Final[dict[bytes, list[int]]]

    def preimages_for_paths(self) -> dict[bytes, list[int]] | None:
        """Return keys whose proofs before the changes can replace those of `after`.

        They are found by a search of up to a second and usually do not exist in the state. None if
        a node is too deep in its trie.
        """

    def __bool__(self) -> bool: ...

@final
class NodeWrites:
    """Trie nodes to write or delete."""

    def __len__(self) -> int: ...
