"""The predicted requests of a body, and the state requested for them."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from foreblock._engine import MissingKeys
from foreblock.errors import StateMissing
from foreblock.follow.prediction import MOST_PREDICTED, CallMessage, MissedCall, predicted_keys
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.rpc.fetching_dispatcher import Missed

TOKEN, WHO = b"\x70" * 20, b"\xaa" * 20


class FakeCalls:
    """Returns one slot for each call."""

    def __init__(self) -> None:
        self.heard: list[MissedCall] = []

    def slots(self, calls: Sequence[MissedCall]) -> Mapping[bytes, set[int]]:
        self.heard += calls
        return {TOKEN: set(range(len(calls)))}


def missed(method: str = "eth_call", **message: str) -> Missed:
    params = Raw(msgspec.json.encode([message, "latest"]))
    return Missed(method, params, StateMissing(MissingKeys([WHO])))


def asked(*requests: Missed) -> tuple[StateKeys, list[MissedCall]]:
    calls = FakeCalls()
    return predicted_keys(calls, requests), calls.heard  # type: ignore[arg-type]


def test_calls_and_estimates_are_predicted_and_nothing_else() -> None:
    call = missed(to="0x" + TOKEN.hex(), data="0x01020304", **{"from": "0x" + WHO.hex()})
    wanted, heard = asked(missed("eth_getBalance"), call, missed("eth_estimateGas", to="broken"))
    assert wanted == StateKeys(slots={TOKEN: frozenset({0})})
    assert heard == [MissedCall(CallMessage(WHO, TOKEN, b"\1\2\3\4"), call.why.misses)]


def test_a_body_without_calls_and_one_with_too_many() -> None:
    assert asked(missed("eth_getBalance")) == (StateKeys(), [])
    assert len(asked(*[missed(to="0x" + TOKEN.hex())] * 100)[1]) == MOST_PREDICTED
