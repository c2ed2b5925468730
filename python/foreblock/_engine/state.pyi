"""State: accounts and storage as of a block, changes to them, and tries over both."""

from typing import Self, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay

@final
class Account:
    """An existing account; one that does not exist is None, an empty one is not."""

    def __new__(
        cls,
        *,
        nonce: int = ...,
        balance: int = ...,
        code_hash: bytes | None = None,
        generation: int = ...,
    ) -> Self: ...
    @property
    def nonce(self) -> int: ...
    @property
    def balance(self) -> int: ...
    @property
    def code_hash(self) -> bytes: ...
    @property
    def generation(self) -> int:
        """The number under which this life of the account began."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class State:
    """State as of one block or partial block of a view."""

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
        """Up to `limit` existing accounts above the address `after`, in order."""

    def slots(self, address: bytes, after: int | None, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` non-zero slots above the slot `after`, in order."""

    def overlay(self) -> Overlay:
        """An empty overlay above this state."""

    def trie(self, *, rebuild: bool = False) -> StateTrie:
        """The trie of this state, for roots after changes: `PrunedState`.

        Only nodes of the last blocks are kept. To `rebuild` it from an older state takes as
        long as that is large.
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
class Changes:
    """What happened to state: by account, before and after."""

    @property
    def accounts(self) -> list[tuple[bytes, Account | None, Account | None, dict[int, int]]]:
        """Address, account before and after, new values of its slots."""

    def touches(self, address: bytes) -> bool:
        """Whether something of this account changed."""

    def merge(self, later: Changes) -> Changes:
        """Both, one after the other."""

    def __len__(self) -> int:
        """How many accounts changed."""

    @property
    def entries(self) -> int:
        """How many accounts and slots changed, as a measure of what they cost."""

@final
class StateTrie:
    """The trie of one state, and after what was applied to it.

    After an exception it is to be thrown away.
    """

    def apply(self, changes: Changes) -> None:
        """Take in changes that start from the state as it stands here."""

    def root(self) -> bytes: ...
    def storage_root(self, address: bytes) -> bytes:
        """The storage root of an account as it stands."""

    def take(self) -> NodeWrites | None:
        """The nodes that changed since the last take, for `Batch.append` or `Batch.seal`.

        None for a trie that `State.trie` gave: only those of the latest block are written.
        """

@final
class NodeWrites:
    """Trie nodes to be written or removed."""

    def __len__(self) -> int: ...

@final
class GrowingRoot:
    """The root of an ordered list that grows, at the cost of what was added.

    For the transactions and receipts of a block that gets them in portions.
    """

    def __new__(cls) -> Self: ...
    def push(self, item: bytes) -> None:
        """Add the next item, as it is encoded in the trie."""

    def root(self) -> bytes: ...
    def __len__(self) -> int: ...
