"""Traces of transactions and calls, and access lists."""

from collections.abc import Sequence
from typing import TypeAlias, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay, Precompiles
from foreblock._engine.transactions import Transaction

@final
class Tracer:
    """The data to record of an execution, and the output format."""

    @staticmethod
    def struct_logs(
        *,
        memory: bool = False,
        stack: bool = True,
        storage: bool = True,
        return_data: bool = False,
        limit: int = ...,
    ) -> Tracer:
        """Geth's struct logs, one for each instruction; none after `limit` bytes of them."""

    @staticmethod
    def calls(*, only_top: bool = False, with_logs: bool = False) -> Tracer:
        """Geth's callTracer."""

    @staticmethod
    def flat_calls(*, parity_errors: bool = False, precompiles: bool = False) -> Tracer:
        """Geth's flatCallTracer."""

    @staticmethod
    def prestate(
        *, diff: bool = False, code: bool = True, storage: bool = True, empty: bool = False
    ) -> Tracer:
        """Geth's prestateTracer."""

    @staticmethod
    def selectors() -> Tracer:
        """Geth's 4byteTracer."""

    @staticmethod
    def nothing() -> Tracer:
        """Geth's noopTracer."""

    @staticmethod
    def parity() -> Tracer:
        """Parity's traces, separated by commas, without brackets."""

    @staticmethod
    def entries() -> Tracer:
        """Otterscan's list of calls."""

    @staticmethod
    def operations() -> Tracer:
        """Otterscan's list of transfers, creations and self-destructs."""

    @staticmethod
    def revert_data() -> Tracer:
        """The revert data, quoted; empty if the execution did not revert."""

    @staticmethod
    def touched() -> Tracer:
        """The addresses that a transaction touches, as entries for `touched_row`."""

    @staticmethod
    def replay(*, trace: bool = True, state_diff: bool = False, vm_trace: bool = False) -> Tracer:
        """Parity's object for a replayed transaction."""

@final
class TraceSelection:
    """A filter for Parity traces: by address, and with an offset and a limit."""

    def __new__(
        cls,
        *,
        senders: Sequence[bytes] = ...,
        receivers: Sequence[bytes] = ...,
        either: bool = False,
        creations: bool = False,
        skip: int = ...,
        take: int | None = None,
    ) -> TraceSelection: ...
    @property
    def done(self) -> bool:
        """True if the limit is reached."""

@final
class TraceText:
    """The JSON of a trace, in pieces."""

    def __len__(self) -> int:
        """The total number of bytes."""

    @property
    def left(self) -> TraceSelection:
        """The selection with the offset and limit that remain for the next block."""

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
    selection: TraceSelection | None = None,
    cheats: Sequence[_Cheat] = ...,
    timeout_us: int | None = None,
    step_us: int | None = None,
) -> TraceText:
    """Trace the transactions of a block on the state after its start.

    With `only`, the transactions before it are executed without tracing and those after it are not
    executed. `each` returns a list of objects with hashes. `cheats` are manually set accounts, in
    the order of the transactions that they precede. Raises `TraceTooLong` above `limit` bytes, and
    `DeadlineExceeded`.
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
