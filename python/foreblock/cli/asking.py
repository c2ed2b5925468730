"""Shared by verbs that query an endpoint: options, the query, values in and out as text."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from foreblock.cli.revert_errors import reason_of
from foreblock.cli.verb import failing_in_one_line, json_option, option
from foreblock.errors import ErrorAnswer, InvalidArgument
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.primitives import HASH_BYTES, did_you_mean, parse_address, parse_data, parse_quantity
from foreblock.upstream.rpc_client import DEFAULT_URL, Endpoint, shown_snapshot

Value = TypeVar("Value")

TAGS: Final = ("latest", "pending", "safe", "finalized", "earliest")
DEFAULT_TAG: Final = "pending"
OTHERWISE: Final = "latest"
DEFAULT_BLOCK: Final = "pending of foreblock, latest of other servers"
ETHER_DIGITS: Final = 18
GWEI_DIGITS: Final = 9

_LATEST: Final = re.compile(r"latest=(0x[0-9a-f]+):")
_PENDING: Final = re.compile(r"pending=(0x[0-9a-f]+)\.(\d+):")
_NO_BLOCK: Final = re.compile(r"(header|block)\b.* not found|unknown block", re.IGNORECASE)
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]{1,16}")

URL_OPTION = option(
    "--url",
    metavar="URL",
    envvar="FOREBLOCK_URL",
    default=DEFAULT_URL,
    show_envvar=True,
    help="JSON-RPC endpoint to query.",
)
JSON_OPTION = json_option("Print the result as unmodified JSON.")


@contextmanager
def asking(url: str) -> Iterator[Callable[[str, Sequence[object]], Any]]:
    """Yield a function that calls methods of the endpoint; failures end the program in one line."""
    with connected(url) as endpoint:
        yield endpoint.request


@contextmanager
def connected(url: str) -> Iterator[Endpoint]:
    """Connect to the endpoint; failures end the program in one line."""
    with failing_in_one_line():
        try:
            with Endpoint(url) as endpoint:
                yield endpoint
        except ErrorAnswer as refused:
            raise _with_reason(refused) from refused


def _with_reason(refused: ErrorAnswer) -> ErrorAnswer:
    """Add the reason in the revert data, unless the message contains it."""
    try:
        reason = reason_of(parse_data(refused.data))
    except ValueError:
        return refused
    if reason in refused.message:
        return refused
    return ErrorAnswer(refused.code, f"{refused.message}: {reason}", refused.data)


def ask_at(
    endpoint: Endpoint, method: str, params: Callable[[str], Sequence[object]], block: str | None
) -> Any:  # noqa: ANN401, JSON of any endpoint
    """Call a method at a block: by default `pending` of an endpoint that names its snapshots.

    Elsewhere `pending` may mean anything, so `latest` is the default there.
    """
    try:
        found = endpoint.request(method, params(DEFAULT_TAG if block is None else block))
    except ErrorAnswer as refused:
        if block is not None or shown_snapshot(endpoint.headers):
            raise _with_block(endpoint, refused, block) from refused
    else:
        if block is not None or shown_snapshot(endpoint.headers):
            return found
    return endpoint.request(method, params(OTHERWISE))


def _with_block(endpoint: Endpoint, refused: ErrorAnswer, block: str | None) -> ErrorAnswer:
    """Name the block that the endpoint does not have, and its latest one."""
    if block is None or not _NO_BLOCK.search(refused.message):
        return refused
    return ErrorAnswer(
        refused.code, f"{refused.message}: {shown_block(block)}{heads(endpoint)}", refused.data
    )


def shown_block(block: str) -> str:
    """A block parameter for people: a number in decimals."""
    return str(int(block, 16)) if _NUMBER.fullmatch(block) else block


def heads(endpoint: Endpoint) -> str:
    """Text with the latest and the pending block of the endpoint, to append to a message."""
    snapshot = shown_snapshot(endpoint.headers)
    latest, pending = _LATEST.search(snapshot), _PENDING.search(snapshot)
    if latest is None:
        try:
            found = parse_quantity(endpoint.request("eth_blockNumber"))
        except (ErrorAnswer, ValueError):
            return ""
    else:
        found = int(latest[1], 16)
    above = "" if pending is None else f", pending is {int(pending[1], 16)}.{pending[2]}"
    return f"; latest is {found}{above}"


def print_place(endpoint: Endpoint, block: str | None) -> None:
    """Print on standard error which block a tag, or the default, has meant."""
    snapshot = shown_snapshot(endpoint.headers)
    tag = block or (DEFAULT_TAG if snapshot else OTHERWISE)
    latest, pending = _LATEST.search(snapshot), _PENDING.search(snapshot)
    if tag not in (DEFAULT_TAG, OTHERWISE):
        return
    text = f"at {tag}"
    above = "" if pending is None else f"{int(pending[1], 16)}.{pending[2]}"
    if latest is not None and tag == OTHERWISE:
        text += f", block {int(latest[1], 16)}" + (f"; pending is {above}" if above else "")
    elif latest is not None:
        text += f", block {above}" if above else f", which is latest, block {int(latest[1], 16)}"
    click.echo(text, err=True)


def block_parameter(text: str | None) -> str | None:
    """Convert a block of the command line to a JSON-RPC parameter; None is the default."""
    if text is None:
        return None
    if text in TAGS:
        return text
    if text.isascii() and text.isdecimal():
        return hex(int(text))
    if not text.startswith("0x"):
        similar = did_you_mean(text, TAGS)
        expected = f"a number, a hash, {', '.join(TAGS[:-1])} or {TAGS[-1]}"
        raise InvalidArgument(f"block {text!r}: expected {expected}{similar}")
    if len(text) == 2 + 2 * HASH_BYTES:
        checked(parse_data, text, "block")
    else:
        checked(parse_quantity, text, "block")
    return text


def checked(parse: Callable[[object], Value], text: object, what: str) -> Value:
    """Parse an argument. Raises `InvalidArgument`, which names it."""
    try:
        return parse(text)
    except ValueError as failure:
        raise InvalidArgument(f"{what} {text!r}: {failure}") from failure


def checked_address(text: str, what: str = "address") -> bytes:
    """Parse an address. Raises `InvalidArgument`; warns if its letters are not its checksum."""
    found = checked(parse_address, text, what)
    digits = text[2:]
    is_mixed = digits not in (digits.lower(), digits.upper())
    if is_mixed and checksum_address(found)[2:] != digits:
        click.echo(f"warning: {text} has a wrong checksum: is it mistyped?", err=True)
    return found


def date(seconds: int) -> str:
    """A Unix time as a date."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "unknown date"


