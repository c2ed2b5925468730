"""Failures of calls and transactions as exceptions: the decoded reason, and the calls as notes."""

from collections.abc import Sequence
from typing import Any, Final

from foreblock.client.values import Hex
from foreblock.dev_chain.contract_abi import SELECTOR, AbiFunction
from foreblock.errors import ForeblockError, Halted, Reverted, Undecodable
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.ledger.tracing.call_tree import (
    REVERTED,
    TracedCall,
    console_lines,
    printable,
    tree_lines,
)
from foreblock.primitives import parse_data
from foreblock.types import revert_reason

MOST_NOTES: Final = 60  # lines of calls


class CustomErrors:
    """The errors that contracts declare, by selector."""

    def __init__(self) -> None:
        self._known: Final[dict[bytes, AbiFunction]] = {}

    def add(self, declared: Sequence[AbiFunction]) -> None:
        self._known.update({each.selector: each for each in declared})

    def reason(self, output: bytes) -> str:
        """The reason in the data of a revert; empty if it is unknown."""
        if text := revert_reason(output):
            return text
        declared = self._known.get(output[:SELECTOR])
        if declared is None:
            return ""
        try:
            values = declared.decode_inputs(output[SELECTOR:])
        except Undecodable:
            return ""
        shown = map(_shown, values, declared.inputs)
        return printable(f"{declared.name}({', '.join(shown)})")


def failed(call: TracedCall, errors: CustomErrors) -> ForeblockError:
    """The exception for a call that failed, with its calls as notes."""
    if call.error == REVERTED:
        output = parse_data(call.output)
        return with_calls(Reverted(Hex(output), errors.reason(output)), call)
    return with_calls(Halted(call.error), call)


def with_calls(error: ForeblockError, call: TracedCall) -> ForeblockError:
    """The exception, with the console and the calls of a run as notes."""
    lines = [*console_lines(call), *tree_lines(call)]
    for line in lines[:MOST_NOTES]:
        error.add_note(line)
    if len(lines) > MOST_NOTES:
        error.add_note(f"… and {len(lines) - MOST_NOTES} more")
    return error


def _shown(value: Any, kind: str) -> str:  # noqa: ANN401, of the ABI
    if isinstance(value, bytes):
        return checksum_address(value) if kind == "address" else f"0x{value.hex()}"
    return repr(value) if isinstance(value, str) else str(value)
