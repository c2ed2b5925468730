"""Run a trace: a block's transactions, one of them, or a call.

Each function gives work for a thread: it holds no loop, has a deadline, can be cancelled, and
its text is bounded. What is traced in which format is the `Tracer`'s; no text is made here.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from foreblock._engine import (
    Env,
    Outcome,
    State,
    Tracer,
    TraceSelection,
    TraceText,
    Transaction,
    create_access_list,
    trace_call,
    trace_transactions,
)
from foreblock.errors import DeadlineExceeded, InvalidMessage, InvalidTransaction, RefusedTrace
from foreblock.ledger.calls.call import Run
from foreblock.ledger.rules.addresses import created_address
from foreblock.ledger.rules.execution import environment
from foreblock.ledger.tracing.replay import Replay
from foreblock.scheduling.steps import Work

__all__ = [
    "TraceBounds",
    "TraceSelection",
    "TraceText",
    "Tracer",
    "access_list",
    "block",
    "call",
    "joined",
    "signed",
]


class TraceBounds(Struct, frozen=True):
    """What one trace may take."""

    output: int  # bytes
    timeout_us: int | None = None  # where a request asks for less than there is


def block(
    replay: Replay,
    tracer: Tracer,
    bounds: TraceBounds,
    *,
    only: int | None = None,
    each: bool = False,
    selection: TraceSelection | None = None,
) -> Work:
    """Trace the transactions of a block, or `only` one of them."""

    def trace(timeout_us: int | None, step_us: int | None) -> TraceText:
        header = replay.block.header
        return trace_transactions(
            replay.begin(),
            environment(header, replay.block.rules, replay.block.profile),
            replay.transactions(None if only is None else only + 1),
            tracer,
            limit=bounds.output,
            only=only,
            each=each,
            block_hash=replay.block.hash,
            selection=selection,
            cheats=[
                (before, each.address, each.balance, each.nonce, each.code, each.storage)
                for before, each in replay.cheats
            ],
            timeout_us=timeout_us,
            step_us=step_us,
        )

    return _bounded(trace, bounds)


def call(run: Run, tracer: Tracer, bounds: TraceBounds) -> Work:
    """Trace a call; raises `RefusedCall` where it may not begin."""
    run.check()

    def trace(timeout_us: int | None, step_us: int | None) -> TraceText:
        try:
            return trace_call(
                run.state.overlay() if run.overlay is None else run.overlay,
                run.env,
                run.message,
                tracer,
                limit=bounds.output,
                precompiles=run.precompiles,
                timeout_us=timeout_us,
                step_us=step_us,
            )
        except InvalidMessage as refused:
            raise run.refused(refused) from None

    return _bounded(trace, bounds)


def signed(
    state: State, env: Env, transaction: Transaction, tracer: Tracer, bounds: TraceBounds
) -> Work:
    """Trace a transaction that is in no block; raises `RefusedTrace` where it may not run."""

    def trace(timeout_us: int | None, step_us: int | None) -> TraceText:
        try:
            return trace_transactions(
                state.overlay(),
                env,
                [transaction],
                tracer,
                limit=bounds.output,
                only=0,
                timeout_us=timeout_us,
                step_us=step_us,
            )
        except InvalidTransaction as refused:
            raise RefusedTrace(refused.why) from None

    return _bounded(trace, bounds)


def access_list(run: Run, bounds: TraceBounds) -> Work:
    """The access list of a call as JSON, and its outcome; raises `RefusedCall`."""
    run.check()
    to, sender = run.call.to, run.call.sender
    if to is None:
        account = (run.overlay or run.state).account(sender)
        to = created_address(sender, 0 if account is None else account.nonce)

    def find(timeout_us: int | None, step_us: int | None) -> tuple[bytes, Outcome]:
        try:
            return create_access_list(
                run.state.overlay() if run.overlay is None else run.overlay,
                run.env,
                run.message,
                [sender, to],
                limit=bounds.output,
                precompiles=run.precompiles,
                timeout_us=timeout_us,
                step_us=step_us,
            )
        except InvalidMessage as refused:
            raise run.refused(refused) from None

    return _bounded(find, bounds)


def joined(text: TraceText) -> bytes:
    """The whole text of a short trace."""
    return b"".join(iter(text.take, None))


def _bounded(run: Callable[[int | None, int | None], Any], bounds: TraceBounds) -> Work:
    """Work that also ends at a deadline of its own."""

    def work(*, timeout_us: int | None = None, step_us: int | None = None) -> Any:  # noqa: ANN401, who yields it knows
        own = bounds.timeout_us
        if own is None or (timeout_us is not None and timeout_us <= own):
            return run(timeout_us, step_us)
        try:
            return run(own, step_us)
        except DeadlineExceeded:
            raise RefusedTrace("execution timeout") from None

    return work
