"""Random simulations: contracts with a variety of operations, and calls to them.

No contract reads its block, so that calls have the same result in another block.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from foreblock.ledger.calls.request import BlockRequest, Call, CallRequest, Overrides, PlainCalls
from support.payloads.bytecode import code, returning
from support.payloads.params import overrides
from support.servers.asking import A0, A1, A2, funded, word

PEOPLE = [bytes([0xA0 + i]) * 20 for i in range(4)]
CONTRACTS = [bytes([0xD0 + i]) * 20 for i in range(7)]
COINBASE = b"\xfe" * 20
GWEI = 10**9


def _call(to: bytes, value: int) -> tuple[str | int | bytes, ...]:
    return (0, 0, 0, 0, value, to, 50_000, "CALL", "POP")


def _program(*parts: str | int | bytes) -> bytes:
    return bytes.fromhex(code(*parts)[2:])


CODES = [
    _program(*_call(PEOPLE[0], 3), *_call(PEOPLE[1], 0)),  # forwards
    _program(*_call(CONTRACTS[2], 2), 1, 0, "SSTORE"),  # forwards to a contract that reverts
    _program(1, 0, "SSTORE", *_call(PEOPLE[2], 1), 0, 0, "REVERT"),
    _program(bytes(PEOPLE[3])) + b"\xff",  # destroys itself in favour of another account
    _program("ADDRESS") + b"\xff",  # destroys itself in its own favour
    _program(0, "SLOAD", 1, "ADD", 0, "SSTORE", 0, 0) + b"\xa0",  # counts, and logs
    _program("JUMPDEST", 0, "JUMP"),
]


def accounts() -> Overrides:
    """Funded callers, and contracts with their code."""
    people = {who: {"balance": 10**18} for who in PEOPLE}
    contracts = zip(CONTRACTS, CODES, strict=True)
    return overrides(people | {who: {"code": what, "balance": 1_000} for who, what in contracts})


_prices = st.one_of(
    st.just({}),
    st.builds(lambda price: {"gas_price": price}, st.integers(20, 90)),
    st.builds(
        lambda tip, more: {"max_priority_fee_per_gas": tip, "max_fee_per_gas": 20 + tip + more},
        st.integers(0, 20),
        st.integers(0, 50),
    ),
)


@st.composite
def calls(draw: st.DrawFn, *, priced: bool = True) -> CallRequest:
    """A call by a funded account, to any account or as a creation."""
    to = draw(st.sampled_from([*PEOPLE, *CONTRACTS, None]))
    data = draw(st.sampled_from([b"", b"\1\2", CODES[5], _program(bytes(PEOPLE[0])) + b"\xff"]))
    prices = draw(_prices) if priced else {}
    call = Call(
        to,
        0,
        draw(st.sampled_from(PEOPLE)),
        data,
        draw(st.integers(0, 50)),
        is_plain=not prices,
        **prices,
    )
    return CallRequest(call, gas=draw(st.sampled_from([60_000, 120_000, 300_000])))


def blocks(*, priced: bool = True) -> st.SearchStrategy[list[BlockRequest]]:
    """Up to three blocks of up to four calls."""
    block = st.lists(calls(priced=priced), max_size=4).map(BlockRequest)
    return st.lists(block, min_size=1, max_size=3)


def one_by_one(block: BlockRequest) -> Sequence[CallRequest]:
    """Execute the calls of a block one by one."""
    assert not isinstance(block.calls, PlainCalls)
    return block.calls


ODD = "0x" + "00" * 19 + "0g"
SLOTS = {word(number): word(number + 1) for number in range(9)}
LOADS = returning(8, "SLOAD")

ODD_OVERRIDES: dict[str, Any] = {
    "slots": {A1: {"stateDiff": SLOTS, "code": LOADS}},
    "slots that replace all": {A1: {"code": LOADS, "state": SLOTS, "balance": "0x1"}},
    "slots by another name": {A1: {"code": LOADS, "storage": SLOTS}},
    "slots by both names": {A1: {"code": LOADS, "storage": SLOTS, "stateDiff": SLOTS}},
    "slots by both names that differ": {
        A1: {"storage": SLOTS, "stateDiff": dict(list(SLOTS.items())[:-1])}
    },
    "state and stateDiff": {A1: {"state": SLOTS, "stateDiff": SLOTS}},
    "accounts that are null": {
        A1: None,
        A2: {"balance": None, "stateDiff": None, "x": [SLOTS]},
        A0: None,
    },
    "long code": {A1: {"code": "0x" + "5b" * 99 + LOADS[2:], "stateDiff": SLOTS}},
    "accounts that are an array": ["x" * 99],
    "accounts that are a text": "x" * 99,
    "an address of an account": {**funded(A0, A1), ODD: {}},
    "an address of a long account": {**funded(A0, A1), ODD: {"state": SLOTS}},
    "a long account that is an array": {**funded(A0), A2: [SLOTS]},
    "a field of an account": {**funded(A0, A1), A2: {"nonce": "0x00"}},
    "a field of a long account": {A2: {"state": SLOTS, "nonce": 1}},
    "two fields of a long account": {A2: {"nonce": 1, "state": SLOTS, "balance": 1, "code": 1}},
    "long code that is none": {A2: {"code": "0x" + "0" * 99}},
    "a slot that is none": {A2: {"stateDiff": SLOTS | {"0x1": word(1)}}},
    "a slot and a field": {A2: {"balance": "x", "stateDiff": SLOTS | {"0x1": word(1)}}},
    "a value that is none": {A2: {"stateDiff": SLOTS | {word(1): "x" * 99}}},
    "slots that are an array": {A2: {"stateDiff": [word(1)] * 9}},
    "a precompile moved": {
        "0x" + "00" * 19 + "04": {"movePrecompileToAddress": A1},
        A2: {"stateDiff": SLOTS},
    },
    "a move of a non-precompile": {
        A2: {"movePrecompileToAddress": A1, "stateDiff": SLOTS},
    },
}