def decimal(number: int, digits: int) -> str:
    """`number` / 10^digits, exact and without trailing zeros."""
    whole, rest = divmod(number, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".")


DIGITS: Final = {"": 0, "wei": 0, "gwei": 9, "eth": 18, "ether": 18}  # decimals of each unit
AMOUNTS: Final = "7, 1e18, 7gwei or 0.5ether"
MOST_BITS: Final = 256

_AMOUNT: Final = re.compile(r"([0-9][0-9_]*)(?:\.([0-9]+))?(?:e([0-9]{1,2}))? ?([a-z]*)")


def amount(text: str) -> int:
    """Parse an amount such as 7, 1e18, 2 gwei or 0.5ether to wei. Raises `click.BadParameter`."""
    found = _AMOUNT.fullmatch(text.strip().lower())
    if found is None:
        raise click.BadParameter(f"invalid amount {text!r}; use e.g. {AMOUNTS}")
    whole, fraction, power, unit = found.groups(default="")
    if unit not in DIGITS:
        raise click.BadParameter(f"{text!r}: unknown unit {unit!r}; use wei, gwei or ether")
    fraction, digits = fraction.rstrip("0"), DIGITS[unit] + int(power or 0)
    if len(fraction) > digits:
        raise click.BadParameter(f"{text!r} is not a whole number of wei")
    value = int(whole.replace("_", "") + fraction.ljust(digits, "0"))
    if value.bit_length() > MOST_BITS:
        raise click.BadParameter(f"{text!r} is more than 2^256 - 1 wei")
    return value
