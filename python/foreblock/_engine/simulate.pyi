"""Blocks of unsigned calls, as eth_simulateV1 makes them."""

from collections.abc import Sequence
from typing import Final, Self, final

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
    """A block in progress, of calls that run on an overlay.

    Encodings and receipts stay in the engine until the block is sealed.
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

        It becomes an unsigned transaction of type 0, 2, 3 or 4, whose signature is zero, `v`
        included. Its nonce is the sender's current one if none is given. `env` replaces the
        block's for this call; `lowered` is kept for `failures`. Logs are counted from the
        first call on. Raises as `Overlay.run` does, and `InvalidArgument` for another type, or
        where a type needs a recipient and there is none; then nothing has changed.
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
        """Run plain calls from `start` on; gives the index after the last, and the gas used.

        Each gets the gas it asks for, or all of `gas_left`, but at most what is left of
        `budget`; the base fee is not checked. Ends before a call that asks for more than
        `gas_left` or for which `run` would raise `InvalidMessage` or `DeadlineExceeded`, and
        between calls after `slice_us`.
        """
    def set_post_state(self, root: bytes) -> None:
        """Put a state root in the place of the status in the last receipt, before Byzantium."""
    @property
    def overlay(self) -> Overlay:
        """The overlay that its calls run on."""
    @property
    def output_size(self) -> int:
        """The number of bytes that all calls returned."""
    def deposit_requests(self, contract: bytes) -> bytes:
        """`deposit_requests` of the receipts of this body."""
    def seal(
        self,
        header: Header,
        state_root: bytes,
        blob_gas_used: int | None = None,
        requests_hash: bytes | None = None,
        withdrawals: Sequence[Withdrawal] | None = None,
    ) -> SealedBody:
        """Finish the block; the body is empty again afterwards.

        The arguments replace fields of `header`; gas used, the roots of transactions and
        receipts and the bloom are those of the body. BLOCKHASH finds the block from now on.
        """
    def __len__(self) -> int: ...

@final
class BlockTemplate:
    """The block after another one as every simulation begins it, for usual ones."""

    def __new__(
        cls,
        env: Env,
        type: int,
        parent_number: int,
        parent_hash: bytes,
        system_calls: Sequence[tuple[bytes, bytes]],
    ) -> Self:
        """Plain calls are shown as transactions of this type. `system_calls` run first."""
    def run_calls(
        self,
        state: State,
        calls: PlainCalls,
        overrides: Overrides | None,
        budget: int,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Body | None:
        """The body of the block above `state`.

        Applies overrides, makes the system calls and runs the calls as `Body.run_plain`
        does. None if that would end before the last, all of it would take longer than
        `timeout_us`, or a precompile is overridden.
        """

@final
class SealedBody:
    """A finished block of simulated calls, with their outcomes."""

    header: Final[Header]
    size: Final[int]  # the length of the block's encoding in bytes
    outcomes: Final[list[Outcome]]
    # The outcomes of calls that did not succeed, and whether their gas was lowered.
    failures: Final[list[tuple[Outcome, bool]]]
    # The approximate length of the results of calls in `json`, without failures.
    results_size: Final[int]

    def transactions(self) -> list[Transaction]:
        """The transactions that stand for the calls."""
    def json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> bytes:
        """The block as eth_simulateV1 shows it, its calls with their logs.

        `failures` has for each failed call, in order, the data it returned and the text of
        further members, each after a comma. `transactions` is a JSON array that replaces
        their hashes.
        """
    def long_json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> BodyText:
        """The same text, written in pieces."""

@final
class BodyText:
    """The JSON text of a finished block, written in pieces."""

    def take(self, bytes: int, /) -> bytes:
        """The next piece of at most `bytes` bytes; empty at the end."""
