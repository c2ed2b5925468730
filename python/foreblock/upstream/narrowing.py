"""What to try next at the same endpoint, after it has refused something. No I/O.

A method that is not there is not asked for again; what was too much is halved; a block that it
does not have is looked for further back. Everything else is a matter for another endpoint.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from foreblock.upstream.asked import Asked, AskedCall, AskedProof, AskedValues
from foreblock.upstream.refusals import RefusalKind
from foreblock.upstream.state_plan import EndpointWays

LEAST_SLOTS: Final = 16  # where fewer are too many, the way does not work

# The fields of a way: whether it is used, and its limit.
_USED: Final[dict[type, str]] = {AskedCall: "calls", AskedValues: "values", AskedProof: "proofs"}
_LIMIT: Final[dict[type, str]] = {
    AskedCall: "call_slots",
    AskedValues: "values_slots",
    AskedProof: "proof_slots",
}
# What shows that a way does not work, beside a method that is not there.
_FAILURES: Final[dict[type, frozenset[str]]] = {
    AskedCall: frozenset({RefusalKind.REVERTED.value, RefusalKind.WRONG_LENGTH.value}),
}
_ELSEWHERE: Final = frozenset({RefusalKind.NO_BLOCK.value, RefusalKind.WRONG_BLOCK.value})


class NextTry(NamedTuple):
    """How to ask again: in these ways, at the block that is `back` places further back."""

    ways: EndpointWays
    back: int


def narrow(
    ways: EndpointWays, refused: Iterable[tuple[Asked, str]], back: int, places: int
) -> NextTry | None:
    """The next try after requests were refused with these kinds.

    None where the endpoint cannot do better: `places` are the blocks that may be asked about.
    """
    narrowed, kinds = ways, {(type(asked), kind) for asked, kind in refused}
    for asked, kind in kinds:
        narrowed = _without(narrowed, asked, kind)
    if any(kind in _ELSEWHERE for _, kind in kinds):
        return NextTry(narrowed, back + 1) if back + 1 < places else None
    return NextTry(narrowed, back) if narrowed != ways else None


def _without(ways: EndpointWays, asked: type, kind: str) -> EndpointWays:
    used = _USED.get(asked)
    if used and (kind == RefusalKind.NO_METHOD or kind in _FAILURES.get(asked, ())):
        return _with(ways, **{used: False})
    if kind == RefusalKind.NO_STATE and asked is AskedProof:
        return ways._replace(tip_proofs=True)
    if kind == RefusalKind.TOO_LARGE:
        return _with_half(ways, asked)
    if kind == RefusalKind.UNANSWERED:
        return ways._replace(batch=max(1, ways.batch // 2))
    return ways


def _with_half(ways: EndpointWays, asked: type) -> EndpointWays:
    limit = _LIMIT.get(asked)
    if limit is None or ways.batch > 1:
        return ways._replace(batch=max(1, ways.batch // 2))
    half = getattr(ways, limit) // 2
    if half < LEAST_SLOTS and asked is not AskedProof:
        return _with(ways, **{_USED[asked]: False})
    return _with(ways, **{limit: max(1, half)})


def _with(ways: EndpointWays, **changes: Any) -> EndpointWays:  # noqa: ANN401, of any field
    return ways._replace(**changes)
