"""Abilities of an endpoint, probed with a handful of requests. No I/O.

`probing` is a generator: it yields requests that can be in flight at the same time, gets their
results or refusals, and returns `Capabilities`. Its caller sends the requests. Common abilities are
requested before the rarer ones are known: three round trips are enough for most endpoints. An
ability counts only if its result is right: a node that accepts a block by hash but ignores the hash
does not have it, nor does one that ignores overrides.
"""

from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, structs

from foreblock.errors import RefusedAnswer
from foreblock.follow import extractor
from foreblock.follow.requests import BlockAt, BlockForm, GetProof, GetStorageValues, ReadByCall
from foreblock.follow.responses import read_header, read_proof, read_values
from foreblock.follow.state_plan import RequestLimits
from foreblock.primitives import (
    format_data,
    format_quantity,
    harmless,
    parse_data,
    parse_quantity,
)
from foreblock.upstream.json_rpc import RefusalKind

# How far back proofs are tried; the furthest that works is recorded.
PROOF_DEPTHS: Final = (0, 2, 16, 128, 1024, 8192)
BATCHES: Final = (2, 10, 50, 100)
NOBODY: Final = bytes.fromhex("8d64ec077cde93743e429ac2cfd58a269b691a8a")
# OP: a contract that every block writes to, so that even a pruned endpoint has it.
BUSY: Final = bytes.fromhex("4200000000000000000000000000000000000015")
BUSY_SLOT: Final = 0
_MADE_UP: Final = b"\xfe" * 32  # a hash that no block has
_BEHIND: Final = 2  # blocks below the tip that are requested, for endpoints of many nodes
_UNBORN: Final = (1 << 53) - 1  # a number that no block has
SLOT: Final = 7
_PUT: Final = 0x0123456789ABCDEF
_BEST: Final = BlockForm.CANONICAL  # the form that is tried first
_BUSY_PROOF: Final = GetProof(BUSY, (BUSY_SLOT,))
_LAID_OVER: Final = ReadByCall({NOBODY: (SLOT,)})
_TWO_VALUES: Final = GetStorageValues({NOBODY: (0, SLOT)})


class Asking(NamedTuple):
    """A request of a probe; `copies` above 1 sends a batch of that size."""

    method: str
    params: tuple[object, ...] = ()
    copies: int = 1


