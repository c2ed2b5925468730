"""State overrides of every kind that is read in more than one way, good and bad ones.

They are to be laid over a state of which `A1` is then called.
"""

from typing import Any

from support.payloads.bytecode import returning
from support.servers.simulating import A0, A1, A2, funded, word

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
    "a move of what is no precompile": {
        A2: {"movePrecompileToAddress": A1, "stateDiff": SLOTS},
    },
}
