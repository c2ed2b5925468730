"""The calls of a run as people read them: lines of the console, why it failed, the whole tree.

All of it is read from the text of geth's callTracer (`Tracer.calls`). No I/O.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from foreblock.ledger.rules.addresses import checksum_address
from foreblock.ledger.tracing.console_log import CONSOLE, logged_line, printable

MOST_LINES: Final = 1_000  # of the console, and of a tree; the rest is counted
MOST_DATA: Final = 2 + 2 * 68  # characters of the data of a revert that are shown
SELECTOR: Final = 2 + 2 * 4  # characters
REVERTED: Final = "execution reverted"  # geth's error of a call that reverted
INDENT: Final = "    "
_CONSOLE: Final = "0x" + CONSOLE.hex()


class TracedCall(Struct, rename="camel", frozen=True):
    """A call, with those that it made."""

    type: str
    gas_used: str
    to: str = ""  # unknown of a creation that failed
    value: str = "0x0"
    input: str = "0x"
    output: str = "0x"
    error: str = ""
    revert_reason: str = ""
    calls: list["TracedCall"] = []


_decode_call: Final = msgspec.json.Decoder(TracedCall).decode


def read_call(text: bytes) -> TracedCall | None:
    """The outermost call of a trace; none where calls are nested too deep to be read."""
    try:
        return _decode_call(text)
    except RecursionError:
        return None


def console_lines(call: TracedCall) -> list[str]:
    """What contracts logged in a call, also where it was undone."""
    logged = (
        logged_line(bytes.fromhex(each.input[2:])) for _, each in _all(call) if each.to == _CONSOLE
    )
    return _bounded(line for line in logged if line is not None)


def failure(call: TracedCall) -> str:
    """Why a call failed, in the words of anvil where it has some; empty where it did not."""
    if call.error != REVERTED:
        return call.error
    if call.revert_reason:
        return f"reverted with: {printable(call.revert_reason)}"
    if call.output == "0x":
        return "reverted"
    more = "…" if len(call.output) > MOST_DATA else ""
    return f"reverted with: custom error {call.output[:MOST_DATA]}{more}"


def explained(call: TracedCall, *, with_tree: bool) -> list[str]:
    """What is to be told of a call: what it logged, all its calls, and why it failed."""
    lines = console_lines(call)
    if with_tree:
        lines += ["Traces:", *("  " + line for line in tree_lines(call))]
    if call.error:
        lines += [f"{INDENT}Error: {failure(call)}"]
    return lines


def tree_lines(call: TracedCall) -> list[str]:
    """All calls, each on a line, those that a call made below it."""
    return _bounded("  " * depth + _described(each) for depth, each in _all(call))


def _all(call: TracedCall) -> Iterator[tuple[int, TracedCall]]:
    """A call and all below it, each with its depth, in the order in which they began."""
    waiting = [(0, call)]
    while waiting:
        depth, each = waiting.pop()
        yield depth, each
        waiting += [(depth + 1, below) for below in reversed(each.calls)]


def _described(call: TracedCall) -> str:
    """One line: gas, kind, target, selector, value, and why it failed."""
    parts = [f"[{int(call.gas_used, 16)}]", call.type]
    if call.to:
        parts.append(checksum_address(bytes.fromhex(call.to[2:])))
    if not call.type.startswith("CREATE") and len(call.input) >= SELECTOR:
        parts.append(call.input[:SELECTOR])
    if value := int(call.value, 16):
        parts.append(f"value {value}")
    if call.error:
        parts.append(f"← {failure(call)}")
    return " ".join(parts)


def _bounded(lines: Iterator[str]) -> list[str]:
    """The first lines, and how many more there are."""
    shown: list[str] = []
    more = 0
    for line in lines:
        if len(shown) < MOST_LINES:
            shown.append(line)
        else:
            more += 1
    return [*shown, f"… and {more} more"] if more else shown
