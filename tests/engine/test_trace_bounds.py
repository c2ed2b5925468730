"""Tracers count the bytes of a step before they copy or write them."""

import os

import pytest

from abuse.memory import peak_bytes, reset_peak
from foreblock._engine import Tracer, trace_call
from foreblock.errors import TraceTooLong
from support.payloads.small_store import env, message, with_code

MIB = 1 << 20


def test_memory_of_a_step_is_not_written_if_it_does_not_fit() -> None:
    """64 MiB of memory are 128 MiB of digits."""
    reads_last_word = f"63{64 * MIB - 32:08x}5100"  # PUSH4, MLOAD, STOP
    overlay = with_code(reads_last_word)
    before = reset_peak([os.getpid()])
    with pytest.raises(TraceTooLong):
        trace_call(
            overlay, env(), message(gas=1 << 40), Tracer("structLogs", memory=True), limit=MIB
        )
    assert peak_bytes([os.getpid()]) - before < 100 * MIB


def test_input_of_a_call_is_not_copied_if_it_does_not_fit() -> None:
    """A call with 64 MiB of memory as its input; the memory itself is allocated."""
    push_size = f"63{64 * MIB:08x}"
    reads_last_word = f"63{64 * MIB - 32:08x}5150"  # PUSH4, MLOAD, POP
    # an account without code
    calls = f"60006000{push_size}60006000" + "7301" + "00" * 19 + "5af100"
    overlay = with_code(reads_last_word + calls)
    before = reset_peak([os.getpid()])
    with pytest.raises(TraceTooLong):
        trace_call(overlay, env(), message(gas=1 << 40), Tracer("calls"), limit=MIB)
    assert peak_bytes([os.getpid()]) - before < 100 * MIB


def test_memory_in_parity_traces_is_not_written_if_it_does_not_fit() -> None:
    copies = f"63{64 * MIB:08x}600060003700"  # CALLDATACOPY of 64 MiB of zeros
    overlay = with_code(copies)
    before = reset_peak([os.getpid()])
    with pytest.raises(TraceTooLong):
        trace_call(overlay, env(), message(gas=1 << 40), Tracer("replay", vm_trace=True), limit=MIB)
    assert peak_bytes([os.getpid()]) - before < 100 * MIB
