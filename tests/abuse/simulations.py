"""Excessive simulations and calls, and their permitted responses.

All of them at full scale; a scale below 1 reduces everything countable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from abuse.wire import request

Json = dict[str, Any]

CONTRACT = "0x" + "fe" * 20
LOOP = "0x5b600056"  # JUMPDEST PUSH1 0 JUMP
LONG_RETURN = "0x620fffff5ff3"  # PUSH3 1048575 PUSH0 RETURN
MIDDLING_RETURN = "0x620199e05ff3"  # PUSH3 104928 PUSH0 RETURN
LONG_REVERT = "0x620fffff5ffd"
BEACON_ROOTS = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02"  # called at the start of each block
RESULT = None  # instead of an error code
LIMIT, STOPPED = -38026, -32000  # above a limit; the deadline, or a rejected override


@dataclass(frozen=True)
class Excess:
    """A request, and its permitted status and codes."""

    body: bytes
    codes: tuple[int | None, ...]
    status: int = 200


def simulation(*blocks: Json) -> bytes:
    return request("eth_simulateV1", {"blockStateCalls": list(blocks)}, "latest")


def block(*calls: Json, **parts: Json) -> Json:
    return {"calls": list(calls), **parts}


def overriding(**fields: object) -> Json:
    """A block with one call of a contract with this override."""
    return block({"to": CONTRACT}, stateOverrides={CONTRACT: fields})


def many_calls(scale: float) -> Excess:
    """256 blocks of 5,000 calls."""
    return Excess(simulation(*[block(*[{}] * int(5000 * scale))] * 256), (LIMIT,))


def one_long_block(scale: float) -> Excess:
    """A block with this many calls."""
    return Excess(simulation(block(*[{}] * int(1_280_000 * scale))), (LIMIT,))


def long_body(scale: float) -> Excess:
    """Overrides above the size limit of a request: 10 MB."""
    del scale  # a limit of the server, which is fixed
    return Excess(simulation(overriding(code="0x" + "5b" * 5_000_000)), (), 413)


def slots(scale: float) -> Excess:
    """As many slots of one account as fit into a request: 5 MB."""
    words = [f"0x{number:064x}" for number in range(int(35_000 * scale) + 1)]
    named = dict(pairwise(words))
    return Excess(simulation(overriding(stateDiff=named)), (RESULT, STOPPED))


def accounts(scale: float) -> Excess:
    """Accounts with a total size of 5 MB."""
    named = {f"0x{2**159 + at:040x}": {"balance": "0x1"} for at in range(int(70_000 * scale))}
    return Excess(simulation(block({}, stateOverrides=named)), (RESULT, STOPPED))


def long_code(scale: float) -> Excess:
    """Code with a size of 5 MB."""
    code = "0x" + "5b" * int(2_400_000 * scale)
    return Excess(simulation(overriding(code=code)), (RESULT, STOPPED))


def far_ahead(scale: float) -> Excess:
    """A block with an extremely high number, with all the blocks before it."""
    del scale
    return Excess(simulation(block(blockOverrides={"number": hex(2**64 - 1)})), (LIMIT,))


def cyclic_moves(scale: float) -> Excess:
    """All precompiles, each moved to the address of the next one."""
    del scale
    places = [f"0x{number:040x}" for number in range(1, 11)]
    moved = {
        each: {"movePrecompileToAddress": to}
        for each, to in zip(places, places[1:] + places[:1], strict=True)
    }
    return Excess(simulation(block({}, stateOverrides=moved)), (STOPPED,))


def loop(scale: float) -> Excess:
    """Code that loops until it runs out of gas."""
    del scale
    return Excess(simulation(overriding(code=LOOP)), (RESULT, STOPPED))


def loop_in_every_block(scale: float) -> Excess:
    """The contract at the start of every block loops, in the maximum number of blocks."""
    first = block(stateOverrides={BEACON_ROOTS: {"code": LOOP}})
    last = block(blockOverrides={"number": hex(3 + int(250 * scale))})
    return Excess(simulation(first, last), (RESULT, STOPPED))


def long_output(scale: float) -> Excess:
    """Calls that return a megabyte each, until the gas runs out."""
    calls = [{"to": CONTRACT, "gas": hex(4_000_000)}] * max(1, int(12 * scale))
    code = {CONTRACT: {"code": LONG_RETURN}}
    return Excess(simulation(block(*calls, stateOverrides=code)), (RESULT, STOPPED))


def many_outputs(scale: float) -> Excess:
    """The maximum for all the gas: a hundred megabytes, in calls of a hundred kilobytes."""
    calls = [{"to": CONTRACT, "gas": hex(60_000)}] * max(1, int(450 * scale))
    code = {CONTRACT: {"code": MIDDLING_RETURN}}
    return Excess(
        simulation(block(*calls, stateOverrides=code), block(*calls)), (LIMIT, RESULT, STOPPED)
    )


def long_reverts(scale: float) -> Excess:
    """Calls that revert with the same size."""
    calls = [{"to": CONTRACT, "gas": hex(4_000_000)}] * max(1, int(12 * scale))
    code = {CONTRACT: {"code": LONG_REVERT}}
    return Excess(simulation(block(*calls, stateOverrides=code)), (RESULT, STOPPED))


def call_overrides(scale: float) -> Excess:
    """A call with 5 MB of overrides: half of them slots of one account, half accounts."""
    words = [f"0x{number:064x}" for number in range(int(17_000 * scale) + 1)]
    named: Json = {f"0x{2**159 + at:040x}": {"balance": "0x1"} for at in range(int(35_000 * scale))}
    named[CONTRACT] = {"stateDiff": dict(pairwise(words))}
    return Excess(request("eth_call", {"to": CONTRACT}, "latest", named), (RESULT, STOPPED))


EXCESSES: dict[str, Callable[[float], Excess]] = {
    each.__name__: each
    for each in (
        many_calls,
        one_long_block,
        long_body,
        slots,
        accounts,
        long_code,
        far_ahead,
        cyclic_moves,
        loop,
        loop_in_every_block,
        long_output,
        many_outputs,
        long_reverts,
        call_overrides,
    )
}
