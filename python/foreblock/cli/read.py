"""`foreblock block`, `balance`, `call` and `rpc`: query any endpoint."""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import click

from foreblock.cli.asking import (
    AMOUNTS,
    DEFAULT_BLOCK,
    ETHER_DIGITS,
    GWEI_DIGITS,
    JSON_OPTION,
    TAGS,
    URL_OPTION,
    amount,
    ask_at,
    asking,
    block_parameter,
    checked,
    checked_address,
    connected,
    date,
    decimal,
    heads,
    print_place,
)
from foreblock.cli.verb import argument, option, stop, verb
from foreblock.errors import NotAnAnswer
from foreblock.primitives import (
    HASH_BYTES,
    format_data,
    parse_data,
    parse_quantity,
)
from foreblock.status.status_text import counted
from foreblock.types import decode_output, encode_call

BLOCK_HELP: Final = f"Number, hash or tag: {', '.join(TAGS)}."

Value = TypeVar("Value")


@verb(examples=["foreblock block", "foreblock block latest --full", "foreblock block 12 --json"])
@argument("block", help=BLOCK_HELP, metavar="[BLOCK]", required=False)
@option("--full", is_flag=True, help="Show transactions instead of their hashes.")
@URL_OPTION
@JSON_OPTION
def block(*, block: str | None, full: bool, url: str, as_json: bool) -> None:
    """Show a block.

    By default BLOCK is pending of foreblock, and latest of other servers.
    """
    with connected(url) as endpoint:
        parameter = block_parameter(block)
        by_hash = parameter is not None and len(parameter) == 2 + 2 * HASH_BYTES
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        found = ask_at(endpoint, method, lambda at: [at, full], parameter)
        known = heads(endpoint) if found is None else ""
    if found is not None and not as_json:
        print_place(endpoint, parameter)
    if as_json:
        click.echo(json.dumps(found))
    elif found is None:
        stop(f"unknown block {block}{known}", 1)
    else:
        _print_block(found)


@verb(
    examples=[
        "foreblock balance 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "foreblock balance 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 latest",
    ]
)
@argument("address", help="Account.", metavar="ADDRESS")
@argument("block", help=BLOCK_HELP, metavar="[BLOCK]", required=False)
@URL_OPTION
@JSON_OPTION
def balance(*, address: str, block: str | None, url: str, as_json: bool) -> None:
    """Show the balance of an account.

    By default BLOCK is pending of foreblock, and latest of other servers.
    """
    with connected(url) as endpoint:
        checked_address(address)
        parameter = block_parameter(block)
        found = ask_at(endpoint, "eth_getBalance", lambda at: [address, at], parameter)
        wei = _quantity(url, found)
    if not as_json:
        print_place(endpoint, parameter)
    click.echo(json.dumps(found) if as_json else f"{decimal(wei, ETHER_DIGITS)} ether ({wei} wei)")


