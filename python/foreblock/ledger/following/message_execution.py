"""One flashblock, executed on its block in progress within bounds, and judged.

Nothing is stored. After a refusal the block has seen parts of the message and must be thrown
away. The time is booked on the feed that the message came from. A message that overran is
not tried again, and its feed has to rest; so has one that has more refused than ordinary
disagreement: nothing of it is executed for many times as long, so that all that is done for
a feed in vain takes a small share of its network's time. Its messages are refused meanwhile,
as if they had overrun.

Where the state is known in part, a message is refused for now that needs what is not known, and
what that is is collected (`wanting`): nobody is to blame for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from foreblock._engine import (
    Allowance,
    Receipt,
    Transaction,
    decode_receipt,
    decode_transactions,
    keccak256,
)
from foreblock.clock import Clock
from foreblock.errors import (
    BadBlock,
    CallerError,
    ExecutionError,
    InvalidTransaction,
    OverBudget,
    StateMissing,
)
from foreblock.errors import Undecodable as UndecodableBytes
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import ParentState
from foreblock.ledger.following.bounds import (
    GAS,
    LONG_NS,
    LONGEST_REST_NS,
    MOST_GROWTH,
    MOST_IN_VAIN_NS,
    PART_IN_VAIN,
    PRICE_OF_OVERRUN,
    RunBounds,
    most_touched,
)
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.predicting import want_predicted
from foreblock.ledger.following.verdict import (
    Diverged,
    Overrun,
    Refusal,
    Undecodable,
    Unsupported,
    Wanting,
    check_growth,
    judge,
)
from foreblock.ledger.following.wanting import (
    WantedState,
    missed_by,
    unknown_at_start,
    unknown_in_envelopes,
)
from foreblock.ledger.rules.call_templates import CallTemplates
from foreblock.ledger.rules.rules_end import unknown_type
from foreblock.ledger.rules.transaction_types import BLOB, DEPOSIT
from foreblock.primitives import format_data
from foreblock.types import Base, Cheat, ClaimedReceipt, Claims, Diff, Flashblock

MOST_REMEMBERED: Final = 256  # messages that overran; on overflow all may be tried once more

log = structlog.get_logger()


def _begin_block(
    parent_state: ParentState,
    base: Base,
    payload_id: bytes,
    raws: tuple[bytes, ...],
    templates: CallTemplates | None,
) -> BlockInProgress | Refusal:
    most = MOST_GROWTH * parent_state.parent.gas_limit
    refusal: Refusal
    try:
        if base.gas_limit <= most:
            return BlockInProgress.begin(parent_state, base, payload_id)
        refusal = Diverged("gas_limit", f"{most} at most", str(base.gas_limit))
    except StateMissing as missing:
        wanted = missed_by(missing)
        begun = BlockInProgress(parent_state, base, payload_id)
        wanted.merge(_unknown_at_begin(begun, raws, templates))
        refusal = Wanting(wanted, spoiled=True)
    except BadBlock as bad:
        refusal = Diverged(bad.what, bad.expected, bad.found)
    except CallerError as wrong:
        refusal = Diverged("base", "values that a header can have", str(wrong))
    parent_state.view.close()
    return refusal


class BoundedRuns:
    """Executes what feeds send."""

    def __init__(
        self, clock: Clock, bounds: RunBounds, templates: CallTemplates | None = None
    ) -> None:
        """`templates` say what calls will read, where the state is known in part."""
        self.bounds: Final = bounds
        self.templates: Final = templates
        self._clock: Final = clock
        self._overran: set[int] = set()
        self._rests_until_ns: dict[str, int] = {}
        self._in_vain: dict[str, tuple[int, int]] = {}  # since when, and how much is left of it
        self._wasted: Counter[str] = Counter()
        self._wanted = WantedState()

    def begin(self, parent_state: ParentState, first: Flashblock) -> BlockInProgress | Refusal:
        """The block that begins there, unless its base cannot follow; the view is closed then.

        `first` is its first message.
        """
        assert first.base is not None, "a block begins with its base"
        raws = first.diff.transactions
        block = _begin_block(parent_state, first.base, first.payload_id, raws, self.templates)
        if isinstance(block, Wanting):
            self._wanted.merge(block.wanted)
        return block

    def want(self, wanted: WantedState) -> None:
        """Collect what something else wants."""
        self._wanted.merge(wanted)

    def look_ahead(self, block: BlockInProgress, messages: Iterable[Received]) -> None:
        """Collect what messages are likely to want that come after others which wait.

        They are tried on the block as it is now, where that changes nothing.
        """
        if not block.is_partial or block.rules.optimism is None:
            return
        raws = tuple(raw for each in messages for raw in each.message.diff.transactions)
        with suppress(UndecodableBytes):
            transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
            self._wanted.merge(_likely(block, transactions))

    def take_wanted(self) -> WantedState:
        """What was wanted and not known since the last call."""
        wanted, self._wanted = self._wanted, WantedState()
        return wanted

    def apply(
        self, block: BlockInProgress, received: Received, before: Diff | None, number: int
    ) -> ClosedIndex | Refusal:
        """The index that a message makes of its block; `number` is what it will be stored as.

        `before` is what the flashblock before it said. After a refusal the block has seen
        parts of the message and must be thrown away.
        """
        begun = self._clock.monotonic_ns()
        if received.identity in self._overran:
            return Overrun("it did before")
        if begun < self._rests_until_ns.get(received.feed, 0):
            return Overrun("its feed has to rest")
        message = received.message
        allowance = self.bounds.of_message(message.diff.gas_used, block.parent.gas_limit)
        result = _apply(block, message, before, number, allowance, self.templates)
        took = self._clock.monotonic_ns() - begun
        if isinstance(result, Wanting):
            self._wanted.merge(result.wanted)
        elif isinstance(result, Overrun):
            self._remember(received.identity)
            self._book(received.feed, took)
        elif not isinstance(result, ClosedIndex):
            self._was_in_vain(received.feed, took)
        elif took > LONG_NS:
            # It is true; other feeds are heard for as long before the next of its messages.
            self._wasted[received.feed] += took // PRICE_OF_OVERRUN
        return result

    def take_wasted(self) -> Mapping[str, int]:
        """The time spent in vain since the last call, in nanoseconds, by feed."""
        wasted, self._wasted = self._wasted, Counter()
        return wasted

    def _remember(self, identity: int) -> None:
        if len(self._overran) >= MOST_REMEMBERED:
            self._overran.clear()
        self._overran.add(identity)

    def _was_in_vain(self, feed: str, took_ns: int) -> None:
        now = self._clock.monotonic_ns()
        since, before = self._in_vain.get(feed, (now, 0))
        debt = max(before - (now - since) // PART_IN_VAIN, 0) + took_ns
        if debt > MOST_IN_VAIN_NS:
            self._book(feed, debt)
            debt = 0
        self._in_vain[feed] = now, debt

    def _book(self, feed: str, took_ns: int) -> None:
        rest = min(took_ns * PRICE_OF_OVERRUN, LONGEST_REST_NS)
        self._rests_until_ns[feed] = self._clock.monotonic_ns() + rest
        self._wasted[feed] += took_ns


def _apply(
    block: BlockInProgress,
    message: Flashblock,
    before: Diff | None,
    number: int,
    allowance: Allowance,
    templates: CallTemplates | None,
) -> ClosedIndex | Refusal:
    diff = message.diff
    if diff.post_exec_tx is not None:
        return Unsupported("unknown rules: post_exec_tx")
    shrunk = check_growth(diff, before, block.base.gas_limit)
    try:
        refusal = shrunk or _run(block, diff.transactions, allowance, templates)
        refusal = refusal or _set_accounts(block, message.cheats)
        if refusal is not None:
            return refusal
        closed = block.close_index(number, diff.state_root, diff.withdrawals_root)
    except StateMissing as missing:
        return Wanting(missed_by(missing), spoiled=True)
    root = None if block.is_partial else block.roots.root
    verdict = judge(message, closed.header, block.rules, root)
    return verdict if isinstance(verdict, Diverged) else closed


def _run(
    block: BlockInProgress,
    raws: tuple[bytes, ...],
    allowance: Allowance,
    templates: CallTemplates | None,
) -> Refusal | None:
    for place, raw in enumerate(raws):
        kind = unknown_type(raw)
        if kind is not None:
            return Unsupported(f"unknown rules: transactions[{place}] has the type {kind:#04x}")
    try:
        transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
    except UndecodableBytes as undecodable:
        return Undecodable(str(undecodable))
    if block.is_partial:
        wanted = _unknown(block, transactions, templates)
        if wanted.is_needed:
            return Wanting(wanted)
    for place, transaction in enumerate(transactions):
        refusal = _run_one(block, place, transaction, allowance)
        if refusal is not None:
            return refusal
    return None


def _unknown_at_begin(
    block: BlockInProgress, raws: tuple[bytes, ...], templates: CallTemplates | None
) -> WantedState:
    """What a block needs that has not begun: at its start, and for its first transactions."""
    wanted = unknown_at_start(block.overlay, block.empty, block.rules)
    with suppress(UndecodableBytes):
        transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
        wanted.merge(_unknown(block, transactions, templates))
    return wanted


def _unknown(
    block: BlockInProgress,
    transactions: Sequence[Transaction],
    templates: CallTemplates | None,
) -> WantedState:
    """What transactions need that is not known, by their envelopes and by running them."""
    wanted = unknown_in_envelopes(block.overlay, transactions, block.rules)
    missed = block.unknown(transactions)
    if missed:
        wanted.need(missed)
        if templates is not None:
            want_predicted(templates, block.overlay, transactions, missed, wanted)
    return wanted


def _likely(block: BlockInProgress, transactions: Sequence[Transaction]) -> WantedState:
    """The same, of transactions that come later: none of it is needed yet."""
    wanted = unknown_in_envelopes(block.overlay, transactions, block.rules)
    wanted.add(block.unknown(transactions))
    return wanted


def _set_accounts(block: BlockInProgress, cheats: tuple[Cheat, ...]) -> Refusal | None:
    """Set accounts as a feed says that is believed; its state root shows whether all did."""
    touched = len(cheats) + sum(len(each.storage) for each in cheats)
    if touched > most_touched(block.parent.gas_limit):
        return Overrun("its cheats set more than it may")
    for each in cheats:
        block.set_account(each)
    return None


def _run_one(
    block: BlockInProgress, place: int, transaction: Transaction, allowance: Allowance
) -> Refusal | None:
    missing = BLOB if block.rules.optimism is not None else DEPOSIT
    if transaction.type == missing:
        what = "a blob transaction" if missing == BLOB else "a deposit"
        return Unsupported(f"transactions[{place}]: {what}")
    try:
        block.run(transaction, allowance)
    except StateMissing:
        raise  # nobody is to blame
    except InvalidTransaction as invalid:
        return Diverged(f"transactions[{place}]", "one that is valid here", invalid.why)
    except OverBudget as over:
        if over.what == GAS:
            # As any other that says too little: it may follow another prefix than ours.
            return Diverged(f"transactions[{place}]", "all gas that the message says", "more")
        return Overrun(f"transactions[{place}] takes more {over.what} than it may")
    except ExecutionError as failed:
        return Unsupported(f"transactions[{place}]: {failed}")
    return None


def check_claims(
    message: Flashblock, closed: ClosedIndex, block: BlockInProgress, count: Callable[[str], None]
) -> None:
    """Count and log metadata of a true flashblock that differs from what was found here.

    The block's hash commits to receipts and state, so the flashblock stays true: a
    difference refuses nothing.
    """
    if message.claims is None:
        return
    try:
        differs = _contradiction(message.claims, closed, block)
    except StateMissing:
        return  # it says something of an account that nobody has touched here
    count("MetadataAgrees" if differs is None else "MetadataDiffers")
    if differs is not None:
        place = f"{message.block_number}.{message.index}"
        log.warning("metadata_differs", place=place, where=differs)


def _contradiction(claims: Claims, closed: ClosedIndex, block: BlockInProgress) -> str | None:
    """The first claim about an index that is wrong; `block` is as it is right after it."""
    found = {
        keccak256(raw): decode_receipt(receipt)
        for raw, receipt in zip(closed.transactions, closed.receipts, strict=True)
    }
    for name, said in claims.receipts.items():
        receipt = found.get(name)
        if receipt is None or said != _claimed(receipt, said):
            return f"metadata.receipts: {format_data(name)}"
    for address, balance in claims.balances.items():
        account = block.account(address)
        if balance != (0 if account is None else account.balance):
            return f"metadata.new_account_balances: {format_data(address)}"
    return None


def _claimed(receipt: Receipt, said: ClaimedReceipt) -> ClaimedReceipt:
    """A receipt in the words of a claim, which may leave out a deposit's nonce."""
    return ClaimedReceipt(
        success=bool(receipt.status),
        cumulative_gas_used=receipt.cumulative_gas_used,
        logs=tuple((log.address, log.topics, log.data) for log in receipt.logs),
        deposit_nonce=None if said.deposit_nonce is None else receipt.deposit_nonce,
    )
