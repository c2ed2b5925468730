"""One flashblock, executed on its block in progress within bounds, and judged.

Nothing is stored. After a refusal the block has seen parts of the message and must be thrown
away. The time is charged to the feed that the message came from. A message that overran is
not tried again, and its feed has to rest; so has one that has more refused than ordinary
disagreement: nothing of it is executed for many times as long, so that all that is done for
a feed in vain takes a small share of its network's time. Its messages are refused meanwhile,
as if they had overrun.

Where the state is known in part, a message that needs unknown keys is refused for now. Its run ends
at the first transaction with unknown keys, and the engine collects those of all that follow. All
its tries share one allowance. Their time is charged too, and refunded when the message proves true.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import structlog

from foreblock._engine import (
    Allowance,
    MissingKeys,
    Receipt,
    Transaction,
    decode_receipt,
    decode_transaction,
    decode_transactions,
    keccak256,
)
from foreblock.clock import SECOND_NS, Clock
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
    MOST_WAITING_NS,
    PART_IN_VAIN,
    PRICE_OF_OVERRUN,
    Debt,
    RunBounds,
    Tried,
    most_touched,
)
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.call_templates import CallTemplates, want_predicted
from foreblock.ledger.following.missing_state import (
    MissingState,
    missed_by,
    unknown_at_start,
    unknown_in_envelopes,
)
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
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.post_exec import Refunds, checked_refunds, stated_refunds
from foreblock.ledger.rules.profile import unknown_type
from foreblock.ledger.rules.transaction_rules import BLOB, DEPOSIT, LEGACY, POST_EXEC
from foreblock.primitives import format_data
from foreblock.types import Base, ClaimedReceipt, Claims, Diff, Flashblock, StateEdit

MOST_REMEMBERED: Final = 256  # messages that overran; on overflow all may be tried once more
MOST_TRIED: Final = 1024  # messages that wait for state; the same
# Messages are tried ahead of their turn with this part of their time, and no more.
PART_AHEAD: Final = 4

T = TypeVar("T")

log = structlog.get_logger()


def _begin_block(
    parent_state: ParentState,
    base: Base,
    message: Flashblock,
    allowance: Allowance,
    templates: CallTemplates | None,
) -> BlockInProgress | Refusal:
    most = MOST_GROWTH * parent_state.parent.gas_limit
    try:
        if base.gas_limit <= most:
            return BlockInProgress.begin(parent_state, base, message.payload_id)
        return Diverged("gas_limit", f"{most} at most", str(base.gas_limit))
    except StateMissing as missing:
        wanted = missed_by(missing)
        begun = BlockInProgress(parent_state, base, message.payload_id)
        wanted.merge(_unknown_at_begin(begun, message.diff.transactions, allowance, templates))
        return Wanting(wanted, spoiled=True)
    except BadBlock as bad:
        return Diverged(bad.what, bad.expected, bad.found)
    except CallerError as wrong:
        return Diverged("base", "values that a header can have", str(wrong))


class BoundedRuns:
    """Executes what feeds send."""

    def __init__(
        self, clock: Clock, bounds: RunBounds, templates: CallTemplates | None = None
    ) -> None:
        """`templates` predict what calls will read, if the state is known in part."""
        self.bounds: Final = bounds
        self.templates: Final = templates
        self._clock: Final = clock
        self._overran: set[int] = set()
        self._tried: dict[int, Tried] = {}  # that wait for state, by identity
        self._rests_until_ns: dict[str, int] = {}
        self._in_vain: defaultdict[str, Debt] = defaultdict(Debt)
        self._waiting: defaultdict[str, Debt] = defaultdict(Debt)
        self._wasted: Counter[str] = Counter()
        self._wanted = MissingState()

    def begin(self, parent_state: ParentState, first: Received) -> BlockInProgress | Refusal:
        """The block that begins there, unless its base cannot follow; the view is closed then.

        `first` is its first message.
        """
        message, base = first.message, first.message.base
        assert base is not None, "a block begins with its base"

        def run(allowance: Allowance) -> BlockInProgress | Refusal:
            return _begin_block(parent_state, base, message, allowance, self.templates)

        block = self._bounded(first, parent_state.parent.gas_limit, run)
        if not isinstance(block, BlockInProgress):
            parent_state.view.close()
        return block

    def want(self, wanted: MissingState) -> None:
        """Collect what something else wants."""
        self._wanted.merge(wanted)

    def collect_wanted(self, block: BlockInProgress, messages: Iterable[Received]) -> None:
        """Collect what messages are likely to want that come after others which wait.

        They are tried on the block as it is now, where that changes nothing.
        """
        if not block.is_partial or block.rules.optimism is None:
            return
        most_ns = int(self.bounds.message * SECOND_NS) // PART_AHEAD
        for each in messages:
            before = self._tried.get(each.identity)
            if before is None or before.took_ns < most_ns:
                run = partial(_likely, block, each.message.diff.transactions)
                self._bounded(each, block.parent.gas_limit, run)

    def take_wanted(self) -> MissingState:
        """The unknown state that was wanted since the last call."""
        wanted, self._wanted = self._wanted, MissingState()
        return wanted

    def apply(
        self, block: BlockInProgress, received: Received, before: Diff | None, number: int
    ) -> ClosedIndex | Refusal:
        """The index that a message makes of its block; `number` is what it will be stored as.

        `before` is what the flashblock before it said. After a refusal the block has seen
        parts of the message and must be discarded.
        """
        message = received.message

        def run(allowance: Allowance) -> ClosedIndex | Refusal:
            return _apply(block, message, before, number, allowance, self.templates)

        return self._bounded(received, block.parent.gas_limit, run)

    def take_wasted(self) -> Mapping[str, int]:
        """The time spent in vain since the last call, in nanoseconds, by feed."""
        wasted, self._wasted = self._wasted, Counter()
        return wasted

    def _bounded(
        self, received: Received, gas_limit: int, run: Callable[[Allowance], T | Refusal]
    ) -> T | Refusal:
        """Do something for a message within its allowance, and charge the time to its feed."""
        identity, begun = received.identity, self._clock.monotonic_ns()
        if identity in self._overran:
            return Overrun("it did before")
        if begun < self._rests_until_ns.get(received.feed, 0):
            return Overrun("its feed has to rest")
        tried = self._tried.pop(identity, None)
        if tried is None:
            diff = received.message.diff
            refunded = sum(gas for _, gas in stated_refunds(diff.post_exec_tx))
            gas_used = diff.gas_used + refunded
            tried = Tried(self.bounds.of_message(gas_used, gas_limit), 0)
        try:
            result = run(tried.allowance)
        except OverBudget as over:
            result = Overrun(f"it takes more {over.what} than it may")
        took = self._clock.monotonic_ns() - begun
        self._charge(received, result, tried, took)
        return result

    def _charge(self, received: Received, result: object, tried: Tried, took_ns: int) -> None:
        feed = received.feed
        match result:
            case Wanting():
                self._wanted.merge(result.wanted)
                self._wait(received, tried, took_ns)
            case Overrun():
                self._remember(received.identity)
                self._add_rest(feed, took_ns + tried.took_ns)
            case Diverged() | Undecodable() | Unsupported():
                self._was_in_vain(feed, took_ns)
            case BlockInProgress():
                self._tried[received.identity] = tried  # it is applied next
            case _:
                if tried.took_ns:
                    self._waiting[feed].add(self._clock.monotonic_ns(), -tried.took_ns)
                if took_ns > LONG_NS:
                    # It is valid; other feeds are read for as long before its next message.
                    self._wasted[feed] += took_ns // PRICE_OF_OVERRUN

    def _wait(self, received: Received, tried: Tried, took_ns: int) -> None:
        """Keep what is left to a message that waits for state."""
        if len(self._tried) >= MOST_TRIED:
            self._tried.clear()
        tried.allowance.pause()
        self._tried[received.identity] = Tried(tried.allowance, tried.took_ns + took_ns)
        now, feed = self._clock.monotonic_ns(), received.feed
        debt = self._waiting[feed].add(now, took_ns)
        if debt > MOST_WAITING_NS:
            self._waiting.pop(feed)
            self._rests_until_ns[feed] = now + debt * PART_IN_VAIN
            self._wasted[feed] += debt * PART_IN_VAIN // PRICE_OF_OVERRUN

    def _remember(self, identity: int) -> None:
        if len(self._overran) >= MOST_REMEMBERED:
            self._overran.clear()
        self._overran.add(identity)

    def _was_in_vain(self, feed: str, took_ns: int) -> None:
        debt = self._in_vain[feed].add(self._clock.monotonic_ns(), took_ns)
        if debt > MOST_IN_VAIN_NS:
            self._in_vain.pop(feed)
            self._add_rest(feed, debt)

    def _add_rest(self, feed: str, took_ns: int) -> None:
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
    refused = _settle(block, diff)
    if refused is not None:
        return refused
    new = sum(gas for index, gas in block.stated_refunds if index >= block.count)
    shrunk = check_growth(diff, before, block.base.gas_limit, new)
    try:
        refusal = shrunk or _run(block, diff.transactions, allowance, templates)
        refusal = refusal or _set_accounts(block, message.edits)
        if refusal is not None:
            return refusal
        closed = block.close_index(number, diff.state_root, diff.withdrawals_root)
    except StateMissing as missing:
        return Wanting(missed_by(missing), spoiled=True)
    root = None if block.is_partial else block.roots.root
    verdict = judge(message, closed.header, block.rules, root)
    return verdict if isinstance(verdict, Diverged) else closed


def changes_refunds(block: BlockInProgress, diff: Diff) -> bool:
    """True if a message has other refunds of transactions that have run."""
    if not block.rules.includes(OptimismFork.LAGOON):
        return False
    stated = stated_refunds(diff.post_exec_tx)
    return [each for each in stated if each[0] < block.count] != list(block.refunds)


def _settle(block: BlockInProgress, diff: Diff) -> Refusal | None:
    """Set the refunds that a message states; those of transactions before it may not change."""
    refunds: Refunds = ()
    if diff.post_exec_tx is not None:
        if not block.rules.includes(OptimismFork.LAGOON):
            return Unsupported("unknown rules: post_exec_tx")
        # The types of those that have run do not matter: their refunds have been checked.
        kinds = [*[LEGACY] * block.count, *(raw[0] for raw in diff.transactions)]
        try:
            last = decode_transaction(diff.post_exec_tx)
            if last.type != POST_EXEC:
                return Undecodable(f"post_exec_tx: the type {last.type:#04x}")
            refunds = checked_refunds(last, kinds, block.rules, Check(block.number))
        except UndecodableBytes as undecodable:
            return Undecodable(f"post_exec_tx: {undecodable.why}")
        except BadBlock as bad:
            return Diverged(bad.what, bad.expected, bad.found)
    if [each for each in refunds if each[0] < block.count] != list(block.refunds):
        return Unsupported("post_exec_tx: other refunds of earlier flashblocks")
    block.set_refunds(refunds)
    return None


def _run(
    block: BlockInProgress,
    raws: tuple[bytes, ...],
    allowance: Allowance,
    templates: CallTemplates | None,
) -> Refusal | None:
    try:
        unsupported = _unsupported(block, raws)
        if unsupported is not None:
            return unsupported
        block.run(raws, allowance)
    except UndecodableBytes as undecodable:
        return Undecodable(str(undecodable))
    except StateMissing as missed:
        transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
        return Wanting(_wanted(block, transactions, missed.misses, templates))
    except (InvalidTransaction, OverBudget) as why:
        return _refusal(why)
    except ExecutionError as failed:
        return Unsupported(f"transactions: {failed}")
    return None


def _unsupported(block: BlockInProgress, raws: tuple[bytes, ...]) -> Unsupported | None:
    """The refusal of transactions whose types this version or chain does not have.

    Raises `Undecodable` if any of them is.
    """
    for place, raw in enumerate(raws):
        kind = unknown_type(raw)
        if kind is not None:
            return Unsupported(f"unknown rules: transactions[{place}] has the type {kind:#04x}")
        if raw[:1] == bytes([POST_EXEC]):
            return Unsupported(f"transactions[{place}]: a post-execution transaction")
    absent = BLOB if block.rules.optimism is not None else DEPOSIT
    for place, raw in enumerate(raws):
        if raw[:1] == bytes([absent]):
            decode_transactions(raws, unsigned=block.takes_unsigned)
            what = "a blob transaction" if absent == BLOB else "a deposit"
            return Unsupported(f"transactions[{place}]: {what}")
    return None


def _refusal(why: InvalidTransaction | OverBudget) -> Refusal:
    place = f"transactions[{why.index}]"
    if isinstance(why, InvalidTransaction):
        return Diverged(place, "one that is valid here", why.why)
    if why.what == GAS:
        # Like any incomplete message, it may follow another prefix than ours.
        return Diverged(place, "all gas that the message says", "more")
    return Overrun(f"{place} takes more {why.what} than it may")


def _unknown_at_begin(
    block: BlockInProgress,
    raws: tuple[bytes, ...],
    allowance: Allowance,
    templates: CallTemplates | None,
) -> MissingState:
    """The unknown state that a new block needs: at its start, and for its first transactions."""
    wanted = unknown_at_start(block.overlay, block.empty, block.rules)
    with suppress(UndecodableBytes):
        transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
        wanted.merge(_unknown(block, transactions, allowance, templates))
    return wanted


def _unknown(
    block: BlockInProgress,
    transactions: Sequence[Transaction],
    allowance: Allowance,
    templates: CallTemplates | None,
) -> MissingState:
    """The unknown state that transactions need, by their envelopes and by running them."""
    return _wanted(block, transactions, block.unknown(transactions, allowance), templates)


def _wanted(
    block: BlockInProgress,
    transactions: Sequence[Transaction],
    missed: MissingKeys,
    templates: CallTemplates | None,
) -> MissingState:
    """The keys that transactions missed, and those that they are likely to read."""
    wanted = unknown_in_envelopes(block.overlay, transactions, block.rules)
    if missed:
        wanted.need(missed)
        if templates is not None:
            want_predicted(templates, block.overlay, transactions, missed, wanted)
    return wanted


def _likely(
    block: BlockInProgress, raws: tuple[bytes, ...], allowance: Allowance
) -> Wanting | Undecodable:
    """The unknown state of later transactions: none of it is needed yet."""
    try:
        transactions = decode_transactions(raws, unsigned=block.takes_unsigned)
    except UndecodableBytes as undecodable:
        return Undecodable(str(undecodable))
    wanted = unknown_in_envelopes(block.overlay, transactions, block.rules)
    wanted.add(block.unknown(transactions, allowance))
    return Wanting(wanted)


def _set_accounts(block: BlockInProgress, edits: tuple[StateEdit, ...]) -> Refusal | None:
    """Set accounts as an accepted feed states; its state root shows whether all were set."""
    touched = len(edits) + sum(len(each.storage) for each in edits)
    if touched > most_touched(block.parent.gas_limit):
        return Overrun("its state edits set more than it may")
    for each in edits:
        block.set_account(each)
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
        return  # it has an account that nothing has touched here
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
        logs=receipt.logs,
        deposit_nonce=None if said.deposit_nonce is None else receipt.deposit_nonce,
    )
