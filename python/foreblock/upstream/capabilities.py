"""What an endpoint can do, found out with a handful of requests. No I/O.

`probing` is a generator: it yields requests, gets each answer or refusal sent back, and returns
`Capabilities`. Its caller does the asking. An ability counts only where its answer is
right: a node that takes a block by hash but ignores the hash does not take it, and one that
ignores overrides does not know them.
"""

from collections.abc import Generator
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import RefusedAnswer
from foreblock.primitives import (
    format_data,
    format_quantity,
    harmless,
    parse_data,
    parse_quantity,
)
from foreblock.upstream import extractor
from foreblock.upstream.answers import read_header, read_proof, read_values
from foreblock.upstream.asked import AskedCall, AskedProof, AskedValues, BlockAt, BlockForm
from foreblock.upstream.refusals import RefusalKind
from foreblock.upstream.state_plan import EndpointWays

# How far back proofs are tried; the furthest that works is what is known.
PROOF_DEPTHS: Final = (0, 2, 16, 128, 1024, 8192)
NEAR: Final = (0, 2)  # where only that matters
BATCHES: Final = (2, 10, 50, 100)
NOBODY: Final = bytes.fromhex("8d64ec077cde93743e429ac2cfd58a269b691a8a")
# OP: the contract that every block writes to, so that even an endpoint that knows little has it.
BUSY: Final = bytes.fromhex("4200000000000000000000000000000000000015")
BUSY_SLOT: Final = 0
_MADE_UP: Final = b"\xfe" * 32  # the hash of no block
_BEHIND: Final = 2  # blocks below the tip at which is asked, for endpoints of many nodes
_UNBORN: Final = (1 << 53) - 1  # a number that no block has
SLOT: Final = 7
_PUT: Final = 0x0123456789ABCDEF


class Asking(NamedTuple):
    """A request of a probe; `copies` above 1 asks for a batch of so many."""

    method: str
    params: tuple[object, ...] = ()
    copies: int = 1


