"""Compares a view with itself and with the model."""

from crash.plan import STAMP, AccountState, Model
from foreblock._engine import State, View
from foreblock.errors import DroppedPartial, PrunedState, UnknownPartial

MODEL_ROW = b"model"
STAMP_ROW = b"stamp"


def block_row(block: int) -> bytes:
    return b"block" + block.to_bytes(8)


def mixture(view: View) -> str | None:
    """Return mixed commits in this view, without the model.

    The note, the stamp row, the heads and the model row were all written by the last commit. Each
    block and partial block in the model row has its stamp in its hash, its row, a balance, a slot
    and an index row.
    """
    heads = view.heads
    if heads.commit == 0:
        return None
    row = view.row(MODEL_ROW)
    if row is None:
        return "no model row"
    model = Model.load(row)
    stamps = {
        "heads": heads.commit,
        "note": int.from_bytes(heads.note),
        "row": int.from_bytes(view.row(STAMP_ROW) or b""),
        "model": model.commit,
    }
    if len(set(stamps.values())) != 1:
        return f"stamps differ: {stamps}"
    latest = model.blocks[model.latest]
    if heads.latest != (model.latest, latest.hash):
        return f"latest is {heads.latest}, the model's is {model.latest} {latest.hash!r}"
    if heads.pending != model.pending:
        return f"pending is {heads.pending}, the model's is {model.pending}"
    return mixture_of_states(view, model)


def mixture_of_states(view: View, model: Model) -> str | None:
    for block, sealed in model.blocks.items():
        if int.from_bytes(view.row(block_row(block)) or b"") != sealed.stamp:
            return f"block {block}: its row is not of {sealed.stamp}"
        if found := wrong_stamp(view.state(block), sealed.state[STAMP].balance):
            return f"block {block}: {found}"
    for number, partial in model.partials.items():
        if model.reachable(number) and (
            found := wrong_stamp(view.state_of_partial(number), partial.stamp)
        ):
            return f"partial {number}: {found}"
    return None


def wrong_stamp(state: State, stamp: int) -> str | None:
    found = (
        state.balance(STAMP),
        state.storage(STAMP, 0),
        int.from_bytes(state.index(STAMP_ROW) or b""),
    )
    return None if found == (stamp, stamp, stamp) else f"balance, slot, index {found}, not {stamp}"


def difference(view: View, model: Model) -> str | None:
    """Return the difference of the view from the model, down to the last slot."""
    heads = view.heads
    if heads.commit != model.commit:
        return f"commit {heads.commit}, not {model.commit}"
    if Model.load(view.row(MODEL_ROW) or b"") != model:
        return "another model row"
    if dict(view.rows(b"some", 100)) != model.rows:
        return "other rows"
    return difference_of_blocks(view, model) or difference_of_partials(view, model)


def difference_of_blocks(view: View, model: Model) -> str | None:
    if view.heads.earliest > min(model.blocks):
        return f"states are kept from {view.heads.earliest}, not from {min(model.blocks)}"
    if view.sealed(model.latest + 1) is not None:
        return "a block above the latest"
    for block, sealed in model.blocks.items():
        found = view.sealed(block)
        if found is None or found[0] != sealed.hash:
            return f"block {block}: sealed as {found}, not {sealed.hash!r}"
        if lives(view.state(block)) != sealed.state:
            return f"block {block}: another state"
    return None


def difference_of_partials(view: View, model: Model) -> str | None:
    for number, expected in model.partials.items():
        partial = view.partial(number)
        if partial is None:
            return f"partial {number} is gone"
        found = (partial.block, partial.index, partial.status, partial.reason, partial.stacked_on)
        wanted = (
            expected.block,
            expected.index,
            expected.status,
            expected.reason,
            expected.stacked_on,
        )
        if found != wanted or partial.parent_hash != expected.parent_hash:
            return f"partial {number}: {found}, not {wanted}"
        reachable = model.reachable(number)
        if reachable:
            if lives(view.state_of_partial(number)) != expected.state:
                return f"partial {number}: another state"
        elif reachable is False and readable(view, number):
            return f"partial {number} can be read"
    return None


def readable(view: View, number: int) -> bool:
    try:
        view.state_of_partial(number)
    except (DroppedPartial, UnknownPartial, PrunedState):
        return False
    return True


def lives(state: State) -> dict[bytes, AccountState]:
    """Everything that a state holds."""
    return {
        address: AccountState(
            balance=account.balance,
            nonce=account.nonce,
            code=state.code(address),
            slots=dict(state.slots(address, None, 1000)),
        )
        for address, account in state.accounts(None, 1000)
    }