@verb(examples=['foreblock call 0x7E57000000000000000000000000000000000020 "name()(string)"'])
@argument("to", help="Contract.", metavar="TO")
@argument(
    "signature",
    help='Function, as in "balanceOf(address)(uint256)".',
    metavar="[SIGNATURE]",
    required=False,
)
@argument(
    "arguments",
    help="Its arguments; write arrays as [1, 2] and tuples as (1, true).",
    metavar="[ARGUMENTS]...",
    nargs=-1,
)
@option("--data", metavar="HEX", help="Call data, instead of SIGNATURE.")
@option("--from", "sender", metavar="ADDRESS", help="Sender of the call.")
@option("--value", metavar="AMOUNT", type=amount, help=f"Value in wei, or with a unit: {AMOUNTS}.")
@option("--gas", metavar="GAS", type=click.IntRange(min=0), help="Gas limit of the call.")
@option("--block", metavar="BLOCK", show_default=DEFAULT_BLOCK, help="Block whose state is used.")
@URL_OPTION
@JSON_OPTION
def call(  # noqa: PLR0913, one per option
    *,
    to: str,
    signature: str | None,
    arguments: tuple[str, ...],
    data: str | None,
    sender: str | None,
    value: int | None,
    gas: int | None,
    block: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Call a contract and show its output.

    SIGNATURE has the form "balanceOf(address)(uint256)" or "balanceOf(address) returns (uint256)";
    the types of the output, which are optional, decode it. Write arrays as "[1, 2]" and tuples as
    "(1, true)". Put -- before negative numbers.
    """
    if signature is not None and data is not None:
        raise click.UsageError("give a signature or --data, not both")
    with connected(url) as endpoint:
        message = _message(to, sender, _call_data(signature, arguments, data))
        message |= {"value": hex(value)} if value is not None else {}
        message |= {"gas": hex(gas)} if gas is not None else {}
        parameter = block_parameter(block)
        found = ask_at(endpoint, "eth_call", lambda at: [message, at], parameter)
        output = checked(parse_data, found, "output")
        values = [] if signature is None else decode_output(signature, output)
    if as_json:
        click.echo(json.dumps(found))
    else:
        print_place(endpoint, parameter)
        lines = [each if isinstance(each, str) else _value(each) for each in values]
        click.echo("\n".join(lines or [str(found)]))


@verb(examples=["foreblock rpc eth_chainId", "foreblock rpc eth_getBlockByNumber pending false"])
@argument("method", help="Method, as in eth_chainId.", metavar="METHOD")
@argument("params", help="Its parameters, each JSON or a string.", metavar="[PARAMS]...", nargs=-1)
@URL_OPTION
@JSON_OPTION
def rpc(*, method: str, params: tuple[str, ...], url: str, as_json: bool) -> None:
    """Call any JSON-RPC method.

    Each of PARAMS is JSON; anything else is a string, so addresses and tags need no quotes.
    """
    with asking(url) as ask:
        found = ask(method, [_json_or_text(each) for each in params])
    click.echo(json.dumps(found) if as_json else json.dumps(found, indent=2, ensure_ascii=False))


def _quantity(url: str, found: object) -> int:
    try:
        return parse_quantity(found)
    except ValueError as failure:
        raise NotAnAnswer(url, f"{found!r}: {failure}") from failure


def _call_data(signature: str | None, arguments: Sequence[str], data: str | None) -> str | None:
    if signature is not None:
        return format_data(encode_call(signature, arguments))
    return data if data is None else format_data(checked(parse_data, data, "data"))


def _value(value: object) -> str:
    """A decoded value as text; arguments of the same type are written the same way."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return format_data(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case tuple():
            return f"({', '.join(map(_value, value))})"
        case _:
            return str(value)


def _message(to: str, sender: str | None, data: str | None) -> dict[str, str]:
    checked_address(to)
    message = {"to": to}
    if sender is not None:
        checked_address(sender)
        message["from"] = sender
    if data is not None:
        message["data"] = data
    return message


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print_block(found: dict[str, Any]) -> None:
    def number(name: str) -> int | None:
        return int(found[name], 16) if found.get(name) is not None else None

    time, fee = number("timestamp"), number("baseFeePerGas")
    rows = {
        "block": f"{number('number')} {found.get('hash')}",
        "parent": found.get("parentHash"),
        "time": None if time is None else f"{time} ({date(time)})",
        "gas": f"{number('gasUsed') or 0:,} of {number('gasLimit') or 0:,}",
        "base fee": None if fee is None else f"{decimal(fee, GWEI_DIGITS)} gwei",
        "miner": found.get("miner"),
        "state": found.get("stateRoot"),
        "size": None if number("size") is None else f"{number('size'):,} bytes",
        "contents": counted(len(found.get("transactions", [])), "transaction"),
    }
    for name, value in rows.items():
        if value is not None:
            click.echo(f"{name:<10} {value}")
    for index, transaction in enumerate(found.get("transactions", [])):
        click.echo(f"{index:>10} {_transaction(transaction)}")


def _transaction(transaction: object) -> str:
    match transaction:
        case {"hash": str(hash), "from": str(sender), "to": to, "value": str(value)}:
            ether = decimal(int(value, 16), ETHER_DIGITS)
            return f"{hash} {sender} → {to or 'creation'} {ether} ether"
        case _:
            return str(transaction)
