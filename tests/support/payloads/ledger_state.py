"""A whole state as a plain value and its changes, for comparison with the store."""

from dataclasses import dataclass, field
from pathlib import Path

from foreblock._engine import Account, Changes, Overlay, State, Store


@dataclass(frozen=True)
class AccountState:
    """An account and its storage."""

    nonce: int
    balance: int
    code_hash: bytes
    slots: dict[int, int] = field(default_factory=dict)


Model = dict[bytes, AccountState]


def dump(state: State) -> Model:
    """Everything in a state, read account by account."""
    model = {}
    for address, account in state.accounts(None, 10_000):
        model[address] = _life(account, dict(state.slots(address, None, 10_000)))
    return model


def changed(model: Model, changes: Changes) -> Model:
    """The model after these changes."""
    after = dict(model)
    for address, before, now, slots in changes.accounts:
        if now is None:
            after.pop(address, None)
            continue
        same_life = before is not None and before.generation == now.generation
        kept = model[address].slots if same_life else {}
        merged = {slot: value for slot, value in (kept | slots).items() if value}
        after[address] = _life(now, merged)
    return after


def root_from_scratch(folder: Path, state: State) -> bytes:
    """The root of a state, built from scratch."""
    overlay = Overlay.empty()
    for address, life in dump(state).items():
        overlay.set(
            address,
            balance=life.balance,
            nonce=life.nonce,
            code=state.code(address),
            state=life.slots,
        )
    with Store(str(folder), write=True) as store:
        batch = store.batch()
        batch.append(0, bytes(32), overlay.take(batch.draw()))
        store.commit(batch)
        return store.trie().root()


def _life(account: Account, slots: dict[int, int]) -> AccountState:
    return AccountState(account.nonce, account.balance, account.code_hash, slots)