_FIRST: Final = (
    Asking("eth_chainId"),
    Asking("web3_clientVersion"),
    Asking("eth_getBlockByNumber", ("latest", False)),
)
ProbeResult = Raw | RefusedAnswer | int  # a result, a refusal, or how many of a batch were answered
Probing = Generator[Sequence[Asking], Sequence[ProbeResult], "Capabilities"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """The abilities of an endpoint; `reasons` says why others are missing."""

    chain_id: int
    client: str
    latest: BlockAt
    forms: tuple[BlockForm, ...]
    proof_depth: int | None  # blocks below the tip that were proven; none without proofs
    overrides: bool
    storage_values: bool
    batch: int  # requests in one body; 1: none
    witness: bool
    reasons: dict[str, str]

    def limits(self) -> RequestLimits:
        """Return the limits for a plan."""
        return RequestLimits(
            proofs=self.proof_depth is not None,
            tip_proofs=self.proof_depth is not None and self.proof_depth < _BEHIND,
            calls=self.overrides,
            values=self.storage_values,
            form=self.forms[0] if self.forms else BlockForm.NUMBER,
            batch=self.batch,
        )

    def union(self, other: "Capabilities") -> "Capabilities":
        """Return these abilities and those of another probe, whose requests failed in part."""
        depths = [each.proof_depth for each in (self, other) if each.proof_depth is not None]
        return structs.replace(
            self,
            forms=tuple(form for form in BlockForm if form in {*self.forms, *other.forms}),
            proof_depth=max(depths, default=None),
            overrides=self.overrides or other.overrides,
            storage_values=self.storage_values or other.storage_values,
            batch=max(self.batch, other.batch),
            witness=self.witness or other.witness,
            reasons={name: why for name, why in self.reasons.items() if name in other.reasons},
        )

    @property
    def can_prove(self) -> bool:
        """True if state can be proven, by proofs of the tip at least."""
        return bool(self.forms) and self.proof_depth is not None

    @property
    def can_serve(self) -> bool:
        """True if state can be read."""
        return bool(self.forms)


def probing(*, whole: bool) -> Probing:
    """Yield the requests, in order; return the abilities. Raises `RefusedAnswer`.

    Only what no endpoint can lack is raised: its chain id, its latest block. Unless `whole` is set,
    it ends with what a plan needs: the best form of blocks, and whether proofs are of the tip only.
    """
    reasons: dict[str, str] = {}
    first = yield [*_FIRST, *(Asking("eth_chainId", (), size) for size in BATCHES)]
    chain_id = parse_quantity(_text(_needed(first[0])), 64)
    client = "" if isinstance(first[1], RefusedAnswer) else harmless(_text(_needed(first[1])))
    tip = _head("latest", first[2])
    at = None
    if tip.number < _BEHIND:
        (of_tip,) = yield [_proof("latest")]
    else:
        near, of_tip = yield [_block(tip.number - _BEHIND), _proof("latest")]
        at = _old_block(tip.number - _BEHIND, near)
    proves_tip = _is_proven(of_tip, 0, reasons)
    forms, result = yield from _forms(at or tip, reasons, whole=whole)
    depth = _depth(tip, at, result, reasons) if proves_tip else None
    if whole and depth == _BEHIND and at is not None:
        depth = yield from _far_proofs(tip, forms[0] if forms else BlockForm.NUMBER, reasons)
    return Capabilities(
        chain_id=chain_id,
        client=client,
        latest=tip,
        forms=forms,
        overrides=_has_overrides(result.overrides, reasons),
        storage_values=_has_values(result.values, reasons),
        proof_depth=depth,
        witness=whole and (yield from _witness(reasons)),
        batch=_largest_batch(first[len(_FIRST) :], reasons),
        reasons=reasons,
    )


def _block(of: str | int) -> Asking:
    name = of if isinstance(of, str) else format_quantity(of)
    return Asking("eth_getBlockByNumber", (name, False))


def _proof(block: object) -> Asking:
    return Asking(_BUSY_PROOF.method, tuple(_BUSY_PROOF.params(block)))


def _head(of: str | int, result: ProbeResult) -> BlockAt:
    number = of if isinstance(of, int) else _number_of(_needed(result))
    header = read_header(number, _needed(result))
    return BlockAt(header.number, header.hash)


def _old_block(number: int, result: ProbeResult) -> BlockAt | None:
    """A block below the tip; None if the endpoint does not have it."""
    try:
        return _head(number, result)
    except RefusedAnswer:
        return None


def _number_of(result: Raw) -> int:
    try:
        fields = msgspec.json.decode(result, type=dict[str, object])
        return parse_quantity(fields.get("number"), 64)
    except (msgspec.MsgspecError, ValueError) as why:
        raise RefusedAnswer(RefusalKind.WRONG_SHAPE.value, f"the latest block: {why}") from why


class _AboutBlock(NamedTuple):
    """The responses about a block that is named in one form."""

    overrides: ProbeResult
    values: ProbeResult
    proof: ProbeResult


def _forms(
    at: BlockAt, reasons: dict[str, str], *, whole: bool
) -> Generator[Sequence[Asking], Sequence[ProbeResult], tuple[tuple[BlockForm, ...], _AboutBlock]]:
    """The accepted forms of a block parameter: used for a known block, refused for an unknown one.

    Other requests about a block are sent with the first form, or after the accepted one.
    """
    found: list[BlockForm] = []
    about: _AboutBlock | None = None
    for form in BlockForm:
        more = _about(at.parameter(form)) if form is _BEST else []
        result = yield [_balance(at, form), _balance(BlockAt(_UNBORN, _MADE_UP), form), *more]
        if isinstance(result[0], RefusedAnswer):
            reasons[form.value] = str(result[0])
        elif isinstance(result[1], RefusedAnswer):
            found.append(form)
            about = _AboutBlock(*result[2:]) if more else about
            if not whole:
                break
        else:
            reasons[form.value] = "a block that does not exist is answered for, too"
    if about is None:
        form = found[0] if found else BlockForm.NUMBER
        about = _AboutBlock(*(yield _about(at.parameter(form))))
    return tuple(found), about


def _about(block: object) -> list[Asking]:
    return [_overrides(block), _values(block), _proof(block)]


def _balance(at: BlockAt, form: BlockForm) -> Asking:
    return Asking("eth_getBalance", (format_data(BUSY), at.parameter(form)))


def _overrides(block: object) -> Asking:
    call, _, changes = _LAID_OVER.params(block)
    assert isinstance(changes, dict)
    put = {format_data(SLOT.to_bytes(32)): format_data(_PUT.to_bytes(32))}
    changes[format_data(NOBODY)]["stateDiff"] = put
    return Asking(_LAID_OVER.method, (call, block, changes))


def _has_overrides(result: ProbeResult, reasons: dict[str, str]) -> bool:
    """Return True if a call with overridden code reads the overridden slot."""
    try:
        output = parse_data(_text(_needed(result)))
        if extractor.words(_LAID_OVER.slots, output)[NOBODY] == [(SLOT, _PUT)]:
            return True
        reasons["overrides"] = "they have no effect"
    except (RefusedAnswer, ValueError) as why:
        reasons["overrides"] = str(why)
    return False


def _values(block: object) -> Asking:
    return Asking(_TWO_VALUES.method, tuple(_TWO_VALUES.params(block)))


def _has_values(result: ProbeResult, reasons: dict[str, str]) -> bool:
    try:
        read_values(_TWO_VALUES.slots, _needed(result))
    except RefusedAnswer as why:
        reasons["eth_getStorageValues"] = str(why)
        return False
    return True


def _depth(tip: BlockAt, at: BlockAt | None, result: _AboutBlock, reasons: dict[str, str]) -> int:
    """Return how far below the tip blocks are proven, of those that were requested."""
    if tip.number < _BEHIND:
        return 0
    # A missing block is no statement about proofs.
    return _BEHIND if at is None or _is_proven(result.proof, _BEHIND, reasons) else 0


def _is_proven(result: ProbeResult, depth: int, reasons: dict[str, str]) -> bool:
    try:
        read_proof(_BUSY_PROOF, _needed(result))
    except RefusedAnswer as why:
        reasons["eth_getProof" if depth == 0 else f"eth_getProof {depth} back"] = str(why)
        return False
    return True


def _far_proofs(
    tip: BlockAt, form: BlockForm, reasons: dict[str, str]
) -> Generator[Sequence[Asking], Sequence[ProbeResult], int]:
    """The furthest block below the tip that is proven, of those that are tried."""
    deepest = _BEHIND
    for depth in PROOF_DEPTHS[2:]:
        if depth > tip.number:
            break
        (result,) = yield [_block(tip.number - depth)]
        try:
            at = _head(tip.number - depth, result)
        except RefusedAnswer:
            return depth  # a missing block is no statement about proofs
        (result,) = yield [_proof(at.parameter(form))]
        if not _is_proven(result, depth, reasons):
            break
        deepest = depth
    return deepest


def _witness(reasons: dict[str, str]) -> Generator[Sequence[Asking], Sequence[ProbeResult], bool]:
    """Return True if the method exists: for a missing block it returns another error."""
    (result,) = yield [Asking("debug_executionWitness", (format_quantity(_UNBORN),))]
    if not isinstance(result, RefusedAnswer):
        return True
    away = (RefusalKind.NO_METHOD.value, RefusalKind.FORBIDDEN.value)
    if result.kind in away:
        reasons["debug_executionWitness"] = str(result)
    return result.kind not in away


def _largest_batch(answered: Sequence[ProbeResult], reasons: dict[str, str]) -> int:
    """The largest batch that is answered whole, of those that were tried."""
    most = 1
    for size, result in zip(BATCHES, answered, strict=True):
        if result != size:
            why = str(result) if isinstance(result, RefusedAnswer) else "not all of it was answered"
            reasons[f"batch of {size}"] = why
            break
        most = size
    return most


def _needed(result: ProbeResult) -> Raw:
    if isinstance(result, RefusedAnswer):
        raise result
    assert isinstance(result, Raw)
    return result


def _text(result: Raw) -> str:
    try:
        return msgspec.json.decode(result, type=str)
    except msgspec.MsgspecError as why:
        raise RefusedAnswer(RefusalKind.WRONG_SHAPE.value, str(why)) from why
