"""Traces of transactions and calls, and access lists."""

from collections.abc import Sequence
from typing import Final, Literal, Self, TypeAlias, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay, Precompiles
from foreblock._engine.transactions import Transaction

_Kind: TypeAlias = Literal[
    "structLogs",  # geth's struct logs, one for each instruction; none after `limit` bytes of them
    "calls",  # geth's callTracer
    "flatCalls",  # geth's flatCallTracer
    "prestate",  # geth's prestateTracer
    "selectors",  # geth's 4byteTracer
    "nothing",  # geth's noopTracer
    "parity",  # Parity's traces, separated by commas, without brackets
    "replay",  # Parity's object for a replayed transaction
    "entries",  # Otterscan's list of calls
    "operations",  # Otterscan's list of transfers, creations and self-destructs
    "revertData",  # the revert data, quoted; empty if the execution did not revert
    "touched",  # the addresses that a transaction touches, as entries for `touched_row`
]

@final
class Tracer:
    """The data to record of an execution, and the output format.

    Options that the kind does not have are ignored. `senders` to `take` select traces of `parity`.
    """

    def __new__(
        cls,
        kind: _Kind,
        *,
        memory: bool = False,
        stack: bool = True,
        storage: bool = True,
        return_data: bool = False,
        limit: int = ...,
        only_top: bool = False,
        with_logs: bool = False,
        parity_errors: bool = False,
        precompiles: bool = False,
        diff: bool = False,
        code: bool = True,
        empty: bool = False,
        trace: bool = True,
        state_diff: bool = False,
        vm_trace: bool = False,
        senders: Sequence[bytes] = ...,
        receivers: Sequence[bytes] = ...,
        either: bool = False,
        creations: bool = False,
        skip: int = ...,
        take: int | None = None,
    ) -> Self: ...

@final
class TraceText:
    """The JSON of a trace, in pieces."""

    # The `skip` and `take` that remain for the next block.
    left: Final[tuple[int, int | None]]

    def __len__(self) -> int:
        """The total number of bytes."""
    def take(self) -> bytes | None:
        """The next piece, None at the end. Each is returned once."""

_Slots: TypeAlias = Sequence[tuple[int, int]]
# The index of the transaction that follows, the address, its balance, nonce, code and slots.
_Cheat: TypeAlias = tuple[int, bytes, int | None, int | None, bytes | None, _Slots]

def trace_transactions(
    overlay: Overlay,
    env: Env,
    transactions: Sequence[Transaction],
    tracer: Tracer,
    *,
    limit: int,
    only: int | None = None,
    each: bool = False,
    block_hash: bytes | None = None,
    cheats: Sequence[_Cheat] = ...,
    refunds: Sequence[tuple[int, int]] = ...,
    timeout_us: int | None = None,
    step_us: int | None = None,
) -> TraceText:
    """Trace the transactions of a block on the state after its start.

    With `only`, the transactions before it are executed without tracing and those after it are not
    executed. `each` returns a list of objects with hashes. `cheats` are manually set accounts, in
    the order of the transactions that they precede; `refunds` are those of the block: index and
    gas. Raises `TraceTooLong` above `limit` bytes, and `DeadlineExceeded`.
    """

def trace_call(
    overlay: Overlay,
    env: Env,
    message: Message,
    tracer: Tracer,
    *,
    limit: int,
    precompiles: Precompiles | None = None,
    timeout_us: int | None = None,
    step_us: int | None = None,
) -> TraceText:
    """Trace a call, whose effects stay in the overlay. Also raises `InvalidMessage`."""

def create_access_list(
    overlay: Overlay,
    env: Env,
    message: Message,
    excluded: Sequence[bytes],
    *,
    limit: int,
    precompiles: Precompiles | None = None,
    timeout_us: int | None = None,
    step_us: int | None = None,
) -> tuple[bytes, Outcome]:
    """Return the access list of a call as JSON, and its outcome with that list."""
