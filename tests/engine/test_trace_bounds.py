"""Tracers count the bytes of a step before they write it."""

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
        trace_call(overlay, env(), message(gas=1 << 40), Tracer.struct_logs(memory=True), limit=MIB)
    assert peak_bytes([os.getpid()]) - before < 100 * MIB
