"""eth_call, compared with direct calls of the engine, on random calls and random code."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Message, Outcome
from foreblock.errors import InvalidMessage
from foreblock.ledger.reading.view import Ledger
from foreblock.types import revert_reason
from support.chains import long_chain
from support.servers.asking import Asker

TO = bytes.fromhex("00000000000000000000000000000000000c0de0")
RICH = bytes.fromhex(long_chain.RICH[2:])
# Opcodes with few requirements and large effects, so that random code makes progress.
PUSHES = st.binary(min_size=1, max_size=4).map(lambda data: bytes([0x5F + len(data)]) + data)
OPCODES = st.sampled_from(
    [bytes([each]) for each in b"\x00\x01\x02\x10\x14\x16\x20\x30\x31\x32\x33\x34\x35\x36\x3a\x40"
     b"\x41\x42\x43\x44\x45\x46\x47\x48\x4a\x50\x51\x52\x54\x55\x56\x57\x58\x59\x5a\x5b\x5f\x80"
     b"\x81\x90\xa0\xf1\xf3\xfa\xfd\xfe\xff"]
)  # fmt: skip
CODE = st.lists(PUSHES | OPCODES, max_size=40).map(b"".join)


def direct(ledger: Ledger, code: bytes, fields: dict[str, Any]) -> Outcome | None:
    """The engine's outcome, or None if it rejects the call."""
    view = ledger.view()
    try:
        overlay = view.state(view.latest).overlay()
        overlay.set(TO, code=code)
        try:
            return overlay.call(view.latest.context.unpriced, Message(to=TO, **fields))
        except InvalidMessage:
            return None
    finally:
        view.close()


@given(
    code=CODE,
    data=st.binary(max_size=70),
    value=st.integers(0, 3),
    gas=st.integers(0, 200_000),
    sender=st.sampled_from([RICH, TO, bytes(20)]),
)
def test_answer_is_the_outcome_of_the_engine(
    long_ledger: Ledger, ethereum: Asker, code: bytes, data: bytes, value: int, gas: int,
    sender: bytes,
) -> None:  # fmt: skip
    call = {
        "from": "0x" + sender.hex(), "to": "0x" + TO.hex(), "data": "0x" + data.hex(),
        "value": hex(value), "gas": hex(gas),
    }  # fmt: skip
    overrides = {"0x" + TO.hex(): {"code": "0x" + code.hex()}}
    answer = ethereum.ask("eth_call", call, "latest", overrides)
    fields = {"sender": sender, "data": data, "value": value, "gas": gas}
    outcome = direct(long_ledger, code, fields)
    if outcome is None:
        assert answer["message"].startswith("err: ")
        assert answer["message"].endswith(f" (supplied gas {gas})")
        assert "insufficient" in answer["message"] or "intrinsic" in answer["message"]
    elif outcome.status == "success":
        assert answer == "0x" + outcome.output.hex()
    elif outcome.status == "revert":
        assert answer["code"] == 3
        assert answer["data"] == "0x" + outcome.output.hex()
        assert answer["message"].endswith(revert_reason(outcome.output))
    else:
        assert answer == {"code": -32000, "message": outcome.halt}