Said = Raw | RefusedAnswer | int  # a result, a refusal, or how many of a batch were answered
Probing = Generator[Asking, Said, "Capabilities"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What an endpoint can do; `reasons` says for each ability why it is not there."""

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

    def ways(self) -> EndpointWays:
        """What a planner may use; an endpoint that knows no form of blocks has none."""
        return EndpointWays(
            proofs=self.proof_depth is not None,
            tip_proofs=self.proof_depth is not None and self.proof_depth < _BEHIND,
            calls=self.overrides,
            values=self.storage_values,
            form=self.forms[0] if self.forms else BlockForm.NUMBER,
            batch=self.batch,
        )

    @property
    def can_prove(self) -> bool:
        """Whether state can be proven: by proofs of the tip at least."""
        return bool(self.forms) and self.proof_depth is not None

    @property
    def can_serve(self) -> bool:
        """Whether state can be read at all."""
        return bool(self.forms)


def probing(*, whole: bool) -> Probing:
    """The requests, in order; ends with what is known. Raises `RefusedAnswer`.

    Only what no endpoint can lack is raised: its chain id, its latest block. Unless the `whole`
    is wanted, it ends with what a plan needs: the best form of blocks, and whether proofs are of
    the tip only.
    """
    reasons: dict[str, str] = {}
    chain_id = parse_quantity(_text(_needed((yield Asking("eth_chainId")))), 64)
    said = yield Asking("web3_clientVersion")
    client = "" if isinstance(said, RefusedAnswer) else harmless(_text(_needed(said)))
    tip = yield from _head("latest")
    at = tip if tip.number < _BEHIND else (yield from _near(tip))
    forms = yield from _forms(at, reasons, whole=whole)
    form = forms[0] if forms else BlockForm.NUMBER
    return Capabilities(
        chain_id=chain_id,
        client=client,
        latest=tip,
        forms=forms,
        overrides=(yield from _overrides(at.parameter(form), reasons)),
        storage_values=(yield from _storage_values(at.parameter(form), reasons)),
        proof_depth=(yield from _proofs(form, reasons, PROOF_DEPTHS if whole else NEAR)),
        witness=whole and (yield from _witness(reasons)),
        batch=(yield from _batches(reasons)),
        reasons=reasons,
    )


def _head(of: str | int) -> Generator[Asking, Said, BlockAt]:
    name = of if isinstance(of, str) else format_quantity(of)
    said = _needed((yield Asking("eth_getBlockByNumber", (name, False))))
    number = of if isinstance(of, int) else _number_of(said)
    header = read_header(number, said)
    return BlockAt(header.number, header.hash)


def _near(tip: BlockAt) -> Generator[Asking, Said, BlockAt]:
    """A block a little below the tip; the tip itself where the endpoint has no other."""
    try:
        return (yield from _head(tip.number - _BEHIND))
    except RefusedAnswer:
        return tip


def _number_of(said: Raw) -> int:
    try:
        fields = msgspec.json.decode(said, type=dict[str, object])
        return parse_quantity(fields.get("number"), 64)
    except (msgspec.MsgspecError, ValueError) as why:
        raise RefusedAnswer(RefusalKind.WRONG_SHAPE.value, f"the latest block: {why}") from why


def _forms(
    at: BlockAt, reasons: dict[str, str], *, whole: bool
) -> Generator[Asking, Said, tuple[BlockForm, ...]]:
    """The forms in which a block can be named: taken, and refused for a block that is not."""
    found = []
    for form in BlockForm:
        said = yield _balance(at, form)
        if isinstance(said, RefusedAnswer):
            reasons[form.value] = str(said)
            continue
        lie = BlockAt(_UNBORN, _MADE_UP)
        said = yield _balance(lie, form)
        if isinstance(said, RefusedAnswer):
            found.append(form)
            if not whole:
                break
        else:
            reasons[form.value] = "a block that does not exist is answered for, too"
    return tuple(found)


def _balance(at: BlockAt, form: BlockForm) -> Asking:
    return Asking("eth_getBalance", (format_data(BUSY), at.parameter(form)))


def _overrides(block: object, reasons: dict[str, str]) -> Generator[Asking, Said, bool]:
    """Whether a call reads, by the code that is laid over an account, the slot that is, too."""
    asked = AskedCall({NOBODY: (SLOT,)})
    call, _, changes = asked.params(block)
    assert isinstance(changes, dict)
    put = {format_data(SLOT.to_bytes(32)): format_data(_PUT.to_bytes(32))}
    changes[format_data(NOBODY)]["stateDiff"] = put
    said = yield Asking(asked.method, (call, block, changes))
    try:
        output = parse_data(_text(_needed(said)))
        if extractor.words(asked.slots, output)[NOBODY] == [(SLOT, _PUT)]:
            return True
        reasons["overrides"] = "they have no effect"
    except (RefusedAnswer, ValueError) as why:
        reasons["overrides"] = str(why)
    return False


def _storage_values(block: object, reasons: dict[str, str]) -> Generator[Asking, Said, bool]:
    asked = AskedValues({NOBODY: (0, SLOT)})
    said = yield Asking(asked.method, tuple(asked.params(block)))
    try:
        read_values(asked.slots, _needed(said))
    except RefusedAnswer as why:
        reasons["eth_getStorageValues"] = str(why)
        return False
    return True


def _proofs(
    form: BlockForm, reasons: dict[str, str], depths: tuple[int, ...]
) -> Generator[Asking, Said, int | None]:
    """The furthest block below the tip that is proven, of those that are tried."""
    tip = yield from _head("latest")
    asked, deepest = AskedProof(BUSY, (BUSY_SLOT,)), None
    for depth in depths:
        if depth > tip.number:
            break
        block: object = "latest"  # the tip may move on, and some prove no other block
        if depth:
            try:
                block = (yield from _head(tip.number - depth)).parameter(form)
            except RefusedAnswer:
                return depth  # it has no such block, which says nothing about proofs
        said = yield Asking(asked.method, tuple(asked.params(block)))
        try:
            read_proof(asked, _needed(said))
        except RefusedAnswer as why:
            reasons["eth_getProof" if depth == 0 else f"eth_getProof {depth} back"] = str(why)
            break
        deepest = depth
    return deepest


def _witness(reasons: dict[str, str]) -> Generator[Asking, Said, bool]:
    """Whether the method is there: asked for a block that is not, it says something else."""
    said = yield Asking("debug_executionWitness", (format_quantity(_UNBORN),))
    if not isinstance(said, RefusedAnswer):
        return True
    away = (RefusalKind.NO_METHOD.value, RefusalKind.FORBIDDEN.value)
    if said.kind in away:
        reasons["debug_executionWitness"] = str(said)
    return said.kind not in away


def _batches(reasons: dict[str, str]) -> Generator[Asking, Said, int]:
    """The largest batch that is answered whole, of those that are tried."""
    most = 1
    for size in BATCHES:
        said = yield Asking("eth_chainId", (), size)
        if said != size:
            why = str(said) if isinstance(said, RefusedAnswer) else "not all of it was answered"
            reasons[f"batch of {size}"] = why
            break
        most = size
    return most


def _needed(said: Said) -> Raw:
    if isinstance(said, RefusedAnswer):
        raise said
    assert isinstance(said, Raw)
    return said


def _text(said: Raw) -> str:
    try:
        return msgspec.json.decode(said, type=str)
    except msgspec.MsgspecError as why:
        raise RefusedAnswer(RefusalKind.WRONG_SHAPE.value, str(why)) from why
