"""Traces of transactions and calls, and access lists."""

from collections.abc import Sequence
from typing import TypeAlias, final

from foreblock._engine.evm import Env, Message, Outcome, Overlay, Precompiles
from foreblock._engine.transactions import Transaction

@final
class Tracer:
    """What is recorded of a run, and the format that it is shown in."""

    @staticmethod
    def struct_logs(
        *,
        memory: bool = False,
        stack: bool = True,
        storage: bool = True,
        return_data: bool = False,
        limit: int = ...,
    ) -> Tracer:
        """Geth's entries, one for each instruction; none after `limit` bytes of them."""

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
        """Parity's traces, with commas and without brackets."""

    @staticmethod
    def entries() -> Tracer:
        """Otterscan's list of calls."""

    @staticmethod
    def operations() -> Tracer:
        """Otterscan's list of transfers, creations and self-destructs."""

    @staticmethod
    def revert_data() -> Tracer:
        """The data of a revert, quoted; empty for any other end."""

    @staticmethod
    def touched() -> Tracer:
        """The addresses that a transaction touches, as entries for `touched_row`."""

    @staticmethod
    def replay(*, trace: bool = True, state_diff: bool = False, vm_trace: bool = False) -> Tracer:
        """Parity's object for a replayed transaction."""

@final
class TraceSelection:
    """Which of Parity's traces are shown: by address, and after some are skipped."""

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
        """Whether no more are to be shown."""

@final
class TraceText:
    """The JSON text of a trace, in pieces."""

    def __len__(self) -> int:
        """Bytes in all."""

    @property
    def left(self) -> TraceSelection:
        """What of the selection is left for the next block."""

    def take(self) -> bytes | None:
        """The next piece; each is given once."""

_Slots: TypeAlias = Sequence[tuple[int, int]]
# The index of the transaction after it, the address, its balance, nonce, code and slots.
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

    With `only` those before it run unwatched and those after it do not run. `each` gives a
    list of objects with hashes. `cheats` are accounts that were set by hand, in the order of
    the transactions that they came before. Raises `TraceTooLong` above `limit` bytes,
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
    """Trace a call, whose effects stay in the overlay; also raises `InvalidMessage`."""

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
    """The access list of a call as JSON, and its outcome with that list."""
