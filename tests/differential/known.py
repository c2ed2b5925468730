"""Known differences from geth, removed from both responses before the comparison.

`docs/simulate-differences.md` gives the reason for each.
"""

import re
from collections import Counter
from typing import Any, Final

from differential.payloads import Json

BASE_FEE: Final = "max fee per gas less than block base fee"
GAS: Final = re.compile(
    r"out of gas: (?:out of gas|gas uint64 overflow)|gas uint64 overflow"
    r"|contract creation code storage out of gas"
)
STACK: Final = re.compile(r"stack (?:underflow|limit reached)[\d <=>()]*")


def plain(expected: Any, found: Any, *, unhashed: bool) -> tuple[Any, Any]:  # noqa: ANN401, it is JSON
    """Both responses without known differences, which may include hashes of blocks."""
    if "code" in expected and BASE_FEE in expected["message"]:
        expected["code"] = -38012
    for answer in (expected, found):
        if isinstance(answer, list):
            for block in answer:
                _plain_block(block)
                if unhashed:
                    _unhashed(block)
    return expected, found


def _unhashed(block: Json) -> None:
    """Without the differences between the merge and Shanghai."""
    for name in ("hash", "parentHash", "size", "withdrawals", "withdrawalsRoot"):
        block.pop(name, None)
    if "requestsHash" in block:  # from Prague on a contract keeps hashes of blocks
        del block["stateRoot"]
    logs = [log for call in block["calls"] for log in call["logs"]]
    full = [each for each in block["transactions"] if isinstance(each, dict)]
    for each in (*logs, *full):
        del each["blockHash"]


def _plain_block(block: Json) -> None:
    for call in block["calls"]:
        if "error" in call:
            message = STACK.sub("stack ", call["error"]["message"])
            call["error"]["message"] = GAS.sub("out of gas", message)
    full = [each for each in block["transactions"] if isinstance(each, dict)]
    hashes = Counter(each["hash"] for each in full)
    for transaction in full:
        if transaction["type"] == "0x0":
            transaction.pop("chainId", None)
        if hashes[transaction["hash"]] > 1:
            del transaction["from"]
