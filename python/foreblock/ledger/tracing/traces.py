"""Replay a block's transactions or a call under a tracer.

Sealed blocks and partial ones are replayed alike. The parent of either is the block before it in
the view: a sealed one, or the unsealed one that flashblocks build on. Rows are read while the view
is open; decoding and running is for a thread, and reads the parent's state only. That work has a
deadline, can be cancelled, and its text is bounded. The `Tracer` decides the format.

`find_slot` finds the slot in which a contract keeps a number that one of its functions returns, as
anvil finds the balance of a token: the access list of the call names the slots it reads. Each is
set to another number for a trial, until the function returns that number.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from foreblock._engine import (
    Env,
    Outcome,
    Overlay,
    State,
    Tracer,
    TraceText,
    Transaction,
    create_access_list,
    decode_transactions,
    trace_call,
    trace_transactions,
)
from foreblock.errors import (
    DeadlineExceeded,
    InvalidMessage,
    InvalidTransaction,
    RefusedTrace,
    StateMissing,
)
from foreblock.ledger.calls.call import Call, Run, prepare, ready
from foreblock.ledger.calls.request import state_and_context
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import stored_block
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.execution import environment, start_block
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.ledger.storage.dev_rows import read_edits
from foreblock.ledger.storage.partial_rows import split_senders
from foreblock.scheduling.steps import Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import StateEdit

__all__ = [
    "TraceBounds",
    "TraceText",
    "Tracer",
    "access_list",
    "block",
    "call",
    "joined",
    "signed",
]


MIRRORED: Final = (
    "blocks of a mirror are not traceable: real transactions ran on the state of the real chain"
)


class Replay(Struct, frozen=True, gc=False):
    """A block and all that running it again needs."""

    block: ReadableBlock
    parent_state: State
    parent_rules: Rules
    raws: Sequence[bytes]  # the transactions in order
    senders: bytes | None  # 20 bytes each, unless a store of an older version lacks them
    edits: Sequence[tuple[int, StateEdit]] = ()  # and how many transactions come before each
    refunds: Sequence[tuple[int, int]] = ()  # by its sequencer

    def begin(self) -> Overlay:
        """The state that the first transaction runs on."""
        header = self.block.header
        overlay = self.parent_state.overlay()
        overlay.set_block_hash(header.number - 1, header.parent_hash)
        env = environment(header, self.block.rules, self.block.profile)
        start_block(overlay, env, header, self.block.rules, self.parent_rules)
        return overlay

    def transactions(self, stop: int | None = None) -> list[Transaction]:
        """The transactions in order, those before `stop`."""
        senders = None if self.senders is None else split_senders(self.senders)[:stop]
        homestead = self.block.rules.ethereum >= EthereumFork.HOMESTEAD
        return decode_transactions(
            self.raws[:stop], threads=1, homestead=homestead, senders=senders
        )

    @property
    def is_short(self) -> bool:
        """True if the transactions are decoded in little time."""
        return self.senders is not None and sum(map(len, self.raws)) <= THRESHOLDS.replayed_bytes


def read_replay(view: LedgerView, block: ReadableBlock, stop: int | None = None) -> Replay:
    """A block of a view, ready to be run again; its transactions before `stop`.

    Raises `RefusedTrace` for the first block, `PrunedState` where its parent's is not kept,
    `UnknownRules` where it cannot be executed.
    """
    if block.number == 0:
        raise RefusedTrace("genesis is not traceable")
    if block.number == view.first_block.number:
        raise RefusedTrace(f"block {block.number} is the first one here, it is not traceable")
    if view.dev_state is not None and view.dev_state.mining == "mirror":
        raise RefusedTrace(MIRRORED)
    view.check_rules(block.number)
    parent = block.number - 1
    sealed = parent <= view.latest.number
    before = view.resolve(parent) if sealed else view.unsealed(parent)
    partials = view.partials_of(block)
    stored = stored_block(block, partials)
    raws, senders, ends = stored.raws(view.stored, sys.maxsize if stop is None else stop)
    edits: list[tuple[int, StateEdit]] = []
    if view.dev_state is not None:
        for number, end in zip(partials, ends, strict=False):
            edits += [(end, each) for each in read_edits(view.stored, block.number, (number,))]
    refunds = stored.refunds(view.stored)
    return Replay(block, view.state(before), before.rules, raws, senders, edits, refunds)


class TraceBounds(Struct, frozen=True):
    """The limits of one trace."""

    output: int  # bytes
    timeout_us: int | None = None  # where a request asks for less than there is


def block(
    replay: Replay,
    tracer: Tracer,
    bounds: TraceBounds,
    *,
    only: int | None = None,
    each: bool = False,
) -> Work:
    """Trace the transactions of a block, or `only` one of them."""

    def trace(timeout_us: int | None, step_us: int | None) -> TraceText:
        if step_us is not None and not replay.is_short:
            raise DeadlineExceeded
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
            cheats=[
                (before, each.address, each.balance, each.nonce, each.code, each.storage)
                for before, each in replay.edits
            ],
            refunds=replay.refunds,
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

    def work(*, timeout_us: int | None = None, step_us: int | None = None) -> Any:  # noqa: ANN401, as yielded
        own = bounds.timeout_us
        ends_first = own is not None and (timeout_us is None or own < timeout_us)
        in_place = step_us is not None
        try:
            return run(own if ends_first else timeout_us, step_us)
        except DeadlineExceeded:
            if ends_first and not in_place:
                raise RefusedTrace("execution timeout") from None
            raise
        except StateMissing:
            if not in_place:
                raise
            # Perhaps it was stopped. On a thread it reports all the state that it misses.
            raise DeadlineExceeded from None

    return work


MOST_SLOTS: Final = 64  # that are tried
WORD: Final = 32


class _Accessed(Struct, rename="camel"):
    address: str
    storage_keys: list[str]


_decode: Final = msgspec.json.Decoder(list[_Accessed]).decode


def find_slot(
    view: LedgerView, call: Call, wanted: int, bounds: TraceBounds
) -> Steps[tuple[bytes, int] | None]:
    """The account and the slot at `pending` that the call reads; `wanted` is the expected word."""
    state, context = state_and_context(view, "pending", None)
    found: tuple[bytes, Outcome] = yield access_list(prepare(call, state, context, None), bounds)
    listed, now = found
    # A trial with the word that it returns already would succeed with any slot.
    trial = wanted if _number(now) != wanted else wanted ^ 1
    for count, (address, slot) in enumerate(_slots(listed)):
        if count == MOST_SLOTS:
            return None
        overlay = state.overlay()
        overlay.set(address, state_diff={slot: trial})
        outcome: Outcome = yield ready(call, state, context, overlay, None).here
        if _number(outcome) == trial:
            return address, slot
    return None


def _number(outcome: Outcome) -> int | None:
    """The word that a call gave, if it gave one."""
    if outcome.status != "success" or len(outcome.output) < WORD:
        return None
    return int.from_bytes(outcome.output[:WORD])


def _slots(listed: bytes) -> Iterator[tuple[bytes, int]]:
    for each in _decode(listed):
        for key in each.storage_keys:
            yield bytes.fromhex(each.address[2:]), int(key, 16)
