"""Failures are exceptions with the reason, and the calls that led to them as notes."""

import pytest

from foreblock import DevChain
from foreblock.dev_chain import Contract
from foreblock.errors import Halted, Reverted
from support.payloads.bytecode import code

BOB = b"\xb0" * 20


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        ("failWithReason", (), "not today"),
        ("failWithoutReason", (), ""),
        ("panic", (), "assert(false)"),
        ("transfer", (BOB, 5_000), "InsufficientBalance({sender}, 1000, 5000)"),
    ],
)
def test_calls_and_transactions_fail_for_the_same_reason(
    dev: DevChain, token: Contract, function: str, arguments: tuple[object, ...], reason: str
) -> None:
    sender = dev.rpc("eth_accounts")[0]
    expected = reason.format(sender=checksummed(dev))
    with pytest.raises(Reverted) as called:
        token.call(function, *arguments, sender=sender)
    with pytest.raises(Reverted) as sent:
        token.send(function, *arguments)
    assert called.value.reason == sent.value.reason == expected
    assert called.value.output == sent.value.output
    for raised in (called, sent):
        (line,) = raised.value.__notes__
        assert f"0x{token.address.hex()}" in line.lower()
        assert "reverted" in line
    assert dev.nonce(sender) == 2, "the transaction that failed is in a block"


def checksummed(dev: DevChain) -> str:
    """The first account, as the tools of the mnemonic show it."""
    known = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert f"0x{dev.accounts[0].hex()}" == known.lower()
    return known


def test_a_run_into_an_invalid_opcode_halts(token: Contract) -> None:
    with pytest.raises(Halted, match="invalid opcode"):
        token.call("runIntoInvalid")
    with pytest.raises(Halted, match="invalid opcode"):
        token.send("runIntoInvalid")


def test_notes_have_the_calls_below(dev: DevChain, token: Contract) -> None:
    relay = b"\xee" * 20
    selector = int.from_bytes(bytes.fromhex("5b6cd2d3").ljust(32, b"\0"))
    call = code(selector, 0, "MSTORE", 0, 0, 4, 0, 0, bytes(token.address), "GAS", "CALL")
    dev.set_code(relay, call + code(0, 0, "REVERT").removeprefix("0x"))
    with pytest.raises(Reverted) as raised:
        dev.send(relay)
    outer, inner = raised.value.__notes__
    assert relay.hex() in outer.lower()
    assert inner.startswith("  ")
    assert token.address.hex() in inner.lower()


def test_a_failed_transaction_can_be_examined(token: Contract) -> None:
    sent = token.send("failWithReason", check=False)
    receipt = sent.receipt
    assert receipt is not None
    assert receipt.status == 0
    with pytest.raises(Reverted, match="not today"):
        sent.check()


def test_in_other_modes_a_failure_is_known_later() -> None:
    with DevChain(mode="manual") as manual:
        manual.set_code(BOB, code(0, 0, "REVERT"))
        sent = manual.send(BOB)
        assert sent.check() is None
        manual.flashblock()
        with pytest.raises(Reverted):
            sent.check()
