"""Request parameters in the engine's form: plain calls, and overrides of accounts."""

import json
from typing import Any

from foreblock._engine import Overrides, PlainCalls, read_simulation

# Sender, recipient, value, data and gas.
PlainCall = tuple[bytes, bytes | None, int, bytes, int | None]


def plain_calls(*calls: PlainCall) -> PlainCalls:
    found = _block({"calls": [_call(*call) for call in calls]})[0]
    assert isinstance(found, PlainCalls)
    return found


def overrides(accounts: dict[bytes, dict[str, Any]]) -> Overrides:
    """Fields by their JSON names; numbers, bytes and slots unchanged."""
    given = {
        _hex(who): {name: _text(value) for name, value in account.items()}
        for who, account in accounts.items()
    }
    found = _block({"stateOverrides": given})[1]
    assert found is not None
    return found


def _block(block: dict[str, Any]) -> tuple[Any, Overrides | None, Any]:
    params = json.dumps([{"blockStateCalls": [block]}]).encode()
    return read_simulation(params, 1, 1, 10**6, 10**6)[0][0]


def _call(
    sender: bytes, to: bytes | None, value: int, data: bytes, gas: int | None
) -> dict[str, str]:
    call = {"from": _hex(sender), "value": hex(value), "data": _hex(data)}
    return (
        call | ({} if to is None else {"to": _hex(to)}) | ({} if gas is None else {"gas": hex(gas)})
    )


def _text(value: int | bytes | dict[int, int]) -> str | dict[str, str]:
    if isinstance(value, dict):
        return {f"0x{slot:064x}": f"0x{word:064x}" for slot, word in value.items()}
    return hex(value) if isinstance(value, int) else _hex(value)


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
