"""`foreblock simulate`: run an eth_simulateV1 payload and print its effects."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, TextIO

import click

from foreblock.cli.asking import (
    DEFAULT_BLOCK,
    ETHER_DIGITS,
    GWEI_DIGITS,
    JSON_OPTION,
    URL_OPTION,
    ask_at,
    block_parameter,
    connected,
    date,
    decimal,
    print_place,
)
from foreblock.cli.revert_errors import reason_of
from foreblock.cli.verb import argument, option, verb
from foreblock.errors import InvalidArgument, NotAnAnswer
from foreblock.primitives import parse_data

TRANSFERS: Final = "0x" + "ee" * 20  # the address of logs that represent ether transfers
SHOWN_DATA: Final = 74  # characters of data shown: a selector and a word


@verb(
    examples=[
        "foreblock simulate payload.json",
        "foreblock simulate - --block latest < payload.json",
    ]
)
@argument(
    "file",
    help="eth_simulateV1 payload in JSON; - is standard input.",
    metavar="FILE",
    type=click.File("r", encoding="utf-8"),
)
@option("--block", metavar="BLOCK", show_default=DEFAULT_BLOCK, help="Block to simulate on.")
@URL_OPTION
@JSON_OPTION
def simulate(*, file: TextIO, block: str | None, url: str, as_json: bool) -> None:
    """Simulate blocks and show the effects of their calls.

    FILE contains an eth_simulateV1 payload as JSON, or only its list of blockStateCalls; - reads
    standard input. The output shows calls, gas, logs, ether transfers, and balance changes by
    transfers and fees; overrides do not count as changes.
    """
    with connected(url) as endpoint:
        payload = _payload(file)
        if not as_json:
            payload |= {"traceTransfers": True, "returnFullTransactions": True}
        parameter = block_parameter(block)
        found = ask_at(endpoint, "eth_simulateV1", lambda at: [payload, at], parameter)
        if not as_json:
            print_place(endpoint, parameter)
            lines = _lines(url, found)
    click.echo(json.dumps(found) if as_json else "\n".join(lines))


def _payload(file: TextIO) -> dict[str, Any]:
    try:
        payload = json.load(file)
    except ValueError as failure:
        raise InvalidArgument(f"{file.name} is not JSON: {failure}") from failure
    if isinstance(payload, list):
        return {"blockStateCalls": payload}
    if not isinstance(payload, dict):
        raise InvalidArgument(f"{file.name} is neither a payload nor a list of blocks")
    return payload


def _lines(url: str, found: object) -> list[str]:
    try:
        return list(_account(found))
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as failure:
        raise NotAnAnswer(url, f"not simulated blocks: {failure!r}") from failure


def _account(blocks: Any) -> Iterator[str]:  # noqa: ANN401, JSON of any endpoint
    balances: dict[str, int] = defaultdict(int)
    for block in blocks:
        time, fee = _number(block["timestamp"]), _number(block.get("baseFeePerGas", "0x0"))
        yield f"block {_number(block['number'])} {block['hash']}"
        yield f"  {time} ({date(time)}), base fee {decimal(fee, GWEI_DIGITS)} gwei"
        yield f"  gas {_number(block['gasUsed']):,} of {_number(block['gasLimit']):,}"
        for index, call in enumerate(block["calls"]):
            transaction = block["transactions"][index]
            yield from _call(index, call, transaction)
            _count(balances, call, transaction)
    changes = {who: change for who, change in balances.items() if change}
    if changes:
        yield "balances"
        for who, change in sorted(changes.items()):
            sign = "-" if change < 0 else "+"
            yield f"  {who} {sign}{decimal(abs(change), ETHER_DIGITS)} ether"


def _call(index: int, call: Any, transaction: Any) -> Iterator[str]:  # noqa: ANN401, as above
    done = "ok" if call["status"] == "0x1" else "failed"
    value = _number(transaction["value"])
    sent = f" {decimal(value, ETHER_DIGITS)} ether" if value else ""
    to = transaction["to"] or "creation"
    gas = _number(call["gasUsed"])
    yield f"  call {index} {done}: {transaction['from']} → {to}{sent}, {gas:,} gas"
    if "error" in call:
        yield f"    error {_error(call)}"
    if call["returnData"] != "0x":
        yield f"    returned {_cut(call['returnData'])}"
    for log in call["logs"]:
        if log["address"] == TRANSFERS:
            source, target = ("0x" + topic[-40:] for topic in log["topics"][1:3])
            amount = decimal(_number(log["data"]), ETHER_DIGITS)
            yield f"    transfer {source} → {target} {amount} ether"
        else:
            yield f"    log {log['logIndex']} of {log['address']} {_cut(log['data'])}"
            yield from (f"      {topic}" for topic in log["topics"])


def _error(call: Any) -> str:  # noqa: ANN401, as above
    """The error of a call as text; some nodes return an object."""
    error = call["error"]
    text = error if isinstance(error, str) else str(error["message"])
    data = call["returnData"] if isinstance(error, str) else error.get("data", "0x")
    reason = reason_of(parse_data(data))
    return text if reason in text or ": " in text else f"{text}: {reason}"


def _count(balances: dict[str, int], call: Any, transaction: Any) -> None:  # noqa: ANN401, as above
    """Add the balance changes of a call: its transfers, and the fee of its sender."""
    for log in call["logs"]:
        if log["address"] == TRANSFERS:
            source, target = ("0x" + topic[-40:] for topic in log["topics"][1:3])
            balances[source] -= _number(log["data"])
            balances[target] += _number(log["data"])
    cost = _number(call["gasUsed"]) * _number(transaction.get("gasPrice") or "0x0")
    balances[transaction["from"]] -= cost


def _number(text: str) -> int:
    return int(text, 16)


def _cut(data: str) -> str:
    if len(data) <= SHOWN_DATA:
        return data
    return f"{data[:SHOWN_DATA]}… ({len(data) // 2 - 1} bytes)"
