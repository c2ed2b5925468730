"""Find the block in which something about an account became so, among the states that are kept.

What is asked for stays so once it is: a nonce that was reached, code that was set. So the
states are searched by halves, from the oldest that is kept to the newest that the view has.
"""

from collections.abc import Callable

from foreblock._engine import State
from foreblock.errors import PrunedState
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_types import DEPOSIT
from foreblock.scheduling.steps import Steps, Work


def first_block(view: LedgerView, holds: Callable[[State], bool]) -> ReadableBlock | None:
    """The first block after which it holds; none where it does not yet, or always did.

    Raises `PrunedState` where it became so before the oldest state that is kept.
    """
    oldest, newest = view.behind.earliest, view.latest.number
    if not holds(view.state_of_header(view.latest)):
        return _unsealed(view, holds)
    if holds(view.state(view.resolve(oldest))):
        if oldest > 0:
            raise PrunedState(oldest - 1, oldest)
        return None
    while newest - oldest > 1:
        middle = (oldest + newest) // 2
        if holds(view.state(view.resolve(middle))):
            newest = middle
        else:
            oldest = middle
    return view.resolve(newest)


def _unsealed(view: LedgerView, holds: Callable[[State], bool]) -> ReadableBlock | None:
    """The same among the blocks in progress."""
    if view.pending is None:
        return None
    for number in range(view.latest.number + 1, view.pending.number + 1):
        block = view.unsealed(number)
        if holds(view.state(block)):
            return block
    return None


def find_sent(view: LedgerView, sender: bytes, nonce: int) -> Steps[bytes | None]:
    """The hash of the transaction that an account sent with a nonce; raises `PrunedState`."""
    block = first_block(view, lambda state: state.nonce(sender) > nonce)
    if block is None:
        return None
    found: bytes | None = yield _sent(read_stored(view, block).portions(), sender, nonce)
    return found


def _sent(portions: list[Portion], sender: bytes, nonce: int) -> Work:
    """Work that looks for a transaction; recovering senders takes long."""

    def look(**_limits: int | None) -> bytes | None:
        for portion in portions:
            for each in portion.transactions(0, len(portion)):
                if each.sender == sender and each.nonce == nonce and each.type != DEPOSIT:
                    return each.hash
        return None

    return look
