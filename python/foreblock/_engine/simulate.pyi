"""Blocks of calls that nobody signed, as eth_simulateV1 makes them."""

from collections.abc import Sequence
from typing import Self, final

from foreblock._engine.codec import Header, Withdrawal
from foreblock._engine.evm import Env, Message, Outcome, Overlay, Precompiles
from foreblock._engine.params import Overrides
from foreblock._engine.state import State
from foreblock._engine.transactions import Transaction

@final
class PlainCalls:
    """Calls that say no more than who calls whom with what, for a block to run at once."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[bytes, bytes | None, int, bytes, int | None]:
        """Sender, recipient, value, data and gas."""

@final
class Body:
    """A block being put together from calls that are run on an overlay.

    What its header commits to stays in the engine, encodings and receipts, until the block
    is sealed.
    """

    def __new__(
        cls,
        overlay: Overlay,
        env: Env,
        precompiles: Precompiles | None = None,
        trace_transfers: bool = False,
    ) -> Self: ...
    def run(
        self,
        message: Message,
        type: int,
        nonce: int | None = None,
        *,
        env: Env | None = None,
        check_base_fee: bool = True,
        lowered: bool = False,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> int:
        """Run the next call as `Overlay.run` does and add it to the block; gives its gas.

        It is added as a transaction of this type, 0, 2, 3 or 4, that nobody signed: all of its
        signature is zero, `v` included. Its nonce is the sender's of that moment if none is
        given. `env` takes the place of the block's for this call; `lowered` is kept for
        `failures`. Logs are counted from the first call on. After an exception nothing has
        changed: those of `Overlay.run`, and `InvalidArgument` for another type, or where a
        type needs a recipient and there is none.
        """
    def run_plain(
        self,
        calls: PlainCalls,
        start: int,
        type: int,
        gas_left: int,
        budget: int,
        timeout_us: int | None = None,
        step_us: int | None = None,
        slice_us: int | None = None,
    ) -> tuple[int, int]:
        """Run plain calls from `start` on for as long as there is nothing to decide.

        Each gets the gas it asks for, or all of `gas_left`, but never more than is left of
        `budget`; the base fee is not asked for. Ends before one that asks for more than
        `gas_left`, for which `run` would raise `InvalidMessage` or `DeadlineExceeded`, and
        between calls after `slice_us`. Gives where it ended, and the gas used.
        """
    def set_post_state(self, root: bytes) -> None:
        """Put a state root in the place of the status in the last receipt, before Byzantium."""
    @property
    def overlay(self) -> Overlay:
        """What its calls ran on."""
    @property
    def output_size(self) -> int:
        """The bytes that all calls have returned."""
    def deposit_requests(self, contract: bytes) -> bytes:
        """The function `deposit_requests` of the receipts of this body."""
    def seal(
        self,
        header: Header,
        state_root: bytes,
        blob_gas_used: int | None = None,
        requests_hash: bytes | None = None,
        withdrawals: Sequence[Withdrawal] | None = None,
    ) -> SealedBody:
        """The block of this body and header; the body is empty again afterwards.

        Of the header, what is given here is replaced, and gas used, the roots of
        transactions and receipts and the bloom are those of the body. BLOCKHASH finds it
        from now on.
        """
    def __len__(self) -> int: ...

@final
class Opening:
    """The block after another one as every simulation begins it, for usual ones."""

    def __new__(
        cls,
        env: Env,
        type: int,
        parent_number: int,
        parent_hash: bytes,
        told: Sequence[tuple[bytes, bytes]],
    ) -> Self:
        """Plain calls are shown as transactions of this type. `told` are calls of the system."""
    def fill(
        self,
        state: State,
        calls: PlainCalls,
        overrides: Overrides | None,
        budget: int,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Body | None:
        """The body of the block above `state`.

        Lays overrides, makes the calls of the system and runs the calls as `Body.run_plain`
        does. None where that would end before the last, all of it would take longer than
        `timeout_us`, or a precompile is overridden.
        """

@final
class SealedBody:
    """A finished block of simulated calls, and what came of them."""

    @property
    def header(self) -> Header: ...
    @property
    def size(self) -> int:
        """Of the block's encoding, in bytes."""
    @property
    def outcomes(self) -> list[Outcome]: ...
    @property
    def failures(self) -> list[tuple[Outcome, bool]]:
        """The outcomes of calls that did not succeed, and whether their gas was lowered."""
    def transactions(self) -> list[Transaction]:
        """What the calls are shown as."""
    def json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> bytes:
        """The block as eth_simulateV1 shows it, its calls with their logs.

        `failures` tells of each call that failed, in order: what it is said to have
        returned, and the text of further members with a comma before each. `transactions`
        is the JSON array that takes the place of their hashes.
        """
    def long_json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> BodyText:
        """The same text, to be written in pieces."""
    @property
    def results_size(self) -> int:
        """About how long the results of all calls are in that text, failures apart."""

@final
class BodyText:
    """The JSON text of a finished block on its way."""

    def take(self, bytes: int, /) -> bytes:
        """The next piece of at most so many bytes; nothing when all was taken."""
