"""The short way of a usual eth_getBalance against the long way of any."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from asking import Asker, asker, request
from foreblock.errors import ForeblockError
from foreblock.ledger.view import Ledger, LedgerView
from foreblock.methods.options import Options
from foreblock.methods.state import StateMethods
from foreblock.methods.submissions import NoSequencer

HELD = [
    "0x9344b07175800259691961298ca11c824e65032d",
    "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df",
    "0x" + "00" * 20,
    "0X" + "00" * 19 + "0A",
    "0x" + "ee" * 20,
]
ADDRESSES = st.sampled_from([*HELD, "", "0x", "0x12", "nope", "0x" + "zz" * 20, 5, None])
BLOCKS = st.sampled_from(
    ["latest", "pending", "earliest", "safe", "0x1", "0x36", "0x37", "0x01", "", "newest", 7, None,
     {"blockNumber": "0x2"}, {"blockHash": "0x" + "11" * 32}]
)  # fmt: skip
PARAMS = st.tuples(ADDRESSES, BLOCKS) | st.tuples(ADDRESSES) | st.tuples(ADDRESSES, BLOCKS, BLOCKS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(PARAMS)
def test_both_ways_give_the_same_bytes(published_ledger: Ledger, params: tuple[object]) -> None:
    raw = Raw(request("eth_getBalance", *params).partition(b'"params": ')[2][:-1])
    view = published_ledger.view()
    for options in (Options(), Options("ethereum")):
        methods = StateMethods(options, NoSequencer())
        assert end_of(methods.get_balance, view, raw) == end_of(methods._get_balance, view, raw)
    view.close()


def end_of(method: object, view: LedgerView, raw: Raw) -> object:
    assert callable(method)
    try:
        return method(view, raw)
    except ForeblockError as error:
        return type(error), str(error)


@pytest.mark.parametrize("block", ["latest", "0x36", "pending"])
def test_usual_balance_does_take_the_short_way(
    published_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    monkeypatch.setattr(StateMethods, "_get_balance", None)
    with asker(published_ledger) as client:
        for address in HELD:
            assert client.ask("eth_getBalance", address, block).startswith("0x")


def test_address_is_refused_before_the_block(preconf: Asker) -> None:
    """Argument 0 is wrong, and so is argument 1."""
    answer = preconf.ask("eth_getBalance", "0x12", "0xffff")
    assert answer["message"].startswith("invalid argument 0")
