"""Blocks of unsigned calls, as in eth_simulateV1."""

from collections.abc import Sequence
from typing import Final, Literal, Self, final

from foreblock._engine.codec import Header, _Withdrawal
from foreblock._engine.evm import Env, Message, Outcome, Overlay, Precompiles
from foreblock._engine.params import Overrides
from foreblock._engine.state import State
from foreblock._engine.transactions import Transaction

@final
class PlainCalls:
    """Calls with only sender, recipient, value, data and gas, to be executed as one batch."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[bytes, bytes | None, int, bytes, int | None]:
        """Sender, recipient, value, data and gas."""

@final
class Body:
    """A block in progress, of calls executed on an overlay.

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
        """Execute the next call as `Overlay.run` does and add it to the block; return its gas.

        It becomes an unsigned transaction of type 0, 2, 3 or 4 with a zero signature, including
        `v`. The default nonce is the sender's current one. `env` replaces the block's for this
        call; `lowered` is kept for `failures`. Logs are counted from the first call on. Raises as
        `Overlay.run` does, and `InvalidArgument` for other types, or if the type requires a
        recipient and there is none; nothing is changed then.
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
        """Execute plain calls from `start` on; return the index after the last, and the gas used.

        Each gets the gas it requests, or all of `gas_left`, but at most the rest of `budget`; the
        base fee is not checked. Ends before a call that requests more than `gas_left` or for which
        `run` would raise `InvalidMessage` or `DeadlineExceeded`, and between calls after
        `slice_us`.
        """
    def set_post_state(self, root: bytes) -> None:
        """Replace the status of the last receipt by a state root, before Byzantium."""
    @property
    def output_size(self) -> int:
        """The total number of bytes that the calls returned."""
    def deposit_requests(self, contract: bytes) -> bytes:
        """The `deposit_requests` of the receipts of this body."""
    def seal(
        self,
        header: Header,
        state_root: bytes,
        blob_gas_used: int | None = None,
        requests_hash: bytes | None = None,
        withdrawals: Sequence[_Withdrawal] | None = None,
    ) -> SealedBody:
        """Finish the block; the body is empty afterwards.

        The arguments replace fields of `header`; gas used, the roots of transactions and receipts
        and the bloom are those of the body. BLOCKHASH finds the block from now on.
        """
    def __len__(self) -> int: ...

@final
class BlockTemplate:
    """The first simulated block after a base, and the rules by which further blocks follow it."""

    def __new__(
        cls,
        env: Env,
        header: Header,
        type: int,
        block_time: int,
        system_calls: Sequence[tuple[bytes, bytes | None]],
        *,
        footprint: tuple[int, bytes, int, int] | None = None,
        has_withdrawals: bool = False,
    ) -> Self:
        """`header` is as at the start of the block; plain calls become transactions of `type`.

        Further blocks have the next number, come `block_time` seconds later, and are otherwise
        equal. `system_calls` are executed first; an input of None is the hash of the parent.
        `footprint` is the size of each call, and the contract, the slot and the lowest bit of its
        16-bit price: the header's blob gas used (OP, since Jovian).
        """

@final
class PlainSimulation:
    """Simulated blocks of plain calls without block overrides."""

    def __new__(
        cls,
        template: BlockTemplate,
        state: State,
        blocks: Sequence[tuple[PlainCalls, Overrides | None]],
        *,
        gas: int,
        output: int,
    ) -> Self:
        """All calls together may use `gas` and return `output` bytes."""
    def run(
        self,
        slice_us: int | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Literal["finished", "paused", "stopped"]:
        """Apply overrides, execute system calls and calls, and seal each block.

        Pauses between calls after `slice_us`. Stops where `Body.run_plain` would end for another
        reason, a call takes longer than `timeout_us`, a precompile is overridden, or the calls
        return too much: the separate steps then give the result.
        """
    def take(self) -> list[SealedBody]:
        """The finished blocks, once."""

@final
class SealedBody:
    """A finished block of simulated calls, with their outcomes."""

    header: Final[Header]
    size: Final[int]  # the length of the block's encoding in bytes
    outcomes: Final[list[Outcome]]

    def transactions(self) -> list[Transaction]:
        """The transactions that represent the calls."""

@final
class SimulationText:
    """The JSON of finished blocks as returned by eth_simulateV1, written in pieces."""

    def __new__(
        cls, blocks: Sequence[SealedBody], dialect: str, transactions: Sequence[bytes] = ()
    ) -> Self:
        """`dialect` is preconf or ethereum: how failed calls are described.

        `transactions` has a JSON array for each block, which replaces their hashes.
        """
    def take(self, bytes: int, /) -> bytes:
        """The next piece of at most `bytes` bytes; empty at the end."""
