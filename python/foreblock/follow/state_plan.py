"""Plan the requests for state keys, within the limits of one endpoint. No I/O.

The rules, best first: an account comes with its slots in one proof, the cheapest request for an
account; slots of known accounts come in one call with overrides, by
eth_getStorageValues, or one by one; a code comes from an account that has it. If everything has to
be proven, slots come by proofs only. No request exceeds the limits of its endpoint, each key is
requested once, and keys that the endpoint cannot serve are left for another one.

`degrade` lowers the limits after refusals: a method that is missing is not used, a size that is too
large is halved, and a block that is unknown is replaced by an older one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from foreblock.follow.extractor import is_readable
from foreblock.follow.requests import (
    BlockAt,
    BlockForm,
    GetBalance,
    GetCode,
    GetHeader,
    GetProof,
    GetStorageAt,
    GetStorageValues,
    GetTransactionCount,
    ReadByCall,
    StateRequest,
)
from foreblock.ledger.storage.state_keys import NO_ADDRESS, StateKeys
from foreblock.upstream.json_rpc import RefusalKind

# Slots that contracts read first: the implementation and the beacon of proxies (EIP-1967), and
# Solidity's first slots.
IMPLEMENTATION: Final = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
BEACON: Final = 0xA3F0AD74E5423AEBFD80D3EF4346578335A9A72AEAEE59FF6CB3582B35133D50
FIRST_SLOTS: Final = frozenset({IMPLEMENTATION, BEACON, *range(16)})

# Bytes of a slot on the wire, in a request and in its response with a proof's nodes.
_SLOT_IN_A_REQUEST: Final = 70
_ACCOUNT_IN_A_REQUEST: Final = 160  # with its override
_ENVELOPE: Final = 700  # and the dispatcher with its override
_PROOF_OF_A_SLOT: Final = 12_000
_PROOF_OF_AN_ACCOUNT: Final = 20_000
FEW: Final = 2  # slots up to this number are requested one by one if that is as cheap


class RequestLimits(NamedTuple):
    """The abilities of an endpoint, and the limits of one request to it."""

    proofs: bool = True
    calls: bool = True  # with overrides
    values: bool = True  # eth_getStorageValues
    tip_proofs: bool = False  # only of the latest block: of use where they are checked
    form: BlockForm = BlockForm.HASH
    proof_slots: int = 256
    call_slots: int = 4096
    values_slots: int = 1024
    batch: int = 1  # requests in one body
    body_bytes: int = 1_000_000  # of a request
    answer_bytes: int = 8_000_000


class StatePlan(NamedTuple):
    """Requests, and the keys that this endpoint cannot serve."""

    requests: tuple[StateRequest, ...]
    left: StateKeys


def with_first_slots(wanted: StateKeys, known: AbstractSet[bytes] = frozenset()) -> StateKeys:
    """Add the slots that a contract reads first, for new contracts.

    A contract is new if its account is wanted and something of it beside the account is: its
    code, or one of its slots. `known` are accounts whose first slots were fetched before.
    """
    new = (wanted.accounts & (wanted.codes_of | wanted.slots.keys())) - known
    return wanted.also(StateKeys(slots=dict.fromkeys(new, FIRST_SLOTS))) if new else wanted


def plan_state(wanted: StateKeys, limits: RequestLimits, at: BlockAt, *, proven: bool) -> StatePlan:
    """The requests to one endpoint for these keys at a block."""
    if limits.tip_proofs and not proven:
        limits = limits._replace(proofs=False)
    unprovable = proven and not limits.proofs
    left = StateKeys(wanted.accounts, wanted.slots) if unprovable else StateKeys()
    rest = wanted.without(left)
    requests: list[StateRequest] = []
    loose = dict(rest.slots)
    if limits.proofs:
        for address in sorted(rest.accounts | (rest.slots.keys() if proven else set())):
            requests += _proofs(address, sorted(loose.pop(address, ())), limits)
        requests += _slots(loose, limits)
        pieces: frozenset[bytes] = frozenset()
    else:
        pieces = rest.accounts
        requests += _slots(loose, limits)
        for address in sorted(pieces):
            requests += [GetBalance(address), GetTransactionCount(address)]
    codes, unplaced = _codes(rest, pieces)
    requests += codes
    requests += [GetHeader(number) for number in sorted(rest.blocks)]
    if (
        limits.form is BlockForm.NUMBER
        and not proven
        and any(not isinstance(each, GetHeader) for each in requests)
    ):
        requests.append(GetHeader(at.number, at.hash))
    return StatePlan(tuple(requests), left.also(StateKeys(codes=unplaced)))


def block_of(limits: RequestLimits, at: BlockAt, *, proven: bool) -> object:
    """The block parameter of a plan; proofs may be of any block, as nodes have hashes."""
    return "latest" if proven and limits.tip_proofs else at.parameter(limits.form)


def _proofs(address: bytes, slots: Sequence[int], limits: RequestLimits) -> Iterator[GetProof]:
    most = min(
        limits.proof_slots,
        (limits.body_bytes - _ENVELOPE) // _SLOT_IN_A_REQUEST,
        (limits.answer_bytes - _PROOF_OF_AN_ACCOUNT) // _PROOF_OF_A_SLOT,
    )
    if not slots:
        yield GetProof(address)
    for some in _portions(slots, max(1, most)):
        yield GetProof(address, tuple(some))


def _slots(slots: Mapping[bytes, Iterable[int]], limits: RequestLimits) -> Iterator[StateRequest]:
    """Slots without proofs: in calls, by eth_getStorageValues, or one by one."""
    keys = [(address, key) for address in sorted(slots) for key in sorted(slots[address])]
    callable_ = [each for each in keys if limits.calls and is_readable(each[0])]
    if len(callable_) > FEW:
        for group in _groups(callable_, limits.call_slots, limits.body_bytes):
            yield ReadByCall(group)
        taken = set(callable_)
        keys = [each for each in keys if each not in taken]
    if limits.values and (len(keys) > FEW or limits.batch == 1):
        for group in _groups(keys, limits.values_slots, limits.body_bytes):
            yield GetStorageValues(group)
        return
    yield from (GetStorageAt(address, key) for address, key in keys)


def _groups(
    keys: Sequence[tuple[bytes, int]], most: int, body_bytes: int
) -> Iterator[dict[bytes, tuple[int, ...]]]:
    """Slots by account, up to the size of one request."""
    group: dict[bytes, list[int]] = {}
    count, size = 0, _ENVELOPE
    for address, key in keys:
        more = _SLOT_IN_A_REQUEST + _ACCOUNT_IN_A_REQUEST * (address not in group)
        if group and (count == most or size + more > body_bytes):
            yield {at: tuple(some) for at, some in group.items()}
            group, count, size = {}, 0, _ENVELOPE
            more = _SLOT_IN_A_REQUEST + _ACCOUNT_IN_A_REQUEST
        group.setdefault(address, []).append(key)
        count += 1
        size += more
    if group:
        yield {at: tuple(some) for at, some in group.items()}


def _codes(
    wanted: StateKeys, pieces: frozenset[bytes]
) -> tuple[list[StateRequest], dict[bytes, bytes]]:
    """The requests for codes, one for each account, and the hashes whose account is unknown."""
    homes = {home: code for code, home in sorted(wanted.codes.items(), reverse=True) if home}
    requests: list[StateRequest] = [GetCode(home, code) for home, code in sorted(homes.items())]
    others = (wanted.codes_of | pieces) - homes.keys()
    requests += [GetCode(address) for address in sorted(others)]
    unplaced = {
        code: home
        for code, home in wanted.codes.items()
        if home == NO_ADDRESS or homes[home] != code
    }
    return requests, unplaced


def bodies(
    requests: Sequence[StateRequest], limits: RequestLimits
) -> Iterator[tuple[StateRequest, ...]]:
    """The requests of one body: a batch, or a single one."""
    body: list[StateRequest] = []
    sent = answered = 0
    for each in requests:
        out, back = weights(each)
        full = len(body) == limits.batch
        if body and (
            full or sent + out > limits.body_bytes or answered + back > limits.answer_bytes
        ):
            yield tuple(body)
            body, sent, answered = [], 0, 0
        body.append(each)
        sent, answered = sent + out, answered + back
    if body:
        yield tuple(body)


def weights(request: StateRequest) -> tuple[int, int]:
    """An upper estimate of the bytes of a request and its response."""
    match request:
        case GetProof(_, slots):
            back = _PROOF_OF_AN_ACCOUNT + _PROOF_OF_A_SLOT * len(slots)
            return _ENVELOPE + _SLOT_IN_A_REQUEST * len(slots), back
        case GetStorageValues(slots) | ReadByCall(slots):
            count = sum(map(len, slots.values()))
            out = _ENVELOPE + _ACCOUNT_IN_A_REQUEST * len(slots) + _SLOT_IN_A_REQUEST * count
            return out, 200 + _SLOT_IN_A_REQUEST * count + 60 * len(slots)
        case GetCode():
            return 300, 50_000
        case _:
            return 350, 3_000


def _portions(keys: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), most):
        yield keys[start : start + most]


LEAST_SLOTS: Final = 16  # if a smaller number is refused too, the kind of request does not work

# The fields of a kind of request: whether it is used, and its limit.
_USED: Final[dict[type, str]] = {
    ReadByCall: "calls",
    GetStorageValues: "values",
    GetProof: "proofs",
}
_LIMIT: Final[dict[type, str]] = {
    ReadByCall: "call_slots",
    GetStorageValues: "values_slots",
    GetProof: "proof_slots",
}
# Refusals that show that a kind of request does not work, beside a missing method.
_FAILURES: Final[dict[type, frozenset[str]]] = {
    ReadByCall: frozenset({RefusalKind.REVERTED.value, RefusalKind.WRONG_LENGTH.value}),
}
_ELSEWHERE: Final = frozenset({RefusalKind.NO_BLOCK.value, RefusalKind.WRONG_BLOCK.value})


class NextTry(NamedTuple):
    """The next request: within these limits, at the block `back` steps further back."""

    limits: RequestLimits
    back: int


def degrade(
    limits: RequestLimits, refused: Iterable[tuple[StateRequest, str]], back: int, count: int
) -> NextTry | None:
    """The next try after requests were refused with these kinds.

    None if the endpoint cannot do better; `count` is the number of blocks that may be used.
    """
    degraded, kinds = limits, {(type(request), kind) for request, kind in refused}
    for request, kind in kinds:
        degraded = _without(degraded, request, kind)
    if any(kind in _ELSEWHERE for _, kind in kinds):
        return NextTry(degraded, back + 1) if back + 1 < count else None
    return NextTry(degraded, back) if degraded != limits else None


def _without(limits: RequestLimits, request: type, kind: str) -> RequestLimits:
    used = _USED.get(request)
    if used and (kind == RefusalKind.NO_METHOD or kind in _FAILURES.get(request, ())):
        return _with(limits, **{used: False})
    if kind == RefusalKind.NO_STATE and request is GetProof:
        return limits._replace(tip_proofs=True)
    if kind == RefusalKind.TOO_LARGE:
        return _with_half(limits, request)
    if kind == RefusalKind.UNANSWERED:
        return limits._replace(batch=max(1, limits.batch // 2))
    return limits


def _with_half(limits: RequestLimits, request: type) -> RequestLimits:
    limit = _LIMIT.get(request)
    if limit is None or limits.batch > 1:
        return limits._replace(batch=max(1, limits.batch // 2))
    half = getattr(limits, limit) // 2
    if half < LEAST_SLOTS and request is not GetProof:
        return _with(limits, **{_USED[request]: False})
    return _with(limits, **{limit: max(1, half)})


def _with(limits: RequestLimits, **changes: Any) -> RequestLimits:  # noqa: ANN401, of any field
    return limits._replace(**changes)
