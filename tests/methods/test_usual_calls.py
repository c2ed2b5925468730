"""The short way of a usual call against the long way of any call."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asking import Asker, asker, error, request
from bytecode import LOOP
from foreblock.ledger.view import Ledger
from foreblock.methods.calls import CallMethods

CONTRACTS = [
    "0x9344b07175800259691961298ca11c824e65032d",  # returns its environment
    "0x0ee3ab1371c93e7c0c281cc0c2107cdebc8b1930",  # reverts with a panic
    "0xeda8645ba6948855e3b3cd596bbb07596d59c603",  # delegates
    "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df",
    "0x" + "00" * 19 + "04",
    "0x" + "00" * 20,
]
TEXTS = st.sampled_from([*CONTRACTS, "0x", "0x12", "0xabc", "", "nope", "0X" + "00" * 20])
USUAL = st.fixed_dictionaries(
    {"to": st.sampled_from(CONTRACTS) | TEXTS},
    optional={
        "data": st.binary(max_size=40).map(lambda data: "0x" + data.hex()) | TEXTS,
        "from": TEXTS,
        "gas": st.sampled_from(["0x5208", "0x186a0", "0x0"]),
        "value": st.sampled_from(["0x0", "0x1"]),
    },
)
BLOCKS = st.sampled_from(["latest", "pending", "0x1", "0x36", "0x37", "earliest", "safe", "0x01"])


def the_long_way(client: Asker, call: dict[str, Any], block: str) -> bytes:
    """A nonce changes nothing, but is nothing that a usual call has."""
    return client.reply(request("eth_call", call | {"nonce": "0x0"}, block)).body


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(USUAL, BLOCKS)
def test_both_ways_give_the_same_bytes(
    preconf: Asker, ethereum: Asker, call: dict[str, Any], block: str
) -> None:
    for client in (preconf, ethereum):
        short = client.reply(request("eth_call", call, block)).body
        assert short == the_long_way(client, call, block)


def test_usual_call_does_take_the_short_way(
    published_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallMethods, "_call", None)
    with asker(published_ledger) as client:
        usual = {"to": CONTRACTS[0], "data": "0x12345678", "from": CONTRACTS[1]}
        assert client.ask("eth_call", usual, "latest").startswith("0x")


def test_refused_and_long_calls_leave_the_short_way(published_ledger: Ledger) -> None:
    """A large precompile is not begun in place; nobody has the gas for this one."""
    data = "0x" + f"{1024:064x}" * 3 + "ff" * 3072
    modexp = {"to": "0x" + "00" * 19 + "05", "data": data}
    with asker(published_ledger, gas_cap=500_000) as client:
        assert client.ask("eth_call", modexp, "latest") == error(-32000, "out of gas")
    with asker(published_ledger, gas_cap=20_000) as client:
        answer = client.ask("eth_call", {"to": CONTRACTS[0]}, "latest")
        why = "err: intrinsic gas too low: have 20000, want 21000 (supplied gas 20000)"
        assert answer == error(-32000, why)


def test_loop_with_an_override_does_not_make_the_usual_call_heavy(
    published_ledger: Ledger,
) -> None:
    with asker(published_ledger, call_timeout_ms=50, gas_cap=0, pool_capacity=1) as client:
        contract = CONTRACTS[0]
        loop = request("eth_call", {"to": contract}, "latest", {contract: {"code": LOOP}})
        usual = request("eth_call", {"to": contract}, "latest")
        replies = client.replies([loop, loop, loop, usual])
        assert "result" in json.loads(replies[3].body)
