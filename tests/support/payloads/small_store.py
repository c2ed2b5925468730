"""Stores and states of a few accounts, for tests of the engine interface."""

from collections.abc import Callable

from foreblock._engine import Batch, Changes, Env, Heads, Message, Overlay, Store

ALICE = b"\xa1" * 20
BOB = b"\xb0" * 20
CONTRACT = b"\xc0" * 20

Edit = Callable[[Overlay], object]


def word(number: int) -> bytes:
    """32 bytes: an arbitrary hash, or a slot."""
    return number.to_bytes(32)


def nothing(_: Overlay) -> None:
    """An edit of a block without changes."""


def changes(store: Store, batch: Batch, edit: Edit, *, partial: int | None = None) -> Changes:
    """The changes of this edit above the latest block, or above a partial one."""
    with store.view() as view:
        latest = view.heads.latest
        if partial is not None:
            overlay = view.state_of_partial(partial).overlay()
        elif latest is not None:
            overlay = view.state(latest[0]).overlay()
        else:
            overlay = Overlay.empty()
        edit(overlay)
        return overlay.take(batch.draw())


def append(store: Store, edit: Edit = nothing) -> Heads:
    """Commit the next block; its hash is its number."""
    with store.view() as view:
        latest = view.heads.latest
    block = latest[0] + 1 if latest else 0
    batch = store.batch()
    batch.append(block, word(block), changes(store, batch, edit))
    return store.commit(batch)


def balance(address: bytes, amount: int) -> Edit:
    return lambda overlay: overlay.set(address, balance=amount)


def env(rules: str = "ethereum:Prague", **fields: int) -> Env:
    """A block environment of any fork in which gas is free."""
    return Env(
        rules=rules,
        chain_id=fields.pop("chain_id", 1),
        number=fields.pop("number", 10),
        timestamp=1_700_000_000,
        coinbase=b"\xcb" * 20,
        gas_limit=fields.pop("gas_limit", 30_000_000),
        prevrandao=bytes(32),
        blob_base_fee=1,
        base_fee=fields.pop("base_fee", 0),
    )


def message(to: bytes | None = CONTRACT, *, gas: int = 1_000_000, **fields: int) -> Message:
    return Message(sender=ALICE, to=to, gas=gas, value=fields.pop("value", 0))


def with_code(code: str) -> Overlay:
    """An overlay with this code, in hex, at `CONTRACT`, and some ether for Alice."""
    overlay = Overlay.empty()
    overlay.set(CONTRACT, code=bytes.fromhex(code))
    overlay.set(ALICE, balance=10**18)
    return overlay
