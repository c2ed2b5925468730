"""What transactions will read, by templates of calls like theirs: asked for with what they missed.

Only where a run has missed something: then a round of fetching is made, and this comes along. The
templates are learned from the same runs (`rules.call_templates`).
"""

from collections.abc import Iterator, Sequence

from foreblock._engine import Misses, Overlay, Transaction
from foreblock.errors import StateMissing
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.rules.call_templates import CallTemplates, call_of, is_unknown
from foreblock.ledger.rules.call_words import KnownCall


def want_predicted(
    templates: CallTemplates,
    overlay: Overlay,
    transactions: Sequence[Transaction],
    missed: Misses,
    wanted: MissingState,
) -> None:
    """Learn from what transactions have missed, and want what templates say of them."""
    calls = list(_calls(overlay, transactions))
    templates.learn(calls, missed.slots, missed.hashed)
    for call in calls:
        for address, slot in templates.predict(call, lambda key: is_unknown(overlay.storage, key)):
            _want(overlay, wanted, address, slot)


def _calls(overlay: Overlay, transactions: Sequence[Transaction]) -> Iterator[KnownCall]:
    for each in transactions:
        call = call_of(overlay.account, each.sender, each.to, each.input)
        if call is not None:
            yield call


def _want(overlay: Overlay, wanted: MissingState, address: bytes, slot: int) -> None:
    try:
        overlay.storage(address, slot)
    except StateMissing as missing:
        wanted.add(missing.misses)
