"""What it costs to run a call."""

from dataclasses import replace

from foreblock._engine import Store
from foreblock.bench import fill
from foreblock.bench.measure import Figure, per_second
from foreblock.types import Message

CALLS = 100_000
ROUNDS = 7
GAS = 50_000_000


def calls(store: Store, accounts: list[bytes]) -> list[Figure]:
    """Calls to an account without code, to a small contract and to one of 24 kB."""
    no_code = _rates(store, accounts[len(accounts) // 2])
    small = _rates(store, fill.READER_ADDRESS)
    large = _rates(store, fill.LARGE_READER_ADDRESS)
    plain = Figure("calls without code", "/s", no_code, "over 500,000")
    one_slot = Figure("calls with one storage read", "/s", small)
    big = Figure("the same in a contract of 24 kB", "/s", large, "at most 1.3 times a small one")
    dearer = one_slot.median / big.median
    return [
        replace(plain, met=plain.median > 500_000),
        one_slot,
        replace(big, met=dearer <= 1.3, remarks=(f"{dearer:.2f} times the cost",)),
    ]


def _rates(store: Store, to: bytes) -> list[float]:
    env = fill.env(1)
    message = Message(sender=bytes(20), to=to, gas=GAS)
    with store.view() as view:
        state = view.state(0)

        def call() -> None:
            for _ in range(CALLS):
                state.call(env, message)

        return per_second(call, CALLS, ROUNDS)
